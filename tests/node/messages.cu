// Mistakes that the simulated node explains. The argument says which one to make.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

__global__ void write_one(int* out, long long index) {
    out[index] = 1;
}

__global__ void wait_for(volatile int* flag) {
    while (*flag == 0) {
    }
}

// An instruction of tensor cores.
__global__ void load_matrix(int* out) {
    __shared__ int tile[256];
    tile[threadIdx.x] = static_cast<int>(threadIdx.x);
    int value = 0;
    const auto place = static_cast<unsigned>(__cvta_generic_to_shared(&tile[0]));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(value) : "r"(place));
    out[threadIdx.x] = value;
}

int* memory_of(int device, std::size_t bytes) {
    void* memory = nullptr;
    cudaSetDevice(device);
    cudaMalloc(&memory, bytes);
    return static_cast<int*>(memory);
}

int* pool_memory_of(int device, std::size_t bytes) {
    void* memory = nullptr;
    cudaSetDevice(device);
    cudaMallocAsync(&memory, bytes, nullptr);
    cudaStreamSynchronize(nullptr);
    return static_cast<int*>(memory);
}

/// Writes through `pointer` on `device` and answers what the wait for it says.
int write_on(int device, int* pointer, long long index = 0) {
    cudaSetDevice(device);
    write_one<<<1, 1>>>(pointer, index);
    return cudaDeviceSynchronize();
}

int make(const char* mistake) {
    const auto is = [&](const char* name) { return std::strcmp(mistake, name) == 0; };
    if (is("null")) return write_on(0, nullptr);
    if (is("wild")) return write_on(0, reinterpret_cast<int*>(0x123456789000));
    if (is("other-gpu")) return write_on(0, memory_of(1, 64 << 20), 100);
    if (is("other-pool")) return write_on(0, pool_memory_of(1, 64 << 20));
    if (is("pageable")) return write_on(0, static_cast<int*>(std::malloc(4096)));
    if (is("behind")) return write_on(0, memory_of(0, 4096), 1025);
    if (is("freed")) {
        int* memory = memory_of(0, 64 << 20);
        cudaFree(memory);
        return write_on(0, memory);
    }
    if (is("freed-pinned")) {
        void* memory = nullptr;
        cudaMallocHost(&memory, 4096);
        cudaFreeHost(memory);
        return write_on(0, static_cast<int*>(memory));
    }
    if (is("freed-pool")) {
        int* memory = pool_memory_of(0, 64 << 20);
        cudaFreeAsync(memory, nullptr);
        return write_on(0, memory);
    }
    if (is("used-then-freed-pool")) { // no mistake: both are freed in the order of the stream
        int* first = pool_memory_of(0, 1 << 20);
        int* second = pool_memory_of(0, 512);
        write_one<<<1, 1>>>(second, 0);
        cudaFreeAsync(second, nullptr);
        cudaFreeAsync(first, nullptr);
        return cudaDeviceSynchronize();
    }
    if (is("host-read")) return *memory_of(1, 4096);
    if (is("instruction")) {
        load_matrix<<<1, 32>>>(memory_of(0, 4096));
        return cudaDeviceSynchronize();
    }
    if (is("endless")) {
        void* flag = nullptr;
        cudaMallocHost(&flag, sizeof(int));
        *static_cast<int*>(flag) = 0;
        wait_for<<<1, 1>>>(static_cast<int*>(flag));
        return cudaDeviceSynchronize();
    }
    if (is("not-simulated")) {
        cudaArray_t array = nullptr;
        const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
        cudaMallocArray(&array, &format, 16);
        return cudaMallocArray(&array, &format, 16);
    }
    if (is("leaks")) {
        memory_of(1, 4096);
        pool_memory_of(0, 1 << 20);
        void* memory = nullptr;
        cudaMallocHost(&memory, 3 << 20);
        cudaStream_t stream = nullptr;
        return cudaStreamCreate(&stream);
    }
    if (is("nothing")) return write_on(0, memory_of(0, 4096), 1023);
    std::fprintf(stderr, "no such mistake: %s\n", mistake);
    return 255;
}

} // namespace

/// Prints the answer of the last call.
int main(int count, char** arguments) {
    std::printf("%d\n", make(count > 1 ? arguments[1] : ""));
    return 0;
}
