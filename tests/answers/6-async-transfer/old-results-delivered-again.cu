// wrong: a lane still counts as full once its chunk has been handed over
// fails at least: one GPU: slow copies mix nothing up
#include "async-transfer.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "common/event.hpp"
#include "common/stream.hpp"

#include <algorithm>
#include <cstdint>

namespace {

using lesson::Level;
using lesson::Reading;
using lesson::Sink;
using lesson::Source;

constexpr std::size_t lanes_per_gpu = 3;
constexpr unsigned threads = 256;

unsigned blocks_for(std::size_t count) {
    return static_cast<unsigned>((count + threads - 1) / threads);
}

struct FreeDevice {
    void operator()(void* memory) const { cudaFree(memory); }
};

struct FreeHost {
    void operator()(void* memory) const { cudaFreeHost(memory); }
};

template <typename T> using DeviceArray = std::unique_ptr<T[], FreeDevice>;
template <typename T> using HostArray = std::unique_ptr<T[], FreeHost>;

template <typename T> DeviceArray<T> make_device_array(std::size_t count) {
    void* memory = nullptr;
    CUDA_CHECK(cudaMalloc(&memory, count * sizeof(T)));
    return DeviceArray<T>(static_cast<T*>(memory));
}

template <typename T> HostArray<T> make_host_array(std::size_t count) {
    void* memory = nullptr;
    CUDA_CHECK(cudaMallocHost(&memory, count * sizeof(T)));
    return HostArray<T>(static_cast<T*>(memory));
}

__global__ void find_levels(const Reading* readings, Level* levels, std::size_t count,
                            const Reading* thresholds) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const Reading reading = readings[i];
    unsigned level = 0;
    for (unsigned half = lesson::levels / 2; half > 0; half /= 2) {
        if (thresholds[level + half - 1] <= reading) level += half;
    }
    levels[i] = static_cast<Level>(level);
}

__global__ void find_steps(const Level* levels, const Level* before, Level* steps,
                           std::size_t count) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= count) return;
    steps[i] = levels[i] - (i == 0 ? *before : levels[i - 1]);
}

/// Lets the GPU's pool keep what is freed, for the next chunk.
void keep_pool_memory(int device) {
    cudaMemPool_t pool = nullptr;
    std::uint64_t threshold = UINT64_MAX;
    CUDA_CHECK(cudaDeviceGetMemPool(&pool, device));
    CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
}

/// A place on a GPU for one chunk, and what the GPU needs to work on it. Two lanes on a GPU make a
/// double buffer; with a third, one chunk can come up, one be worked on and one go down at once.
struct Lane {
    Lane(int device, const std::vector<Reading>& sensor, std::size_t chunk)
        : device(device), thresholds(make_device_array<Reading>(sensor.size())),
          readings(make_device_array<Reading>(chunk)), results(make_device_array<Level>(chunk)),
          before(make_device_array<Level>(1)), staging(make_host_array<Reading>(chunk)),
          host_results(make_host_array<Level>(chunk)) {
        CUDA_CHECK(cudaMemcpy(thresholds.get(), sensor.data(), sensor.size() * sizeof(Reading),
                              cudaMemcpyHostToDevice));
        // A copy from pageable memory may still be on its way when cudaMemcpy returns.
        CUDA_CHECK(cudaDeviceSynchronize());
    }

    int device;
    DeviceArray<Reading> thresholds;
    DeviceArray<Reading> readings;
    DeviceArray<Level> results;
    DeviceArray<Level> before; // the level in front of the chunk's first
    HostArray<Reading> staging;
    HostArray<Level> host_results;
    Stream stream;
    Event sent{cudaEventDisableTiming};    // the chunk's last level is where the next one needs it
    Event stepped{cudaEventDisableTiming}; // `before` is no longer needed
    std::size_t first = 0;
    std::size_t count = 0; // 0: no chunk is here
};

/// Takes chunks up and down. What happens to them on the GPU is up to the derived classes.
class ChunkPipeline : public lesson::Pipeline {
public:
    ChunkPipeline(const std::vector<int>& devices, const std::vector<Reading>& sensor,
                  std::size_t chunk)
        : chunk_(chunk) {
        // Chunks take the lanes in this order: neighbours are on different GPUs.
        for (std::size_t i = 0; i < lanes_per_gpu * devices.size(); ++i) {
            const int device = devices[i % devices.size()];
            const DeviceGuard guard(device);
            lanes_.emplace_back(device, sensor, chunk);
        }
    }

