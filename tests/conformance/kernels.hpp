// Kernels of the conformance cases. All launch asynchronously on the current device.
#pragma once

#include <cstddef>
#include <cuda_runtime_api.h>

namespace conformance {

/// Writes `first + i` to each of `n` elements of `out`.
cudaError_t count_up(int* out, std::size_t n, int first, cudaStream_t stream = nullptr);
/// Writes `value` to one element: out[index].
cudaError_t poke(int* out, long long index, int value, cudaStream_t stream = nullptr);
/// Reads n elements at `in` and writes them to `out`.
cudaError_t copy(int* out, const int* in, std::size_t n, cudaStream_t stream = nullptr);
/// Waits in the kernel until *flag is not zero, then writes it to `out`.
cudaError_t wait_for(const int* flag, int* out, cudaStream_t stream);
/// Launches with this configuration; answers what the launch says.
cudaError_t launch_with(dim3 grid, dim3 block, std::size_t shared_bytes);
/// Writes the element that the host put into the module's variable to `out`.
cudaError_t read_variable(int* out, cudaStream_t stream = nullptr);
/// Host symbols of a variable with initial value 41, and of a constant of four elements.
const void* variable();
const void* constant();
/// Writes the sum of the constant's elements to `out`.
cudaError_t sum_constant(int* out);
/// Host address of the kernel behind `copy`.
const void* copy_kernel();

} // namespace conformance
