#include "kernels.hpp"

namespace conformance {
namespace {

constexpr unsigned threads = 256;

__device__ int initialised = 41;
__constant__ int four[4];

__global__ void count_up_kernel(int* out, std::size_t n, int first) {
    const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
    if (i < n) out[i] = first + static_cast<int>(i);
}

__global__ void poke_kernel(int* out, long long index, int value) {
    out[index] = value;
}

__global__ void copy_kernel_body(int* out, const int* in, std::size_t n) {
    const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
    if (i < n) out[i] = in[i];
}

__global__ void wait_for_kernel(const volatile int* flag, int* out) {
    int seen = 0;
    while ((seen = *flag) == 0)
        __nanosleep(1000);
    *out = seen;
}

__global__ void nothing() {}

__global__ void read_variable_kernel(int* out) {
    *out = initialised;
}

__global__ void sum_constant_kernel(int* out) {
    *out = four[0] + four[1] + four[2] + four[3];
}

unsigned blocks_for(std::size_t n) {
    return static_cast<unsigned>((n + threads - 1) / threads);
}

} // namespace

cudaError_t count_up(int* out, std::size_t n, int first, cudaStream_t stream) {
    count_up_kernel<<<blocks_for(n), threads, 0, stream>>>(out, n, first);
    return cudaGetLastError();
}

cudaError_t poke(int* out, long long index, int value, cudaStream_t stream) {
    poke_kernel<<<1, 1, 0, stream>>>(out, index, value);
    return cudaGetLastError();
}

cudaError_t copy(int* out, const int* in, std::size_t n, cudaStream_t stream) {
    copy_kernel_body<<<blocks_for(n), threads, 0, stream>>>(out, in, n);
    return cudaGetLastError();
}

cudaError_t wait_for(const int* flag, int* out, cudaStream_t stream) {
    wait_for_kernel<<<1, 1, 0, stream>>>(flag, out);
    return cudaGetLastError();
}

cudaError_t launch_with(dim3 grid, dim3 block, std::size_t shared_bytes) {
    nothing<<<grid, block, shared_bytes>>>();
    return cudaPeekAtLastError();
}

cudaError_t read_variable(int* out, cudaStream_t stream) {
    read_variable_kernel<<<1, 1, 0, stream>>>(out);
    return cudaGetLastError();
}

const void* variable() {
    return &initialised;
}

const void* constant() {
    return four;
}

cudaError_t sum_constant(int* out) {
    sum_constant_kernel<<<1, 1>>>(out);
    return cudaGetLastError();
}

const void* copy_kernel() {
    return reinterpret_cast<const void*>(copy_kernel_body);
}

} // namespace conformance
