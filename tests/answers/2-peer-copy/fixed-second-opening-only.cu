// wrong: only the second opening is no failure any more, and leaves no error
// fails: the flow is right where one GPU can read the other; the far shore is read where it
// lies; shores of any length; the flow waits for both shores; the far shore can change after
// the call; access stays open for those who still need it; without peer access everything still
// arrives; without peer access the order holds; one GPU can be on both sides; on one GPU the
// order holds; levels do not crawl without peer access; on one GPU levels move at the rate of
// its memory; levels cross at the rate of the link
#include "peer-copy.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "common/event.hpp"

#include <vector>

namespace {

using lesson::Basin;
using lesson::Side;

__global__ void subtract(const float* near, const float* far, float* flow, std::size_t shore) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < shore) flow[i] = near[i] - far[i];
}

Event make_event(int device) {
    const DeviceGuard guard(device);
    return Event(cudaEventDisableTiming);
}

/// Opens the memory of GPU `owner` to kernels of GPU `reader`.
void open_access(int owner, int reader) {
    const DeviceGuard guard(owner);
    const cudaError_t answer = cudaDeviceEnablePeerAccess(reader, 0);
    if (answer == cudaErrorPeerAccessAlreadyEnabled) {
        cudaGetLastError();
        return;
    }
    CUDA_CHECK(answer);
}

class PeerStrait final : public lesson::Strait {
public:
    PeerStrait(Side first, Side second, std::size_t shore)
        : first_(first), second_(second), shore_(shore), first_done_(make_event(first.device)),
          second_done_(make_event(second.device)) {
        open_access(second.device, first.device);
    }

    void exchange(const Basin& first, const Basin& second, std::size_t cells) override {
        send(first.levels, first_, second.neighbour, second_, cells);
        send(second.levels, second_, first.neighbour, first_, cells);
    }

    void measure_flow(const float* near, const float* far, float* flow) override {
        meet();
        const DeviceGuard guard(first_.device);
        constexpr unsigned threads = 256;
        const auto blocks = static_cast<unsigned>((shore_ + threads - 1) / threads);
        subtract<<<blocks, threads, 0, first_.stream>>>(near, far, flow, shore_);
        CUDA_CHECK(cudaGetLastError());
        meet();
    }

private:
    static void send(const float* levels, Side from, float* neighbour, Side to, std::size_t cells) {
        std::vector<float> message(cells);
        const std::size_t bytes = cells * sizeof(float);
        CUDA_CHECK(
            cudaMemcpyAsync(message.data(), levels, bytes, cudaMemcpyDeviceToHost, from.stream));
        CUDA_CHECK(cudaStreamSynchronize(from.stream));
        CUDA_CHECK(
            cudaMemcpyAsync(neighbour, message.data(), bytes, cudaMemcpyHostToDevice, to.stream));
        CUDA_CHECK(cudaStreamSynchronize(to.stream));
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
};

} // namespace

std::unique_ptr<lesson::Strait> lesson::make_strait(Side first, Side second, std::size_t shore) {
    return std::make_unique<PeerStrait>(first, second, shore);
}
