// Looks up spectra and smooths a light curve with zero-copy.cu, and sets the times beside those of
// plain copies on this machine.
#include "zero-copy.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "common/stopwatch.hpp"
#include "common/stream.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

namespace {

constexpr std::size_t spectra = std::size_t{1} << 18;
constexpr std::size_t spectrum_bytes = lesson::channels * sizeof(float);
constexpr std::size_t few = spectra / 64;
constexpr std::size_t many = spectra / 8;
constexpr std::size_t points = std::size_t{1} << 20;

double gigabytes_per_second(std::size_t bytes, double seconds) {
    return static_cast<double>(bytes) / seconds / 1e9;
}

double mebibytes(std::size_t bytes) {
    return static_cast<double>(bytes) / (1 << 20);
}

/// Device and pinned memory of one GPU to measure plain copies with.
class Copies {
public:
    Copies(int device, std::size_t bytes) : guard_(device), bytes_(bytes), stopwatch_(device) {
        CUDA_CHECK(cudaMalloc(&on_gpu_, bytes));
        CUDA_CHECK(cudaMalloc(&other_on_gpu_, bytes));
        CUDA_CHECK(cudaMallocHost(&on_host_, bytes));
    }
    ~Copies() {
        cudaFree(on_gpu_);
        cudaFree(other_on_gpu_);
        cudaFreeHost(on_host_);
    }
    Copies(const Copies&) = delete;
    Copies& operator=(const Copies&) = delete;

    /// Seconds to copy to the GPU, there `copies_on_gpu` times from buffer to buffer, and back.
    double there_and_back(int copies_on_gpu) {
        stopwatch_.restart();
        copy(on_gpu_, on_host_);
        for (int i = 0; i < copies_on_gpu; ++i)
            copy(other_on_gpu_, on_gpu_);
        copy(on_host_, on_gpu_);
        return wait();
    }

    double to_gpu() {
        stopwatch_.restart();
        copy(on_gpu_, on_host_);
        return wait();
    }

private:
    void copy(void* to, const void* from) {
        CUDA_CHECK(cudaMemcpyAsync(to, from, bytes_, cudaMemcpyDefault, stream_));
    }

    double wait() {
        CUDA_CHECK(cudaStreamSynchronize(stream_));
        return stopwatch_.seconds();
    }

