// The kernels that figures.cpp times.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

/// Each copies or reads `bytes` (a multiple of 16 KiB) in `stream`, on the stream's device. `to`
/// and `from` may be device memory or mapped host memory.
void launch_copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
/// Reads one float in each 128 bytes of `from`; each thread writes its float to `to`.
void launch_strided_read(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
void launch_empty(cudaStream_t stream);
