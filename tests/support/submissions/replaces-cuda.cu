#include "answer.hpp"

#include <cuda_runtime_api.h>

cudaError_t cudaMemcpy(void*, const void*, size_t, cudaMemcpyKind) {
    return cudaSuccess;
}

int answer() {
    return 42;
}
