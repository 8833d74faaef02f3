// wrong: the second buffer of the smoother is never freed
// fails: what is gone leaves nothing behind
#include "zero-copy.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "common/event.hpp"
#include "common/stream.hpp"

#include <map>
#include <utility>

namespace {

using lesson::channels;

constexpr unsigned threads = 256;
constexpr unsigned warp_size = 32;

struct FreeDevice {
    void operator()(float* memory) const { cudaFree(memory); }
};

struct FreeHost {
    void operator()(float* memory) const { cudaFreeHost(memory); }
};

using DeviceFloats = std::unique_ptr<float[], FreeDevice>;
using MappedFloats = std::unique_ptr<float[], FreeHost>;

DeviceFloats make_device_floats(std::size_t count) {
    float* memory = nullptr;
    CUDA_CHECK(cudaMalloc(&memory, count * sizeof(float)));
    return DeviceFloats(memory);
}

MappedFloats make_mapped_floats(std::size_t count) {
    float* memory = nullptr;
    CUDA_CHECK(
        cudaHostAlloc(&memory, count * sizeof(float), cudaHostAllocMapped | cudaHostAllocPortable));
    return MappedFloats(memory);
}

/// The address by which kernels of the current device use the memory.
float* on_gpu(const MappedFloats& memory) {
    float* address = nullptr;
    CUDA_CHECK(cudaHostGetDevicePointer(&address, memory.get(), 0));
    return address;
}

unsigned blocks_for(std::size_t thread_count) {
    return static_cast<unsigned>((thread_count + threads - 1) / threads);
}

/// One warp adds up one spectrum: its lanes read neighbouring channels.
__global__ void add_up(const float* spectra, const std::uint32_t* ids, float* totals,
                       std::size_t n) {
    const std::size_t i = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / warp_size;
    const unsigned lane = threadIdx.x % warp_size;
    if (i >= n) return;
    const float* spectrum = spectra + ids[i] * channels;
    float total = 0;
    for (std::size_t channel = lane; channel < channels; channel += warp_size)
        total += spectrum[channel];
    for (unsigned distance = warp_size / 2; distance > 0; distance /= 2)
        total += __shfl_down_sync(~0U, total, distance);
    if (lane == 0) totals[i] = total;
}

__global__ void smooth_once(const float* curve, float* smoothed, std::size_t points) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= points) return;
    const bool at_end = i == 0 || i + 1 == points;
    smoothed[i] = at_end ? curve[i] : curve[i - 1] / 4 + curve[i] / 2 + curve[i + 1] / 4;
}

class HostCatalogue final : public lesson::Catalogue {
public:
    HostCatalogue(const std::vector<int>& devices, std::size_t spectra, std::size_t max_lookups)
        : spectra_(make_mapped_floats(spectra * channels)) {
        for (const int device : devices) {
            const DeviceGuard guard(device);
            Gpu& gpu = gpus_[device];
            gpu.totals = make_mapped_floats(max_lookups);
        }
    }

    float* spectra() override { return spectra_.get(); }

    void start_lookup(int device, const std::uint32_t* ids, std::size_t n,
                      cudaStream_t stream) override {
        if (n == 0) return;
        const DeviceGuard guard(device);
        Gpu& gpu = gpus_.at(device);
        add_up<<<blocks_for(n * warp_size), threads, 0, stream>>>(on_gpu(spectra_), ids,
                                                                  on_gpu(gpu.totals), n);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaEventRecord(gpu.finished, stream));
    }

    const float* finish_lookup(int device) override {
        // The kernel writes to host memory: nothing has to be copied.
        Gpu& gpu = gpus_.at(device);
        CUDA_CHECK(cudaEventSynchronize(gpu.finished));
        return gpu.totals.get();
    }

private:
    struct Gpu {
        MappedFloats totals;
        Event finished;
    };

    MappedFloats spectra_;
    std::map<int, Gpu> gpus_;
};

class CurveSmoother final : public lesson::Smoother {
public:
    explicit CurveSmoother(std::size_t points)
        : points_(points), curve_(make_mapped_floats(points)),
          device_curve_(make_device_floats(points)),
          device_smoothed_(make_device_floats(points).release()) {}

    float* curve() override { return curve_.get(); }

    void smooth(int passes) override {
        const DeviceGuard guard(stream_.device());
        float* from = device_curve_.get();
        float* to = device_smoothed_;
        CUDA_CHECK(cudaMemcpyAsync(from, curve_.get(), bytes(), cudaMemcpyHostToDevice, stream_));
        for (int pass = 0; pass < passes; ++pass) {
            smooth_once<<<blocks_for(points_), threads, 0, stream_>>>(from, to, points_);
            CUDA_CHECK(cudaGetLastError());
            std::swap(from, to);
        }
        CUDA_CHECK(cudaMemcpyAsync(curve_.get(), from, bytes(), cudaMemcpyDeviceToHost, stream_));
        CUDA_CHECK(cudaStreamSynchronize(stream_));
    }

private:
    std::size_t bytes() const { return points_ * sizeof(float); }

    std::size_t points_;
    MappedFloats curve_;
    DeviceFloats device_curve_;
    float* device_smoothed_;
    Stream stream_;
};

} // namespace

std::unique_ptr<lesson::Catalogue> lesson::make_catalogue(const std::vector<int>& devices,
                                                          std::size_t spectra,
                                                          std::size_t max_lookups) {
    const DeviceGuard guard(devices.front());
    return std::make_unique<HostCatalogue>(devices, spectra, max_lookups);
}

std::unique_ptr<lesson::Smoother> lesson::make_smoother(int device, std::size_t points) {
    const DeviceGuard guard(device);
    return std::make_unique<CurveSmoother>(points);
}
