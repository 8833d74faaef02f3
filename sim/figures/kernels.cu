#include "sim/figures/kernels.hpp"

#include "common/cuda_check.hpp"

namespace {

constexpr unsigned threads = 256;

__global__ void copy(float4* to, const float4* from) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    to[i] = from[i];
}

__global__ void strided_read(float* to, const float* from) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    to[i] = from[i * 32];
}

__global__ void nothing() {}

unsigned blocks_for(std::size_t items) {
    return static_cast<unsigned>(items / threads);
}

} // namespace

void launch_copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
    copy<<<blocks_for(bytes / sizeof(float4)), threads, 0, stream>>>(
        static_cast<float4*>(to), static_cast<const float4*>(from));
    CUDA_CHECK(cudaGetLastError());
}

void launch_strided_read(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
    strided_read<<<blocks_for(bytes / 128), threads, 0, stream>>>(static_cast<float*>(to),
                                                                  static_cast<const float*>(from));
    CUDA_CHECK(cudaGetLastError());
}

void launch_empty(cudaStream_t stream) {
    nothing<<<1, 1, 0, stream>>>();
    CUDA_CHECK(cudaGetLastError());
}
