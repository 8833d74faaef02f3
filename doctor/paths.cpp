#include "paths.hpp"

#include "memory.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "common/stream.hpp"
#include "sim/figures/kernels.hpp"
#include "support/delay.hpp"

#include <chrono>
#include <cstring>

namespace doctor {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t pool_bytes = std::size_t{64} << 20;
constexpr std::uint64_t sent = 1;
constexpr std::uint64_t returned = 2;

Work copy(void* to, const void* from, std::size_t bytes) {
    return [=](cudaStream_t stream) {
        CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
    };
}

Work kernel_copy(void* to, const void* from, std::size_t bytes) {
    return [=](cudaStream_t stream) { launch_copy(to, from, bytes, stream); };
}

Figure rate(int device, std::size_t bytes, const Work& work) {
    return gigabytes_per_second(bytes, [&] { return seconds_behind_gate(device, work); });
}

/// A copy from or to pageable memory holds up the host, so there is no gate for it.
Figure blocking_rate(int device, void* to, const void* from, std::size_t bytes) {
    return gigabytes_per_second(bytes, [&] {
        return seconds_on_host(device,
                               [&] { CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDefault)); });
    });
}

void copy_now(void* to, const void* from, std::size_t bytes) {
    CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
    CUDA_CHECK(cudaDeviceSynchronize());
}

/// Host memory and memory of one GPU, and the question whether bytes arrive.
class HostAndGpu {
public:
    explicit HostAndGpu(int device)
        : device_(device), bytes_(effort().bytes), up_(pinned_memory(bytes_)),
          down_(pinned_memory(bytes_)), in_(device_memory(device, bytes_)),
          out_(device_memory(device, bytes_)), pageable_(bytes_) {
        write_pattern(up_.get(), bytes_, sent);
    }

    void measure_copies(GpuPaths& paths) {
        write_pattern(pageable_.data(), bytes_, returned);
        paths.h2d_pageable = blocking_rate(device_, in_.get(), pageable_.data(), bytes_);
        paths.arrived &= on_gpu(in_, returned);
        paths.h2d_pinned = rate(device_, bytes_, copy(in_.get(), up_.get(), bytes_));
        paths.arrived &= on_gpu(in_, sent);
        paths.d2h_pageable = blocking_rate(device_, pageable_.data(), in_.get(), bytes_);
        paths.arrived &= has_pattern(pageable_.data(), bytes_, sent);
        forget(down_);
        paths.d2h_pinned = rate(device_, bytes_, copy(down_.get(), in_.get(), bytes_));
        paths.arrived &= has_pattern(down_.get(), bytes_, sent);
        paths.inside_copy = rate(device_, bytes_, copy(out_.get(), in_.get(), bytes_));
        paths.arrived &= on_gpu(out_, sent);
        forget(down_);
        paths.both_ways = gigabytes_per_second(2 * bytes_, [&] {
            return seconds_of_both(device_, copy(in_.get(), up_.get(), bytes_), device_,
                                   copy(down_.get(), out_.get(), bytes_));
        });
        paths.arrived &= has_pattern(down_.get(), bytes_, sent);
    }

    void measure_kernels(GpuPaths& paths) {
        forget(in_);
        paths.zero_copy_read = rate(device_, bytes_, kernel_copy(in_.get(), up_.get(), bytes_));
        paths.arrived &= on_gpu(in_, sent);
        forget(down_);
        paths.zero_copy_write = rate(device_, bytes_, kernel_copy(down_.get(), in_.get(), bytes_));
        paths.arrived &= has_pattern(down_.get(), bytes_, sent);
        forget(out_);
        paths.inside_kernel = rate(device_, bytes_, kernel_copy(out_.get(), in_.get(), bytes_));
        paths.arrived &= on_gpu(out_, sent);
    }