    DeviceGuard guard_;
    std::size_t bytes_;
    Stopwatch stopwatch_;
    Stream stream_;
    void* on_gpu_ = nullptr;
    void* other_on_gpu_ = nullptr;
    void* on_host_ = nullptr;
};

float count(std::size_t spectrum, std::size_t channel) {
    return static_cast<float>((spectrum * 29 + channel * (spectrum % 127 + 1)) % 1021);
}

std::vector<float> draw_spectra(float* values) {
    std::vector<float> totals(spectra);
    for (std::size_t spectrum = 0; spectrum < spectra; ++spectrum) {
        for (std::size_t channel = 0; channel < lesson::channels; ++channel)
            totals[spectrum] += * values++ = count(spectrum, channel);
    }
    return totals;
}

/// `n` numbers of spectra from all over the catalogue, none twice, others for each `seed`.
std::vector<std::uint32_t> draw_ids(std::size_t n, std::size_t seed) {
    std::vector<std::uint32_t> ids(n);
    for (std::size_t i = 0; i < n; ++i)
        ids[i] = static_cast<std::uint32_t>((i * 2654435761U + seed * 40503) % spectra);
    return ids;
}

struct Lookup {
    double seconds = 0;
    std::size_t wrong = 0;
};

Lookup look_up(lesson::Catalogue& catalogue, const std::vector<float>& expected, int device,
               std::size_t n, std::size_t seed) {
    const DeviceGuard guard(device);
    const Stream stream;
    Stopwatch stopwatch(device);
    const std::vector<std::uint32_t> ids = draw_ids(n, seed);
    std::uint32_t* ids_on_gpu = nullptr;
    CUDA_CHECK(cudaMalloc(&ids_on_gpu, n * sizeof(std::uint32_t)));
    CUDA_CHECK(cudaMemcpy(ids_on_gpu, ids.data(), n * sizeof(std::uint32_t), cudaMemcpyDefault));

    stopwatch.restart();
    catalogue.start_lookup(device, ids_on_gpu, n, stream);
    const float* totals = catalogue.finish_lookup(device);
    const std::vector<float> received(totals, totals + n);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    Lookup lookup{stopwatch.seconds()};

    CUDA_CHECK(cudaFree(ids_on_gpu));
    for (std::size_t i = 0; i < n; ++i)
        lookup.wrong += received[i] != expected[ids[i]];
    return lookup;
}

void print_lookups(const std::vector<int>& devices) {
    const std::unique_ptr<lesson::Catalogue> catalogue =
        lesson::make_catalogue(devices, spectra, many);
    const std::vector<float> expected = draw_spectra(catalogue->spectra());
    Copies copies(devices.front(), many * spectrum_bytes);
    const double link = gigabytes_per_second(many * spectrum_bytes, copies.to_gpu());

    std::printf("LOOKUPS in %zu spectra (%.0f MiB) in host memory. This machine copies\n"
                "%.0f MiB from pinned memory to a GPU at %.1f GB/s.\n\n",
                spectra, mebibytes(spectra * spectrum_bytes), mebibytes(many * spectrum_bytes),
                link);
    std::printf("%5s %9s %14s %9s %11s %14s\n", "GPU", "lookups", "need", "time", "rate",
                "wrong totals");
    for (const int device : devices) {
        const auto seed = static_cast<std::size_t>(device) * 3;
        look_up(*catalogue, expected, device, 1, seed); // the first use of a kernel loads it
        for (const std::size_t n : {few, many}) {
            const std::size_t bytes = n * spectrum_bytes;
            const Lookup lookup =
                look_up(*catalogue, expected, device, n, seed + (n == few ? 1 : 2));
            std::printf("%5d %9zu %10.0f MiB %6.2f ms %6.1f GB/s %6zu of %zu\n", device, n,
                        mebibytes(bytes), lookup.seconds * 1e3,
                        gigabytes_per_second(bytes, lookup.seconds), lookup.wrong, n);
        }
    }
}

std::vector<float> smooth_on_host(std::vector<float> curve, int passes) {
    std::vector<float> smoothed = curve;
    for (int pass = 0; pass < passes; ++pass) {
        for (std::size_t i = 1; i + 1 < points; ++i)
            smoothed[i] = curve[i - 1] / 4 + curve[i] / 2 + curve[i + 1] / 4;
        std::swap(curve, smoothed);
    }
    return curve;
}

std::size_t count_wrong(const float* curve, const std::vector<float>& expected) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
        wrong += !(std::abs(curve[i] - expected[i]) < 0.01F);
    return wrong;
}

void print_smoothing(int device) {
    const std::unique_ptr<lesson::Smoother> smoother = lesson::make_smoother(device, points);
    Copies copies(device, points * sizeof(float));
    Stopwatch stopwatch(device);
    smoother->smooth(1);

    std::printf(
        "\nSMOOTHING a curve of %.0f MiB on GPU %d, and what as many copies on the GPU take,\n"
        "with one copy there and one back.\n\n",
        mebibytes(points * sizeof(float)), device);
    std::printf("%9s %15s %14s %15s\n", "passes", "this smoother", "plain copies", "wrong points");
    for (const int passes : {1, 4, 16, 32}) {
        std::vector<float> curve(points);
        for (std::size_t i = 0; i < points; ++i)
            curve[i] = static_cast<float>((i * i + i * static_cast<unsigned>(passes)) % 1021);
        std::copy(curve.begin(), curve.end(), smoother->curve());
        stopwatch.restart();
        smoother->smooth(passes);
        const double seconds = stopwatch.seconds();
        const std::vector<float> expected = smooth_on_host(std::move(curve), passes);
        std::printf("%9d %12.2f ms %11.2f ms %9zu of %zu\n", passes, seconds * 1e3,
                    copies.there_and_back(passes) * 1e3, count_wrong(smoother->curve(), expected),
                    points);
    }
}

void run() {
    int device_count = 0;
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDeviceCount(&device_count));
    CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
    std::vector<int> devices(static_cast<std::size_t>(device_count));
    std::iota(devices.begin(), devices.end(), 0);

    std::printf("%d x %s\n\n", device_count, properties.name);
    print_lookups(devices);
    print_smoothing(devices.front());
}

} // namespace

int main() {
    try {
        run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "zero-copy: %s\n", error.what());
        return 1;
    }
}
