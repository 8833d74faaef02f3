// How the doctor takes times: behind a start gate, several times over.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>
#include <vector>

namespace doctor {

/// The median of several measurements, and their extremes.
struct Figure {
    double median = 0;
    double lowest = 0;
    double highest = 0;
};

Figure figure_of(std::vector<double> values);

/// How often each quantity is measured, and how much is moved each time. On the simulated node time
/// is exact and every byte costs the CPU something: there, once is enough.
struct Effort {
    std::size_t bytes = 0; ///< of one copy; a multiple of 16 KiB
    int repetitions = 0;
};

Effort effort();

/// What `work` takes on the GPU, in seconds: it puts something into the stream that it is given, of
/// GPU `device`. A gate holds the stream until all of it is there, so the time that the calls
/// take is not measured. `gate` must be longer than the calls take. Throws CudaError.
using Work = std::function<void(cudaStream_t)>;
double seconds_behind_gate(int device, const Work& work,
                           std::chrono::microseconds gate = std::chrono::microseconds(300));

/// The same for two kinds of work at once, in a stream each; until both are done. The streams may
/// belong to two GPUs: `second_device` is that of the second.
double seconds_of_both(int device, const Work& first, int second_device, const Work& second);

/// What `action` takes by the clock of the host, for calls that block.
double seconds_on_host(int device, const std::function<void()>& action);

/// Repeats a measurement after one warm-up: GB/s (1e9 bytes) of `bytes`, or microseconds.
Figure gigabytes_per_second(std::size_t bytes, const std::function<double()>& seconds);
Figure microseconds(const std::function<double()>& seconds, double calls = 1);

} // namespace doctor