    /// A copy beside a kernel that leaves the memory alone and takes as long.
    void measure_overlap(GpuPaths& paths) {
        const Work up = copy(in_.get(), up_.get(), bytes_);
        const double copy_seconds = seconds_behind_gate(device_, up);
        const auto time = std::chrono::microseconds(static_cast<long>(copy_seconds * 1e6));
        const Work kernel = [&](cudaStream_t stream) { check::delay(device_, stream, time); };
        paths.copy_alone = copy_seconds * 1e3;
        paths.kernel_alone = seconds_behind_gate(device_, kernel) * 1e3;
        paths.copy_and_kernel = seconds_of_both(device_, up, device_, kernel) * 1e3;
    }

private:
    void forget(const PinnedMemory& memory) { std::memset(memory.get(), 0, bytes_); }
    void forget(const DeviceMemory& memory) { CUDA_CHECK(cudaMemset(memory.get(), 0, bytes_)); }

    bool on_gpu(const DeviceMemory& memory, std::uint64_t id) {
        forget(down_);
        copy_now(down_.get(), memory.get(), bytes_);
        return has_pattern(down_.get(), bytes_, id);
    }

    int device_;
    std::size_t bytes_;
    PinnedMemory up_, down_;
    DeviceMemory in_, out_;
    std::vector<char> pageable_;
};

/// A pool of its own, so that the device's pools stay as they are.
class Pool {
public:
    explicit Pool(int device) {
        cudaMemPoolProps properties{};
        properties.allocType = cudaMemAllocationTypePinned;
        properties.location.type = cudaMemLocationTypeDevice;
        properties.location.id = device;
        CUDA_CHECK(cudaMemPoolCreate(&pool_, &properties));
    }
    ~Pool() { cudaMemPoolDestroy(pool_); }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    void keep_freed_memory() {
        std::uint64_t threshold = UINT64_MAX;
        CUDA_CHECK(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &threshold));
    }

    /// A temporary that is given back, and a wait: a step of an iterative program.
    void step(cudaStream_t stream) {
        void* memory = nullptr;
        CUDA_CHECK(cudaMallocFromPoolAsync(&memory, pool_bytes, pool_, stream));
        CUDA_CHECK(cudaFreeAsync(memory, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
    }

private:
    cudaMemPool_t pool_ = nullptr;
};

void measure_allocation(int device, GpuPaths& paths) {
    const Stream stream;
    paths.malloc_and_free = microseconds([&] {
        return seconds_on_host(device, [&] {
            void* memory = nullptr;
            CUDA_CHECK(cudaMalloc(&memory, pool_bytes));
            CUDA_CHECK(cudaFree(memory));
        });
    });
    Pool pool(device);
    const auto step = [&] { return seconds_on_host(device, [&] { pool.step(stream); }); };
    paths.pool_cold = step() * 1e6;
    paths.pool_trimmed = microseconds(step);
    pool.keep_freed_memory();
    paths.pool_kept = microseconds(step);
}

/// Peer access in both directions between two GPUs, as far as there is any, closed at the end.
class Access {
public:
    Access(int one, int other) : one_(one), other_(other) {
        open(one, other);
        open(other, one);
    }
    ~Access() {
        close(one_, other_);
        close(other_, one_);
    }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

private:
    static void open(int reader, int owner) {
        int possible = 0;
        CUDA_CHECK(cudaDeviceCanAccessPeer(&possible, reader, owner));
        if (!possible) return;
        const DeviceGuard guard(reader);
        CUDA_CHECK(cudaDeviceEnablePeerAccess(owner, 0));
    }
    static void close(int reader, int owner) {
        int former = 0;
        cudaGetDevice(&former);
        cudaSetDevice(reader);
        if (cudaDeviceDisablePeerAccess(owner) != cudaSuccess) cudaGetLastError();
        cudaSetDevice(former);
    }

    int one_, other_;
};

/// Memory on two GPUs, and a place on the host to look at what has come.
class TwoGpus {
public:
    TwoGpus(int from, int to)
        : from_(from), to_(to), bytes_(effort().bytes), host_(pinned_memory(bytes_)),
          source_(device_memory(from, bytes_)), target_(device_memory(to, bytes_)),
          back_source_(device_memory(to, bytes_)), back_target_(device_memory(from, bytes_)) {
        write_pattern(host_.get(), bytes_, sent);
        copy_now(source_.get(), host_.get(), bytes_);
        write_pattern(host_.get(), bytes_, returned);
        const DeviceGuard guard(to);
        copy_now(back_source_.get(), host_.get(), bytes_);
    }

    Figure copy_rate(PairPaths& paths, const char* name) {
        forget_target();
        const Figure figure = rate(from_, bytes_, there());
        expect(target_, sent, paths, name);
        return figure;
    }

    Figure kernel_read_rate(PairPaths& paths) {
        forget_target();
        const Figure figure = rate(to_, bytes_, kernel_copy(target_.get(), source_.get(), bytes_));
        expect(target_, sent, paths, "a kernel's reads");
        return figure;
    }

    Figure rate_both_ways(PairPaths& paths) {
        forget_target();
        const Work back = peer_copy(back_target_.get(), from_, back_source_.get(), to_, bytes_);
        const Figure figure = gigabytes_per_second(
            2 * bytes_, [&] { return seconds_of_both(from_, there(), to_, back); });
        expect(target_, sent, paths, "copies in both directions");
        expect(back_target_, returned, paths, "copies in both directions");
        return figure;
    }

    Figure latency() {
        constexpr int copies = 100;
        const Work one = peer_copy(target_.get(), to_, source_.get(), from_, 4);
        const Work many = [&](cudaStream_t stream) {
            for (int i = 0; i < copies; ++i)
                one(stream);
        };
        return microseconds([&] { return seconds_behind_gate(from_, many, 2ms); }, copies);
    }

private:
    static Work peer_copy(void* to, int to_device, const void* from, int from_device,
                          std::size_t bytes) {
        return [=](cudaStream_t stream) {
            CUDA_CHECK(cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, stream));
        };
    }
    Work there() const { return peer_copy(target_.get(), to_, source_.get(), from_, bytes_); }

    void forget_target() {
        const DeviceGuard guard(to_);
        CUDA_CHECK(cudaMemset(target_.get(), 0, bytes_));
        CUDA_CHECK(cudaDeviceSynchronize());
    }

    void expect(const DeviceMemory& memory, std::uint64_t id, PairPaths& paths, const char* name) {
        std::memset(host_.get(), 0, bytes_);
        copy_now(host_.get(), memory.get(), bytes_);
        if (!has_pattern(host_.get(), bytes_, id) && paths.fault.empty())
            paths.fault = std::string(name) + " brought wrong bytes";
    }

    int from_, to_;
    std::size_t bytes_;
    PinnedMemory host_;
    DeviceMemory source_, target_, back_source_, back_target_;
};

} // namespace