    void run(std::size_t count, const Source& source, const Sink& sink) override {
        const std::size_t chunks = (count + chunk_ - 1) / chunk_;
        for (std::size_t number = 0; number < chunks; ++number) {
            Lane& lane = lane_of(number);
            hand_over(lane, sink);
            lane.first = number * chunk_;
            lane.count = std::min(chunk_, count - lane.first);
            upload(lane, source);
            process(lane_of(number + lanes_.size() - 1), lane, lane_of(number + 1));
            // Not before: in the queue of the copies, the way up goes first.
            if (number > 0) download(lane_of(number - 1));
        }
        if (chunks > 0) download(lane_of(chunks - 1));
        for (std::size_t i = 0; i < lanes_.size(); ++i)
            hand_over(lane_of(chunks + i), sink);
    }

private:
    /// Starts the kernels for the chunk in `lane`. The one in front of it is or was in `previous`,
    /// the one that follows will come to `next`.
    virtual void process(Lane& previous, Lane& lane, Lane& next) = 0;

    Lane& lane_of(std::size_t number) { return lanes_[number % lanes_.size()]; }

    void upload(Lane& lane, const Source& source) {
        const DeviceGuard guard(lane.device);
        source(lane.first, lane.count, lane.staging.get());
        CUDA_CHECK(cudaMemcpyAsync(lane.readings.get(), lane.staging.get(),
                                   lane.count * sizeof(Reading), cudaMemcpyHostToDevice,
                                   lane.stream));
    }

    void download(Lane& lane) {
        const DeviceGuard guard(lane.device);
        CUDA_CHECK(cudaMemcpyAsync(lane.host_results.get(), lane.results.get(),
                                   lane.count * sizeof(Level), cudaMemcpyDeviceToHost,
                                   lane.stream));
    }

    /// Waits for the chunk in `lane`, if there is one, and empties the lane.
    void hand_over(Lane& lane, const Sink& sink) {
        if (lane.count == 0) return;
        const DeviceGuard guard(lane.device);
        CUDA_CHECK(cudaStreamSynchronize(lane.stream));
        sink(lane.first, lane.count, lane.host_results.get());
    }

    std::size_t chunk_;
    std::vector<Lane> lanes_;
};

class LevelPipeline final : public ChunkPipeline {
public:
    using ChunkPipeline::ChunkPipeline;

private:
    void process(Lane&, Lane& lane, Lane&) override {
        const DeviceGuard guard(lane.device);
        lesson::start_levels(lane.readings.get(), lane.results.get(), lane.count,
                             lane.thresholds.get(), lane.stream);
    }
};

class StepPipeline final : public ChunkPipeline {
public:
    StepPipeline(const std::vector<int>& devices, const std::vector<Reading>& sensor,
                 std::size_t chunk)
        : ChunkPipeline(devices, sensor, chunk) {
        for (int device : devices)
            keep_pool_memory(device);
    }

private:
    void process(Lane& previous, Lane& lane, Lane& next) override {
        const DeviceGuard guard(lane.device);
        Level* levels = nullptr;
        CUDA_CHECK(cudaMallocAsync(&levels, lane.count * sizeof(Level), lane.stream));
        lesson::start_levels(lane.readings.get(), levels, lane.count, lane.thresholds.get(),
                             lane.stream);
        CUDA_CHECK(cudaStreamWaitEvent(lane.stream, next.stepped, 0));
        CUDA_CHECK(cudaMemcpyPeerAsync(next.before.get(), next.device, levels + lane.count - 1,
                                       lane.device, sizeof(Level), lane.stream));
        CUDA_CHECK(cudaEventRecord(lane.sent, lane.stream));
        if (lane.first == 0) {
            CUDA_CHECK(cudaMemsetAsync(lane.before.get(), 0, sizeof(Level), lane.stream));
        } else {
            CUDA_CHECK(cudaStreamWaitEvent(lane.stream, previous.sent, 0));
        }
        find_steps<<<blocks_for(lane.count), threads, 0, lane.stream>>>(
            levels, lane.before.get(), lane.results.get(), lane.count);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaEventRecord(lane.stepped, lane.stream));
        CUDA_CHECK(cudaFreeAsync(levels, lane.stream));
    }
};

} // namespace

void lesson::start_levels(const Reading* readings, Level* levels, std::size_t count,
                          const Reading* thresholds, cudaStream_t stream) {
    find_levels<<<blocks_for(count), threads, 0, stream>>>(readings, levels, count, thresholds);
    CUDA_CHECK(cudaGetLastError());
}

std::unique_ptr<lesson::Pipeline>
lesson::make_level_pipeline(int device, const std::vector<Reading>& thresholds, std::size_t chunk) {
    return std::make_unique<LevelPipeline>(std::vector<int>{device}, thresholds, chunk);
}

std::unique_ptr<lesson::Pipeline> lesson::make_step_pipeline(const std::vector<int>& devices,
                                                             const std::vector<Reading>& thresholds,
                                                             std::size_t chunk) {
    return std::make_unique<StepPipeline>(devices, thresholds, chunk);
}
