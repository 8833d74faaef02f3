// wrong: registers as many bytes as there are pixels: only a quarter of each buffer is pinned
// fails at least: the upload buffer is pinned
#include "pinned-memory.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "common/stream.hpp"

#include <vector>

namespace {

struct FreeDevice {
    void operator()(float* memory) const { cudaFree(memory); }
};

using DeviceFrame = std::unique_ptr<float[], FreeDevice>;

DeviceFrame make_device_frame(std::size_t pixels) {
    float* memory = nullptr;
    CUDA_CHECK(cudaMalloc(&memory, pixels * sizeof(float)));
    return DeviceFrame(memory);
}

class RegisteredFrame {
public:
    explicit RegisteredFrame(std::size_t pixels) : memory_(pixels) {
        CUDA_CHECK(cudaHostRegister(memory_.data(), pixels, cudaHostRegisterDefault));
    }
    ~RegisteredFrame() { cudaHostUnregister(memory_.data()); }
    RegisteredFrame(const RegisteredFrame&) = delete;
    RegisteredFrame& operator=(const RegisteredFrame&) = delete;
    float* get() { return memory_.data(); }

private:
    std::vector<float> memory_;
};

__global__ void find_edges(const float* frame, float* edges, std::size_t pixels) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    edges[i] = i == 0 ? frame[0] : frame[i] - frame[i - 1];
}

class Pipeline final : public lesson::FramePipeline {
public:
    explicit Pipeline(std::size_t pixels)
        : pixels_(pixels), frame_(pixels), result_(pixels),
          device_frame_(make_device_frame(pixels)), device_result_(make_device_frame(pixels)) {}

    float* next_frame() override { return frame_.get(); }

    void upload() override {
        CUDA_CHECK(cudaMemcpyAsync(device_frame_.get(), frame_.get(), bytes(),
                                   cudaMemcpyHostToDevice, stream_));
        CUDA_CHECK(cudaStreamSynchronize(stream_));
    }

    void process() override {
        const DeviceGuard guard(stream_.device());
        constexpr unsigned threads = 256;
        const auto blocks = static_cast<unsigned>((pixels_ + threads - 1) / threads);
        find_edges<<<blocks, threads, 0, stream_>>>(device_frame_.get(), device_result_.get(),
                                                    pixels_);
        CUDA_CHECK(cudaGetLastError());
    }

    const float* download() override {
        CUDA_CHECK(cudaMemcpyAsync(result_.get(), device_result_.get(), bytes(),
                                   cudaMemcpyDeviceToHost, stream_));
        CUDA_CHECK(cudaStreamSynchronize(stream_));
        return result_.get();
    }

private:
    std::size_t bytes() const { return pixels_ * sizeof(float); }

    std::size_t pixels_;
    RegisteredFrame frame_;
    RegisteredFrame result_;
    DeviceFrame device_frame_;
    DeviceFrame device_result_;
    Stream stream_;
};

} // namespace

std::unique_ptr<lesson::FramePipeline> lesson::make_frame_pipeline(int device, std::size_t pixels) {
    const DeviceGuard guard(device);
    return std::make_unique<Pipeline>(pixels);
}
