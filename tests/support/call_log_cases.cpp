// The call log: what it records, refuses and counts.
#include "support/call_log.hpp"

#include "support/catch.hpp"
#include "support/delay.hpp"
#include "support/devices.hpp"
#include "support/pattern.hpp"
#include "support/untouched.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "common/event.hpp"
#include "common/stopwatch.hpp"
#include "common/stream.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

TEST_CASE("calls are recorded in their order, with their arguments", "[pts:1]") {
    const DeviceGuard guard(check::target_device());
    const Stream stream;
    std::vector<char> host(100);
    void* memory = nullptr;

    const check::CallLog log;
    CUDA_CHECK(cudaMalloc(&memory, 100));
    CUDA_CHECK(cudaMemcpyAsync(memory, host.data(), 60, cudaMemcpyHostToDevice, stream));
    std::thread([&] { cudaFree(memory); }).join();

    const std::vector<check::Call> calls = log.calls();
    REQUIRE(calls.size() == 3);
    CHECK(calls[0].name == "cudaMalloc");
    CHECK(calls[0].bytes == 100);
    CHECK(calls[0].pointer == memory);
    CHECK(calls[0].device == check::target_device());
    CHECK(calls[1].name == "cudaMemcpyAsync");
    CHECK(calls[1].pointer == memory);
    CHECK(calls[1].source == host.data());
    CHECK(calls[1].bytes == 60);
    CHECK(calls[1].kind == cudaMemcpyHostToDevice);
    CHECK(calls[1].stream == static_cast<cudaStream_t>(stream));
    CHECK(calls[2].name == "cudaFree");
    CHECK(calls[2].thread != calls[1].thread);
    CHECK(calls[2].device == 0);
    CHECK(log.failed_calls().empty());
}

TEST_CASE("nothing is recorded once the log is gone", "[pts:1]") {
    void* memory = nullptr;
    { const check::CallLog log; }
    CUDA_CHECK(cudaMalloc(&memory, 100));
    const check::CallLog log;
    CUDA_CHECK(cudaFree(memory));
    CHECK(log.calls().size() == 1);
    CHECK(log.live_device_bytes(0) == 0);
}

TEST_CASE("memory is added up, and what is left is named", "[pts:1]") {
    const int device = check::target_device();
    const DeviceGuard guard(device);
    void* first = nullptr;
    void* second = nullptr;
    void* on_device = nullptr;
    std::vector<char> registered(5000);

    const check::CallLog log;
    CUDA_CHECK(cudaMallocHost(&first, 1000));
    CUDA_CHECK(cudaHostAlloc(&second, 2000, cudaHostAllocDefault));
    CUDA_CHECK(cudaFreeHost(first));
    CUDA_CHECK(cudaHostRegister(registered.data(), registered.size(), cudaHostRegisterDefault));
    CUDA_CHECK(cudaMalloc(&on_device, 300));
    CHECK(log.live_pinned_bytes() == 7000);
    CHECK(log.peak_pinned_bytes() == 7000);
    CHECK(log.live_device_bytes(device) == 300);
    CHECK(log.leaks().size() == 3);

    CHECK(cudaFreeHost(registered.data()) != cudaSuccess);
    CHECK(log.live_pinned_bytes() == 7000);
    CHECK(log.failed_calls().size() == 1);
    cudaGetLastError();

    CUDA_CHECK(cudaHostUnregister(registered.data()));
    CUDA_CHECK(cudaFreeHost(second));
    CUDA_CHECK(cudaFree(on_device));
    CHECK(log.live_pinned_bytes() == 0);
    CHECK(log.peak_pinned_bytes() == 7000);
    CHECK(log.peak_device_bytes(device) == 300);
    CHECK(log.leaks().empty());
}

TEST_CASE("streams, events and pools that are left are named", "[pts:1]") {
    const check::CallLog log;
    {
        const Stream stream;
        const Event event;
        CHECK(log.leaks().size() == 2);
    }
    CHECK(log.leaks().empty());

    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = check::target_device();
    cudaMemPool_t pool = nullptr;
    CUDA_CHECK(cudaMemPoolCreate(&pool, &properties));
    CHECK(log.leaks().size() == 1);

    const Stream stream;
    void* memory = nullptr;
    CUDA_CHECK(cudaMallocFromPoolAsync(&memory, 400, pool, stream));
    CHECK(log.live_device_bytes(check::target_device()) == 400);
    CUDA_CHECK(cudaFreeAsync(memory, stream));
    CHECK(log.live_device_bytes(check::target_device()) == 0);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaMemPoolDestroy(pool));
}

