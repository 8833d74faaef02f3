#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

/// A CUDA call that failed: which one, where, and what the runtime says.
class CudaError : public std::runtime_error {
public:
    CudaError(cudaError_t code, const char* call, const char* file, int line)
        : std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + call + ": " +
                             cudaGetErrorName(code) + ": " + cudaGetErrorString(code)),
          code_(code) {}

    cudaError_t code() const noexcept { return code_; }

private:
    cudaError_t code_;
};

/// Throws CudaError unless `call` succeeds. A macro because only a macro knows the call's text.
#define CUDA_CHECK(call)                                                                           \
    do {                                                                                           \
        const cudaError_t cuda_check_code = (call);                                                \
        if (cuda_check_code != cudaSuccess) {                                                      \
            throw CudaError(cuda_check_code, #call, __FILE__, __LINE__);                           \
        }                                                                                          \
    } while (false)
