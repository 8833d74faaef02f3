// Lesson 6, asynchronous transfer: what async-transfer.cu implements.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace lesson {

/// What the recorder measures, not yet calibrated.
using Reading = std::uint32_t;

/// The number of thresholds that are not above a reading, or the difference of two such numbers.
using Level = std::int32_t;

/// A sensor has one threshold less than levels.
inline constexpr std::size_t levels = std::size_t{1} << 20;

/// Writes readings `first` to `first + count - 1` of a recording to host memory of the pipeline.
/// They are there when it returns.
using Source = std::function<void(std::size_t first, std::size_t count, Reading* to)>;

/// Takes results `first` to `first + count - 1` from host memory of the pipeline. It is done with
/// that memory when it returns.
using Sink = std::function<void(std::size_t first, std::size_t count, const Level* from)>;

/// Sends recordings chunk by chunk from the host through one or more GPUs and back. A recording can
/// be larger than any memory. Any current device may be set when run() is called, and it is the
/// same afterwards. Used by one thread at a time, which need not be the one that made it. Every
/// function throws CudaError when a CUDA call fails; a pipeline whose run() has thrown can only be
/// destroyed.
class Pipeline {
public:
    virtual ~Pipeline() = default;

    /// Sends a recording of `count` readings through, and returns when the sink has had all
    /// results.
    ///
    /// Source and sink are called with 1 to `chunk` items at a time, in any order, from any thread,
    /// also from several at once; they do not throw. Readings may be asked for more than once, but
    /// every result is handed over exactly once, complete.
    ///
    /// Waits for nothing but its own work: what others have put on the GPUs, in the default stream
    /// or in any other, may run longer than run() does.
    virtual void run(std::size_t count, const Source& source, const Sink& sink) = 0;
};

// Part one: one GPU.

/// Makes a pipeline on GPU `device` whose results are the levels of the readings. `thresholds`:
/// `levels - 1` readings in ascending order, copied. `chunk`: as in Pipeline::run, at least 1.
std::unique_ptr<Pipeline> make_level_pipeline(int device, const std::vector<Reading>& thresholds,
                                              std::size_t chunk);

/// Starts the kernel: levels[i] is the number of thresholds that are not above readings[i], for
/// `count` readings, at least one. On the current device, in a stream of it; all memory is that
/// device's. This function is already right: others call it to see how long the kernel takes alone.
void start_levels(const Reading* readings, Level* levels, std::size_t count,
                  const Reading* thresholds, cudaStream_t stream);

// Part two: all GPUs.

/// Makes a pipeline over these GPUs, each of which occurs once, for the same thresholds and chunks.
/// All of them work at the same time, on different parts of the recording. The results are steps:
/// step[i] = level[i] - level[i - 1], and step[0] = level[0].
///
/// Temporary memory may come from the current memory pool of each GPU (cudaDeviceGetMemPool), whose
/// release threshold the pipeline may raise and leave so, or from anywhere else. Works with and
/// without peer access between the GPUs.
std::unique_ptr<Pipeline> make_step_pipeline(const std::vector<int>& devices,
                                             const std::vector<Reading>& thresholds,
                                             std::size_t chunk);

} // namespace lesson