TEST_CASE("the n-th call fails as a real one does", "[pts:1]") {
    void* memory = nullptr;
    check::CallLog log;
    log.fail(check::pinned_allocations, 2, cudaErrorMemoryAllocation);

    CHECK(cudaMallocHost(&memory, 100) == cudaSuccess);
    void* refused = nullptr;
    CHECK(cudaHostAlloc(&refused, 100, cudaHostAllocDefault) == cudaErrorMemoryAllocation);
    CHECK(refused == nullptr);
    CHECK(log.refused() == 1);
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
    CHECK(cudaMallocHost(&refused, 100) == cudaSuccess);
    CHECK(log.live_pinned_bytes() == 200);
    CHECK(log.failed_calls().size() == 1);
    CHECK(log.failed_calls()[0].faked);
    CHECK(cudaFreeHost(refused) == cudaSuccess);
    CHECK(cudaFreeHost(memory) == cudaSuccess);
}

TEST_CASE("every error that can be asked for comes from the runtime itself", "[pts:1]") {
    for (const cudaError_t error : {cudaErrorMemoryAllocation, cudaErrorInvalidValue,
                                    cudaErrorInvalidDevice, cudaErrorPeerAccessUnsupported}) {
        void* memory = nullptr;
        check::CallLog log;
        log.fail_all({"cudaMalloc"}, error);
        CHECK(cudaMalloc(&memory, 8) == error);
        CHECK(cudaGetLastError() == error);
        log.behave();
        CHECK(cudaMalloc(&memory, 8) == cudaSuccess);
        CHECK(cudaFree(memory) == cudaSuccess);
    }
}

TEST_CASE("what the log does not know is refused", "[pts:1]") {
    check::CallLog log;
    CHECK_THROWS_AS(log.count("cudaMallocHots"), std::invalid_argument);
    CHECK_THROWS_AS(log.fail({"cudaMallocHots"}, 1, cudaErrorInvalidValue), std::invalid_argument);
    CHECK_THROWS_AS(log.fail({"cudaMalloc"}, 1, cudaErrorLaunchFailure), std::invalid_argument);
    CHECK_THROWS_AS(check::CallLog(), std::logic_error);
    for (const check::Names& names :
         {check::pinned_allocations, check::device_allocations, check::pool_allocations,
          check::device_releases, check::copies, check::async_copies, check::waits,
          check::stream_creations, check::event_creations, check::kernel_launches})
        CHECK(log.count(names) == 0);
}

TEST_CASE("peers can be kept apart", "[pts:1][gpus:2]") {
    check::require_peer_access(0, 1);
    check::CallLog log;
    log.no_peer_access();
    int can = -1;
    CHECK(cudaDeviceCanAccessPeer(&can, 0, 1) == cudaSuccess);
    CHECK(can == 0);
    CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessUnsupported);
    CHECK(cudaGetLastError() == cudaErrorPeerAccessUnsupported);
    log.behave();
    CHECK(cudaDeviceCanAccessPeer(&can, 0, 1) == cudaSuccess);
    CHECK(can == 1);
}

TEST_CASE("a delay takes its time, in its stream alone", "[pts:1]") {
    const int device = check::target_device();
    const DeviceGuard guard(device);
    const Stream busy;
    const Stream idle;
    Stopwatch stopwatch(device);
    check::delay(device, busy, 20ms);
    CUDA_CHECK(cudaStreamSynchronize(idle));
    CHECK(cudaStreamQuery(busy) == cudaErrorNotReady);
    CUDA_CHECK(cudaStreamSynchronize(busy));
    CHECK(stopwatch.seconds() >= 0.020);
    CHECK(stopwatch.seconds() < 0.5);
}

