#include "answer.hpp"

#include <cuda_runtime_api.h>

int answer() {
    cudaDeviceReset();
    return 42;
}
