#include "timing.hpp"

#include "support/delay.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "common/event.hpp"
#include "common/stopwatch.hpp"
#include "common/stream.hpp"

#include <algorithm>
#include <cstring>

namespace doctor {
namespace {

bool simulated() {
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
    return std::strstr(properties.name, "(simulated)") != nullptr;
}

double seconds_between(const Event& start, const Event& stop) {
    float milliseconds = 0;
    CUDA_CHECK(cudaEventSynchronize(stop));
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    return milliseconds / 1e3;
}

Figure repeated(const std::function<double()>& figure) {
    std::vector<double> values;
    figure(); // warms up
    for (int i = 0; i < effort().repetitions; ++i)
        values.push_back(figure());
    return figure_of(std::move(values));
}

} // namespace

Figure figure_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return {values[values.size() / 2], values.front(), values.back()};
}

Effort effort() {
    static const bool on_simulated_node = simulated();
    if (on_simulated_node) return {std::size_t{8} << 20, 1};
    return {std::size_t{256} << 20, 9};
}

double seconds_behind_gate(int device, const Work& work, std::chrono::microseconds gate) {
    const DeviceGuard guard(device);
    const Stream stream;
    const Event start, stop;
    check::delay(device, stream, gate);
    CUDA_CHECK(cudaEventRecord(start, stream));
    work(stream);
    CUDA_CHECK(cudaEventRecord(stop, stream));
    return seconds_between(start, stop);
}

double seconds_of_both(int device, const Work& first, int second_device, const Work& second) {
    const DeviceGuard guard(device);
    const Stream stream;
    const Event start, stop;
    const DeviceGuard second_guard(second_device);
    const Stream second_stream;
    const Event second_stop(cudaEventDisableTiming);

    CUDA_CHECK(cudaSetDevice(device));
    check::delay(device, stream, std::chrono::microseconds(500));
    CUDA_CHECK(cudaEventRecord(start, stream));
    CUDA_CHECK(cudaStreamWaitEvent(second_stream, start, 0));
    first(stream);
    CUDA_CHECK(cudaSetDevice(second_device));
    second(second_stream);
    CUDA_CHECK(cudaEventRecord(second_stop, second_stream));
    CUDA_CHECK(cudaSetDevice(device));
    CUDA_CHECK(cudaStreamWaitEvent(stream, second_stop, 0));
    CUDA_CHECK(cudaEventRecord(stop, stream));
    return seconds_between(start, stop);
}

double seconds_on_host(int device, const std::function<void()>& action) {
    Stopwatch stopwatch(device);
    action();
    return stopwatch.seconds();
}

Figure gigabytes_per_second(std::size_t bytes, const std::function<double()>& seconds) {
    return repeated([&] { return static_cast<double>(bytes) / seconds() / 1e9; });
}

Figure microseconds(const std::function<double()>& seconds, double calls) {
    return repeated([&] { return seconds() * 1e6 / calls; });
}

} // namespace doctor