TEST_CASE("a delay comes before the calls that it was asked for", "[pts:1]") {
    const int device = check::target_device();
    Stopwatch stopwatch(device);
    std::vector<char> host(100);
    check::GuardedDevice<char> memory(device, host.size());
    check::CallLog log;
    log.delay_before(check::async_copies, 20ms);
    const Stream stream = [&] {
        const DeviceGuard guard(device);
        return Stream();
    }();
    stopwatch.restart();
    CUDA_CHECK(cudaMemcpyAsync(memory.data(), host.data(), 1, cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(stopwatch.seconds() >= 0.020);
    CHECK(log.count(check::kernel_launches) == 0);
}

TEST_CASE("a delay comes before the one call that it was asked for", "[pts:1]") {
    const int device = check::target_device();
    Stopwatch stopwatch(device);
    check::GuardedDevice<char> memory(device, 100);
    check::CallLog log;
    log.delay_before_nth({"cudaMemsetAsync"}, 2, 20ms);
    const Stream stream = [&] {
        const DeviceGuard guard(device);
        return Stream();
    }();
    const auto seconds_of_fill = [&] {
        stopwatch.restart();
        CUDA_CHECK(cudaMemsetAsync(memory.data(), 0, 1, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
        return stopwatch.seconds();
    };
    CHECK(seconds_of_fill() < 0.020);
    CHECK(seconds_of_fill() >= 0.020);
    CHECK(seconds_of_fill() < 0.020);
}

TEST_CASE("a kernel launch is recorded", "[pts:1]") {
    const Stream stream;
    const check::CallLog log;
    check::delay(0, stream, 1us);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    REQUIRE(log.count(check::kernel_launches) == 1);
    CHECK(log.calls(check::kernel_launches)[0].stream == static_cast<cudaStream_t>(stream));
}

TEST_CASE("data differs by position, set and run, and wrong data is found", "[pts:1]") {
    std::vector<float> data = check::make_pattern<float>(1000, 1);
    CHECK(data != check::make_pattern<float>(1000, 2));
    CHECK(data == check::make_pattern<float>(1000, 1));
    CHECK(check::difference(data.data(), data.data(), data.size()).empty());
    const std::vector<float> right = data;
    data[17] += 1;
    CHECK(check::difference(data.data(), right.data(), data.size())
              .find("1 of 1000 elements are wrong, the first at index 17") == 0);
    CHECK(check::difference(data.data(), right.data(), data.size(), 1.5).empty());
    check::poison(data.data(), data.size());
    CHECK_FALSE(check::difference(data.data(), data.data(), data.size()).empty());
}

TEST_CASE("writes beside an array are found", "[pts:1]") {
    check::GuardedDevice<int> memory(check::target_device(), 100);
    memory.check_guards("untouched memory");
    CUDA_CHECK(cudaMemset(memory.data(), 1, 400));
    CHECK(memory.read() == std::vector<int>(100, 0x01010101));
    memory.check_guards("memory that was filled");

    std::vector<unsigned char> zone(50, check::guard_byte);
    CHECK(check::damage(zone.data(), zone.size()).empty());
    zone[7] = 0;
    CHECK(check::damage(zone.data(), zone.size()).find("at byte 7") == 0);
}

TEST_CASE("the order of devices is hostile", "[pts:1][gpus:4]") {
    const std::vector<int> devices = check::hostile_order();
    CHECK(devices.front() != 0);
    CHECK_FALSE(std::is_sorted(devices.begin(), devices.end()));
    CHECK(devices.size() == static_cast<std::size_t>(check::device_count()));
    CHECK(check::hostile_order(2).size() == 2);
    for (const int device : devices)
        CHECK(check::other_device(device) != device);
}

TEST_CASE("code can run on a second thread", "[pts:1][gpus:2]") {
    const DeviceGuard guard(1);
    CHECK(check::on_second_thread([] {
              int device = -1;
              cudaGetDevice(&device);
              return device;
          }) == 0);
    CHECK_THROWS_AS(check::on_second_thread([] { throw std::runtime_error("from there"); }),
                    std::runtime_error);
    CHECK(check::untouched(0, [] {
              int device = -1;
              cudaGetDevice(&device);
              return device;
          }) == 0);
}
