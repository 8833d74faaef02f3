// The dot product of two vectors: two workers, each on a GPU of its own where there are two, send
// chunks from pinned memory through two streams, and the first adds up what both have found.
// Its output is the same on every machine.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const cudaError_t answer = (call);                                                         \
        if (answer != cudaSuccess) {                                                               \
            std::printf("%s: %s\n", #call, cudaGetErrorString(answer));                            \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (false)

constexpr int workers = 2, streams = 2, threads = 256;
constexpr std::size_t count = (std::size_t{1} << 22) + 12345, chunk = std::size_t{1} << 18;

__global__ void multiply_and_add(const float* a, const float* b, std::size_t n, double* sum) {
    __shared__ double of_warp[threads / 32];
    double mine = 0;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n;
         i += std::size_t{gridDim.x} * blockDim.x)
        mine += static_cast<double>(a[i]) * b[i];
    for (int offset = 16; offset > 0; offset /= 2)
        mine += __shfl_down_sync(0xffffffff, mine, offset);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x >= threads / 32) return;
    mine = of_warp[threadIdx.x];
    for (int offset = threads / 64; offset > 0; offset /= 2)
        mine += __shfl_down_sync((1u << (threads / 32)) - 1, mine, offset);
    if (threadIdx.x == 0) atomicAdd(sum, mine);
}

struct Worker {
    int device = 0;
    cudaStream_t stream[streams]{};
    cudaEvent_t done[streams]{};
    float* a[streams]{};
    float* b[streams]{};
    double* sum = nullptr;
};

int main() {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) return 77; // for Meson: skipped
    float *a = nullptr, *b = nullptr;
    double* parts = nullptr;
    CHECK(cudaMallocHost(&a, count * sizeof *a));
    CHECK(cudaMallocHost(&b, count * sizeof *b));
    CHECK(cudaMallocHost(&parts, 2 * sizeof *parts));
    double expected = 0;
    for (std::size_t i = 0; i < count; ++i) { // integers: their sum is exact in any order
        a[i] = static_cast<float>(i % 1000);
        b[i] = static_cast<float>(i % 7) - 3;
        expected += static_cast<double>(a[i]) * b[i];
    }

    std::vector<Worker> all(workers);
    for (int w = 0; w < workers; ++w) {
        Worker& worker = all[w];
        worker.device = w % devices;
        CHECK(cudaSetDevice(worker.device));
        CHECK(cudaMalloc(&worker.sum, 2 * sizeof(double))); // the second: of the other worker
        CHECK(cudaMemset(worker.sum, 0, 2 * sizeof(double)));
        for (int s = 0; s < streams; ++s) {
            CHECK(cudaStreamCreateWithFlags(&worker.stream[s], cudaStreamNonBlocking));
            CHECK(cudaEventCreateWithFlags(&worker.done[s], cudaEventDisableTiming));
            CHECK(cudaMalloc(&worker.a[s], chunk * sizeof(float)));
            CHECK(cudaMalloc(&worker.b[s], chunk * sizeof(float)));
        }
        CHECK(cudaDeviceSynchronize()); // the fill is in the default stream
    }

    std::size_t chunks = 0;
    for (std::size_t begin = 0; begin < count; begin += chunk, ++chunks) {
        const std::size_t n = std::min(chunk, count - begin);
        const Worker& worker = all[chunks % workers];
        const int s = static_cast<int>(chunks / workers % streams);
        CHECK(cudaSetDevice(worker.device));
        CHECK(cudaMemcpyAsync(worker.a[s], a + begin, n * sizeof *a, cudaMemcpyHostToDevice,
                              worker.stream[s]));
        CHECK(cudaMemcpyAsync(worker.b[s], b + begin, n * sizeof *b, cudaMemcpyHostToDevice,
                              worker.stream[s]));
        multiply_and_add<<<64, threads, 0, worker.stream[s]>>>(worker.a[s], worker.b[s], n,
                                                               worker.sum);
        CHECK(cudaGetLastError());
    }

    Worker& first = all[0];
    for (Worker& worker : all) { // everything of both is behind the first stream of the first
        CHECK(cudaSetDevice(worker.device));
        for (int s = 0; s < streams; ++s) {
            CHECK(cudaEventRecord(worker.done[s], worker.stream[s]));
            CHECK(cudaStreamWaitEvent(first.stream[0], worker.done[s], 0));
        }
    }
    CHECK(cudaSetDevice(first.device));
    CHECK(cudaMemcpyPeerAsync(first.sum + 1, first.device, all[1].sum, all[1].device,
                              sizeof(double), first.stream[0]));
    CHECK(cudaMemcpyAsync(parts, first.sum, 2 * sizeof *parts, cudaMemcpyDeviceToHost,
                          first.stream[0]));
    CHECK(cudaStreamSynchronize(first.stream[0]));
    const double sum = parts[0] + parts[1];
    const bool right = sum == expected;
    std::printf("%zu elements in %zu chunks\nfirst worker  %.0f\nsecond worker %.0f\n", count,
                chunks, parts[0], parts[1]);
    std::printf("sum %.0f, %s\n", sum, right ? "right" : "wrong");

    for (Worker& worker : all) {
        CHECK(cudaSetDevice(worker.device));
        for (int s = 0; s < streams; ++s) {
            CHECK(cudaStreamDestroy(worker.stream[s]));
            CHECK(cudaEventDestroy(worker.done[s]));
            CHECK(cudaFree(worker.a[s]));
            CHECK(cudaFree(worker.b[s]));
        }
        CHECK(cudaFree(worker.sum));
    }
    CHECK(cudaFreeHost(a));
    CHECK(cudaFreeHost(b));
    CHECK(cudaFreeHost(parts));
    return right ? 0 : 1;
}
