// Much at a time: streams, queued work, host threads, memory.
#include "support/catch.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "common/event.hpp"
#include "common/stream.hpp"
#include "conformance/kernels.hpp"
#include "support/devices.hpp"
#include "support/pattern.hpp"

#include <cuda_runtime_api.h>

#include <atomic>
#include <thread>
#include <vector>

using namespace conformance;

namespace {

/// Releases device memory at the end of a scope.
class DeviceMemory {
public:
    explicit DeviceMemory(std::size_t bytes) { CUDA_CHECK(cudaMalloc(&memory_, bytes)); }
    ~DeviceMemory() { cudaFree(memory_); }
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    template <class T> T* as() const { return static_cast<T*>(memory_); }

private:
    void* memory_ = nullptr;
};

/// What each of several host threads does: its own stream, its own memory, many rounds. Returns how
/// many numbers came back wrong.
int count_wrong(int device, int thread) {
    constexpr int count = 257, rounds = 50;
    const DeviceGuard guard(device);
    const Stream stream;
    const DeviceMemory memory(2 * count * sizeof(int));
    auto* from = memory.as<int>();
    std::vector<int> got(count);
    int wrong = 0;
    for (int round = 0; round < rounds; ++round) {
        const int first = 1000 * thread + round;
        CUDA_CHECK(count_up(from, count, first, stream));
        CUDA_CHECK(copy(from + count, from, count, stream));
        CUDA_CHECK(cudaMemcpyAsync(got.data(), from + count, count * sizeof(int),
                                   cudaMemcpyDeviceToHost, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
        for (int i = 0; i < count; ++i)
            wrong += got[static_cast<std::size_t>(i)] != first + i;
    }
    return wrong;
}

} // namespace

TEST_CASE("a thousand streams hold a hundred thousand pieces of work") {
    check::require_devices(1);
    constexpr std::size_t streams = 1000, rounds = 50;
    const DeviceMemory memory(streams * sizeof(int));
    std::vector<Stream> all(streams);
    for (std::size_t round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < streams; ++i) {
            auto* place = memory.as<char>() + i * sizeof(int);
            CUDA_CHECK(cudaMemsetAsync(place, static_cast<int>(round), sizeof(int), all[i]));
            CUDA_CHECK(cudaMemsetAsync(place, static_cast<int>(i % 100), 1, all[i]));
        }
    }
    CUDA_CHECK(cudaDeviceSynchronize());
    std::vector<unsigned char> got(streams * sizeof(int));
    CUDA_CHECK(cudaMemcpy(got.data(), memory.as<void>(), got.size(), cudaMemcpyDeviceToHost));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < streams; ++i)
        wrong += got[i * sizeof(int)] != i % 100 || got[i * sizeof(int) + 1] != rounds - 1;
    CHECK(wrong == 0);
}

TEST_CASE("eight host threads work at the same time") {
    check::require_devices(1);
    const int devices = check::device_count();
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&wrong, devices, i] { wrong += count_wrong(i % devices, i); });
    for (std::thread& thread : threads)
        thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("a device gives what it has and then says that it has no more") {
    check::require_devices(1);
    std::size_t free = 0, total = 0;
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    void* too_much = nullptr;
    CHECK(cudaMalloc(&too_much, total + 1) == cudaErrorMemoryAllocation);
    CHECK(too_much == nullptr);
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);

    std::vector<void*> parts;
    const std::size_t part = total / 8;
    void* next = nullptr;
    while (parts.size() < 8 && cudaMalloc(&next, part) == cudaSuccess)
        parts.push_back(next);
    CHECK(parts.size() < 8);
    CHECK(parts.size() >= free / part);
    cudaGetLastError();
    for (void* memory : parts)
        CHECK(cudaFree(memory) == cudaSuccess);
    CHECK(cudaMalloc(&next, part) == cudaSuccess);
    CHECK(cudaFree(next) == cudaSuccess);
}
