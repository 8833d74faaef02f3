#include "support/peer_selftest.hpp"

#include "support/pattern.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using Words = std::vector<std::uint32_t>;

constexpr std::size_t words = 64 << 10;
constexpr std::size_t bytes = words * sizeof(std::uint32_t);

__global__ void read(const std::uint32_t* from, std::uint32_t* to) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    to[i] = from[i];
}

/// Peer access of one GPU to another, closed at the end unless it was open before.
class Access {
public:
    Access(int reader, int owner) : reader_(reader), owner_(owner) {
        const DeviceGuard guard(reader_);
        const cudaError_t answer = cudaDeviceEnablePeerAccess(owner_, 0);
        if (answer == cudaErrorPeerAccessAlreadyEnabled) {
            cudaGetLastError();
            return;
        }
        CUDA_CHECK(answer);
        opened_ = true;
    }
    ~Access() {
        if (!opened_) return;
        int former = 0;
        cudaGetDevice(&former);
        cudaSetDevice(reader_);
        cudaDeviceDisablePeerAccess(owner_);
        cudaSetDevice(former);
    }

    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

private:
    int reader_;
    int owner_;
    bool opened_ = false;
};

class Memory {
public:
    explicit Memory(int device) : device_(device) {
        const DeviceGuard guard(device_);
        CUDA_CHECK(cudaMalloc(&data_, bytes));
    }
    ~Memory() { cudaFree(data_); }

    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    void set(const Words& from) {
        const DeviceGuard guard(device_);
        CUDA_CHECK(cudaMemcpy(data_, from.data(), bytes, cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaDeviceSynchronize());
    }

    Words get() const {
        const DeviceGuard guard(device_);
        Words to(words);
        CUDA_CHECK(cudaMemcpy(to.data(), data_, bytes, cudaMemcpyDeviceToHost));
        return to;
    }

    std::uint32_t* data() { return data_; }

private:
    int device_;
    std::uint32_t* data_ = nullptr;
};

Words words_of(std::uint64_t id) {
    Words data(words);
    for (std::size_t i = 0; i < words; ++i)
        data[i] = static_cast<std::uint32_t>(check::pattern_bits(id, i));
    return data;
}

std::string gpu(int device) {
    return "GPU " + std::to_string(device);
}

/// Lets GPU `reader` get at the memory of GPU `owner` by a kernel, and by copies both ways.
std::string fault_of(int reader, int owner) {
    const Words sent = words_of(0x5E1F);
    const Words blank = words_of(0xB1A);
    Memory far(owner);
    Memory near(reader);
    const Access access(reader, owner);
    const DeviceGuard guard(reader);

    far.set(sent);
    near.set(blank);
    read<<<words / 256, 256>>>(far.data(), near.data());
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    if (near.get() != sent)
        return "a kernel of " + gpu(reader) + " read wrong bytes from " + gpu(owner);

    near.set(blank);
    CUDA_CHECK(cudaMemcpyPeer(near.data(), reader, far.data(), owner, bytes));
    CUDA_CHECK(cudaDeviceSynchronize());
    if (near.get() != sent)
        return "a copy from " + gpu(owner) + " to " + gpu(reader) + " brought wrong bytes";

    far.set(blank);
    CUDA_CHECK(cudaMemcpyPeer(far.data(), owner, near.data(), reader, bytes));
    CUDA_CHECK(cudaDeviceSynchronize());
    if (far.get() != sent)
        return "a copy from " + gpu(reader) + " to " + gpu(owner) + " brought wrong bytes";
    return {};
}

bool can_access(int reader, int owner) {
    int can = 0;
    CUDA_CHECK(cudaDeviceCanAccessPeer(&can, reader, owner));
    return can != 0;
}

} // namespace

std::string check::peer_fault(int one, int other) {
    if (one == other) return {};
    std::string fault;
    try {
        if (can_access(one, other)) fault = fault_of(one, other);
        if (fault.empty() && can_access(other, one)) fault = fault_of(other, one);
    } catch (const CudaError& error) {
        cudaGetLastError(); // it is in the answer
        fault = std::string("trying it out failed: ") + error.what();
    }
    if (fault.empty()) return {};
    return "peer access between " + gpu(one) + " and " + gpu(other) +
           " does not work on this machine, although the driver offers it: " + fault;
}
