/// Work of a known length, put in front of other work to turn a race into a certainty.
#pragma once

#include <chrono>

#include <cuda_runtime_api.h>

namespace check {

/// Enqueues a kernel of one thread that does nothing for `time`, on GPU `device` in `stream`, which
/// belongs to that GPU (0 is its default stream). Returns at once; the current device stays as it
/// is. Throws CudaError. Not recorded by a CallLog.
void delay(int device, cudaStream_t stream, std::chrono::microseconds time);

} // namespace check
