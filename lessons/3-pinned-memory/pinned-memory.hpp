// Lesson 3, pinned memory: what pinned-memory.cu implements.
#pragma once

#include <cstddef>
#include <memory>

namespace lesson {

/// Sends frames to one GPU, finds their edges there, and brings the result back, frame after frame:
/// write to next_frame(), then upload(), process(), download(). Any current device may be set when
/// these are called, and it is the same afterwards. Used by one thread at a time.
/// Every function throws CudaError when a CUDA call fails.
class FramePipeline {
public:
    virtual ~FramePipeline() = default;

    /// Host memory for the next frame, as many floats as the pipeline has pixels. Owned by the
    /// pipeline; valid until the next upload().
    virtual float* next_frame() = 0;

    /// Copies the frame at next_frame() to the GPU. Once this returns, the frame is there and its
    /// host memory may be written again.
    virtual void upload() = 0;

    /// Starts the kernel: edges[i] = frame[i] - frame[i - 1], and edges[0] = frame[0].
    virtual void process() = 0;

    /// Copies the result to the host and returns it, complete: as many floats as the pipeline has
    /// pixels. Owned by the pipeline; valid until the next download().
    virtual const float* download() = 0;
};

/// The most host memory that a pipeline may pin, in frames.
inline constexpr std::size_t max_pinned_frames = 4;

/// Makes a pipeline on GPU `device` for frames of `pixels` floats, at least one. When it throws,
/// nothing is left allocated.
std::unique_ptr<FramePipeline> make_frame_pipeline(int device, std::size_t pixels);

} // namespace lesson
