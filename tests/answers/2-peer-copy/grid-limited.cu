// wrong: the kernels that exchange have at most 65535 blocks, and one cell a thread
// fails at least: levels cross at the rate of the link
#include "peer-copy.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "common/event.hpp"

#include <algorithm>

namespace {

using lesson::Basin;
using lesson::Side;

__global__ void subtract(const float* near, const float* far, float* flow, std::size_t shore) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < shore) flow[i] = near[i] - far[i];
}

__global__ void fetch(const float* from, float* to, std::size_t cells) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < cells) to[i] = from[i];
}

struct FreeDevice {
    void operator()(float* memory) const { cudaFree(memory); }
};

using DeviceLevels = std::unique_ptr<float[], FreeDevice>;

DeviceLevels make_levels(int device, std::size_t cells) {
    const DeviceGuard guard(device);
    float* memory = nullptr;
    CUDA_CHECK(cudaMalloc(&memory, cells * sizeof(float)));
    return DeviceLevels(memory);
}

Event make_event(int device) {
    const DeviceGuard guard(device);
    return Event(cudaEventDisableTiming);
}

/// Opens the memory of GPU `owner` to kernels of GPU `reader`. False when there is no way.
bool open_access(int owner, int reader) {
    if (owner == reader) return true;
    int can = 0;
    CUDA_CHECK(cudaDeviceCanAccessPeer(&can, reader, owner));
    if (!can) return false;
    const DeviceGuard guard(reader);
    const cudaError_t answer = cudaDeviceEnablePeerAccess(owner, 0);
    if (answer == cudaErrorPeerAccessAlreadyEnabled) {
        cudaGetLastError(); // as wanted; nobody is to find this error later
        return true;
    }
    CUDA_CHECK(answer);
    return true;
}

class PeerStrait final : public lesson::Strait {
public:
    PeerStrait(Side first, Side second, std::size_t shore)
        : first_(first), second_(second), shore_(shore), first_done_(make_event(first.device)),
          second_done_(make_event(second.device)) {
        const bool second_reads = open_access(first.device, second.device);
        const bool first_reads = open_access(second.device, first.device);
        kernels_ = first_reads && second_reads && first.device != second.device;
        if (!first_reads) far_copy_ = make_levels(first.device, shore);
    }

    void exchange(const Basin& first, const Basin& second, std::size_t cells) override {
        meet();
        send(first.levels, first_, second.neighbour, second_, cells);
        send(second.levels, second_, first.neighbour, first_, cells);
        meet();
    }

    void measure_flow(const float* near, const float* far, float* flow) override {
        meet();
        const DeviceGuard guard(first_.device);
        if (far_copy_) {
            send(far, second_, far_copy_.get(), first_, shore_);
            meet();
            far = far_copy_.get();
        }
        constexpr unsigned threads = 256;
        const auto blocks = static_cast<unsigned>((shore_ + threads - 1) / threads);
        subtract<<<blocks, threads, 0, first_.stream>>>(near, far, flow, shore_);
        CUDA_CHECK(cudaGetLastError());
        meet();
    }

private:
    void send(const float* levels, Side from, float* neighbour, Side to, std::size_t cells) const {
        if (kernels_) {
            const DeviceGuard guard(to.device);
            const auto blocks =
                static_cast<unsigned>(std::min<std::size_t>((cells + 255) / 256, 65535));
            if (blocks == 0) return;
            fetch<<<blocks, 256, 0, to.stream>>>(levels, neighbour, cells);
            CUDA_CHECK(cudaGetLastError());
            return;
        }
        CUDA_CHECK(cudaMemcpyPeerAsync(neighbour, to.device, levels, from.device,
                                       cells * sizeof(float), from.stream));
    }

    /// What is put in either stream from now on waits for what is in both.
    void meet() {
        CUDA_CHECK(cudaEventRecord(first_done_, first_.stream));
        CUDA_CHECK(cudaEventRecord(second_done_, second_.stream));
        CUDA_CHECK(cudaStreamWaitEvent(first_.stream, second_done_, 0));
        CUDA_CHECK(cudaStreamWaitEvent(second_.stream, first_done_, 0));
    }

    Side first_;
    Side second_;
    std::size_t shore_;
    Event first_done_;
    Event second_done_;
    bool kernels_;
    DeviceLevels far_copy_; ///< on the first side, where it cannot read the second one's memory
};

} // namespace

std::unique_ptr<lesson::Strait> lesson::make_strait(Side first, Side second, std::size_t shore) {
    return std::make_unique<PeerStrait>(first, second, shore);
}
