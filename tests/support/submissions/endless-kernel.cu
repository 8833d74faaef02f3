#include "answer.hpp"

#include <cuda_runtime_api.h>

namespace {

__global__ void turn(volatile int* turns) {
    for (;;)
        *turns = *turns + 1;
}

} // namespace

int answer() {
    int* turns = nullptr;
    cudaMalloc(&turns, sizeof *turns);
    turn<<<1, 1>>>(turns);
    cudaDeviceSynchronize();
    return 42;
}
