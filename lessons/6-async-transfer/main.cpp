// Sends recordings through the pipelines of async-transfer.cu and sets their times beside what the
// copies and the kernels take alone.
#include "async-transfer.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "common/stopwatch.hpp"
#include "common/stream.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <numeric>

namespace {

using lesson::Level;
using lesson::Pipeline;
using lesson::Reading;

constexpr std::size_t chunk = std::size_t{1} << 20;
constexpr std::size_t chunks = 16;
constexpr std::size_t more = 1000;
constexpr std::size_t count = chunks * chunk + more;

/// The thresholds of a sensor that is less sensitive at the upper end.
std::vector<Reading> make_thresholds() {
    std::vector<Reading> thresholds(lesson::levels - 1);
    for (std::size_t i = 0; i < thresholds.size(); ++i)
        thresholds[i] = static_cast<Reading>(1 + i + (i * i >> 9));
    return thresholds;
}

Level level_of(std::size_t i) {
    return static_cast<Level>(i * 2654435761 % lesson::levels);
}

Level step_of(std::size_t i) {
    return i == 0 ? level_of(0) : level_of(i) - level_of(i - 1);
}

struct Outcome {
    std::size_t missing = 0;
    std::size_t wrong = 0;
    double seconds = 0;
};

Outcome check_results(Pipeline& pipeline, const std::vector<Reading>& thresholds,
                      Level expected(std::size_t)) {
    std::atomic<std::size_t> arrived{0};
    std::atomic<std::size_t> right{0};
    pipeline.run(
        count,
        [&](std::size_t first, std::size_t n, Reading* to) {
            for (std::size_t i = 0; i < n; ++i) {
                const auto level = static_cast<std::size_t>(level_of(first + i));
                to[i] = level == 0 ? 0 : thresholds[level - 1];
            }
        },
        [&](std::size_t first, std::size_t n, const Level* from) {
            std::size_t as_expected = 0;
            for (std::size_t i = 0; i < n; ++i)
                as_expected += from[i] == expected(first + i);
            arrived += n;
            right += as_expected;
        });
    return {count - arrived, arrived - right, 0};
}

/// How long a recording takes when the host has nothing to do for it: the readings of an earlier
/// run are sent once more, and nobody looks at the results.
double time_run(Pipeline& pipeline, int device) {
    const auto idle = [](std::size_t, std::size_t, auto*) {};
    Stopwatch stopwatch(device);
    pipeline.run(count, idle, idle);
    return stopwatch.seconds();
}

Outcome try_out(Pipeline& pipeline, int device, const std::vector<Reading>& thresholds,
                Level expected(std::size_t)) {
    Outcome outcome = check_results(pipeline, thresholds, expected);
    outcome.seconds = time_run(pipeline, device);
    return outcome;
}

struct Alone {
    double copies = 0; // in one direction
    double kernels = 0;
};

/// What all chunks take on their way up, and on the GPU, with nothing else going on.
Alone time_alone(int device, const std::vector<Reading>& thresholds) {
    const DeviceGuard guard(device);
    const Stream stream;
    void *sensor = nullptr, *readings = nullptr, *results = nullptr, *host = nullptr;
    CUDA_CHECK(cudaMalloc(&sensor, thresholds.size() * sizeof(Reading)));
    CUDA_CHECK(cudaMalloc(&readings, chunk * sizeof(Reading)));
    CUDA_CHECK(cudaMalloc(&results, chunk * sizeof(Level)));
    CUDA_CHECK(cudaMallocHost(&host, chunk * sizeof(Reading)));
    CUDA_CHECK(cudaMemcpy(sensor, thresholds.data(), thresholds.size() * sizeof(Reading),
                          cudaMemcpyHostToDevice));
    for (std::size_t i = 0; i < chunk; ++i)
        static_cast<Reading*>(host)[i] = thresholds[static_cast<std::size_t>(level_of(i)) / 2];
    CUDA_CHECK(cudaDeviceSynchronize());

    Alone alone;
    Stopwatch stopwatch(device);
    for (std::size_t i = 0; i < chunks; ++i) {
        CUDA_CHECK(cudaMemcpyAsync(readings, host, chunk * sizeof(Reading), cudaMemcpyHostToDevice,
                                   stream));
    }
    CUDA_CHECK(cudaStreamSynchronize(stream));
    alone.copies = stopwatch.seconds();
    stopwatch.restart();
    for (std::size_t i = 0; i < chunks; ++i) {
        lesson::start_levels(static_cast<Reading*>(readings), static_cast<Level*>(results), chunk,
                             static_cast<Reading*>(sensor), stream);
    }
    CUDA_CHECK(cudaStreamSynchronize(stream));
    alone.kernels = stopwatch.seconds();

    CUDA_CHECK(cudaFreeHost(host));
    CUDA_CHECK(cudaFree(results));
    CUDA_CHECK(cudaFree(readings));
    CUDA_CHECK(cudaFree(sensor));
    return alone;
}

void print_time(const char* name, double seconds) {
    std::printf("  %-42s %8.2f ms\n", name, seconds * 1e3);
}

void print_results(const Outcome& outcome) {
    std::printf("  results: %zu missing, %zu wrong, of %zu\n\n", outcome.missing, outcome.wrong,
                count);
}

void run() {
    int gpus = 0;
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDeviceCount(&gpus));
    CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
    std::printf("%zu chunks of %zu MiB and %zu readings more, on %s\n\n", chunks,
                chunk * sizeof(Reading) >> 20, more, properties.name);

    const std::vector<Reading> thresholds = make_thresholds();
    const Alone alone = time_alone(0, thresholds);
    const Outcome levels =
        try_out(*lesson::make_level_pipeline(0, thresholds, chunk), 0, thresholds, level_of);
    std::printf("Part one, levels, one GPU\n");
    print_time("all copies up, or all copies down, alone", alone.copies);
    print_time("all kernels alone", alone.kernels);
    print_time("all of it, one after the other", 2 * alone.copies + alone.kernels);
    print_time("no pipeline can take less than", std::max(alone.copies, alone.kernels));
    print_time("this pipeline", levels.seconds);
    print_results(levels);

    std::printf("Part two, steps\n");
    Outcome steps;
    double with_one = 0;
    for (int used = 1; used <= gpus; used = used < gpus ? std::min(2 * used, gpus) : gpus + 1) {
        std::vector<int> devices(static_cast<std::size_t>(used));
        std::iota(devices.begin(), devices.end(), 0);
        steps = try_out(*lesson::make_step_pipeline(devices, thresholds, chunk), 0, thresholds,
                        step_of);
        if (used == 1) with_one = steps.seconds;
        std::printf("  %d GPU%s %38.2f ms %8.1f times as fast as one\n", used,
                    used == 1 ? " " : "s", steps.seconds * 1e3, with_one / steps.seconds);
    }
    print_results(steps);
}

} // namespace

int main() {
    try {
        run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "async-transfer: %s\n", error.what());
        return 1;
    }
}