GpuPaths measure_gpu(int device) {
    const DeviceGuard guard(device);
    GpuPaths paths;
    HostAndGpu memory(device);
    memory.measure_copies(paths);
    memory.measure_kernels(paths);
    memory.measure_overlap(paths);
    measure_allocation(device, paths);
    return paths;
}

PairPaths measure_pair(int from, int to) {
    PairPaths paths;
    int possible = 0;
    CUDA_CHECK(cudaDeviceCanAccessPeer(&possible, to, from));
    paths.possible = possible != 0;
    const DeviceGuard guard(from);
    try {
        TwoGpus memory(from, to);
        paths.copy_without_access = memory.copy_rate(paths, "copies without peer access");
        paths.latency = memory.latency();
        if (!paths.possible) return paths;
        const Access access(from, to);
        paths.copy_with_access = memory.copy_rate(paths, "copies with peer access");
        paths.kernel_read = memory.kernel_read_rate(paths);
        paths.both_ways = memory.rate_both_ways(paths);
        paths.latency = memory.latency();
    } catch (const CudaError& error) {
        paths.fault = error.what();
        // The memory of a GPU that has had a fault is lost, and so is this process.
        if (cudaGetLastError(); cudaDeviceSynchronize() != cudaSuccess) throw;
    }
    return paths;
}

} // namespace doctor
