// What the runtime answers, call by call. Every case holds on real GPUs and on the simulated node;
// one process runs one case, because some errors stay for the life of a process.
//
// Codes and waits are those of CUDA 13.0 on an H200. What takes two GPUs could not be tried there:
// it follows the runtime's documentation.
#include "support/catch.hpp"

#include "common/cuda_check.hpp"
#include "conformance/kernels.hpp"
#include "support/delay.hpp"
#include "support/devices.hpp"
#include "support/report.hpp"

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace conformance;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t block = 64 * mib; // what most calls are tried with
constexpr int d2h_and_h2d = 2;

/// The call answers `expected`, and so does cudaGetLastError afterwards.
#define CHECK_ANSWER(call, expected)                                                               \
    do {                                                                                           \
        CHECK((call) == (expected));                                                               \
        CHECK(cudaGetLastError() == (expected));                                                   \
    } while (false)

char* device_memory(std::size_t bytes = block) {
    void* memory = nullptr;
    CUDA_CHECK(cudaMalloc(&memory, bytes));
    return static_cast<char*>(memory);
}

char* pinned_memory(std::size_t bytes = block) {
    void* memory = nullptr;
    CUDA_CHECK(cudaMallocHost(&memory, bytes));
    return static_cast<char*>(memory);
}

/// Ordinary memory of its own pages, so that other registrations never overlap it.
std::unique_ptr<char, decltype(&std::free)> plain_memory(std::size_t bytes = block) {
    auto* memory = static_cast<char*>(std::aligned_alloc(2 * mib, (bytes / mib + 2) / 2 * 2 * mib));
    std::memset(memory, 1, bytes);
    return {memory, &std::free};
}

cudaStream_t stream(unsigned flags = cudaStreamDefault) {
    cudaStream_t result = nullptr;
    CUDA_CHECK(cudaStreamCreateWithFlags(&result, flags));
    return result;
}

cudaEvent_t event() {
    cudaEvent_t result = nullptr;
    CUDA_CHECK(cudaEventCreate(&result));
    return result;
}

/// A stream of GPU 0 that is busy with a long kernel until `finish`.
class BusyStream {
public:
    BusyStream() : stream_(stream()), kernel_done_(event()) {}
    ~BusyStream() {
        cudaEventDestroy(kernel_done_);
        cudaStreamDestroy(stream_);
    }
    BusyStream(const BusyStream&) = delete;
    BusyStream& operator=(const BusyStream&) = delete;

    operator cudaStream_t() const { return stream_; }
    void make_busy() {
        CUDA_CHECK(cudaDeviceSynchronize());
        check::delay(0, stream_, 50ms);
        CUDA_CHECK(cudaEventRecord(kernel_done_, stream_));
    }
    /// With that kernel; what was put into the stream behind it does not count.
    bool is_busy() const {
        const cudaError_t answer = cudaEventQuery(kernel_done_);
        if (answer == cudaErrorNotReady) return true;
        CUDA_CHECK(answer);
        return false;
    }

private:
    cudaStream_t stream_;
    cudaEvent_t kernel_done_;
};

/// Whether `call` came back while a kernel of 50 ms in another stream was still running.
template <class Call> bool returns_at_once(BusyStream& busy, Call call) {
    busy.make_busy();
    CUDA_CHECK(call());
    const bool result = busy.is_busy();
    CUDA_CHECK(cudaDeviceSynchronize());
    return result;
}

float milliseconds(cudaEvent_t begin, cudaEvent_t end) {
    float ms = 0;
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
    return ms;
}

/// GB/s of one copy of `block` in the null stream.
double copy_rate(void* to, const void* from, cudaMemcpyKind kind) {
    const cudaEvent_t begin = event();
    const cudaEvent_t end = event();
    CUDA_CHECK(cudaMemcpy(to, from, block, kind)); // the first one may be slower
    CUDA_CHECK(cudaEventRecord(begin));
    CUDA_CHECK(cudaMemcpy(to, from, block, kind));
    CUDA_CHECK(cudaEventRecord(end));
    return static_cast<double>(block) / 1e6 / static_cast<double>(milliseconds(begin, end));
}

struct Attributes {
    cudaMemoryType type;
    int device;
    bool device_pointer_same, host_pointer_same, device_pointer_null, host_pointer_null;
};

Attributes attributes(const void* pointer) {
    cudaPointerAttributes raw{};
    CUDA_CHECK(cudaPointerGetAttributes(&raw, pointer));
    return {raw.type,
            raw.device,
            raw.devicePointer == pointer,
            raw.hostPointer == pointer,
            raw.devicePointer == nullptr,
            raw.hostPointer == nullptr};
}

void check_unregistered(const void* pointer) {
    const Attributes found = attributes(pointer);
    CHECK(found.type == cudaMemoryTypeUnregistered);
    CHECK(found.device == -2);
    CHECK(found.device_pointer_null);
    CHECK(found.host_pointer_same);
}

void check_host(const void* pointer, cudaMemoryType type = cudaMemoryTypeHost) {
    const Attributes found = attributes(pointer);
    CHECK(found.type == type);
    CHECK(found.device == 0);
    CHECK(found.device_pointer_same);
    CHECK(found.host_pointer_same);
}

void check_device(const void* pointer, int device = 0) {
    const Attributes found = attributes(pointer);
    CHECK(found.type == cudaMemoryTypeDevice);
    CHECK(found.device == device);
    CHECK(found.device_pointer_same);
    CHECK(found.host_pointer_null);
}

cudaMemPool_t default_pool(int device = 0) {
    cudaMemPool_t pool = nullptr;
    CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, device));
    return pool;
}

std::uint64_t pool_bytes(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
    std::uint64_t bytes = 0;
    CUDA_CHECK(cudaMemPoolGetAttribute(pool, attribute, &bytes));
    return bytes;
}

char* pool_memory(std::size_t bytes, cudaStream_t in) {
    void* memory = nullptr;
    CUDA_CHECK(cudaMallocAsync(&memory, bytes, in));
    return static_cast<char*>(memory);
}

void set_access(cudaMemPool_t pool, int device, cudaMemAccessFlags flags) {
    cudaMemAccessDesc wanted{};
    wanted.location.type = cudaMemLocationTypeDevice;
    wanted.location.id = device;
    wanted.flags = flags;
    CUDA_CHECK(cudaMemPoolSetAccess(pool, &wanted, 1));
}

int device_value(const int* pointer) {
    int value = 0;
    CUDA_CHECK(cudaMemcpy(&value, pointer, sizeof value, cudaMemcpyDefault));
    return value;
}

} // namespace

TEST_CASE("freeing what cannot be freed") {
    check::require_devices(1);
    char* d = device_memory();
    char* e = device_memory();
    char* h = pinned_memory();
    const auto m = plain_memory();
    CHECK_ANSWER(cudaFree(d), cudaSuccess);
    CHECK_ANSWER(cudaFree(d), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaFree(nullptr), cudaSuccess);
    CHECK_ANSWER(cudaFree(e + 1), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaFree(m.get()), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaFreeHost(m.get()), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaFreeHost(e), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaFree(h), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaFreeHost(h + 1), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaFreeHost(h), cudaSuccess);
    CHECK_ANSWER(cudaFreeHost(h), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaFreeHost(nullptr), cudaSuccess);
}

TEST_CASE("sizes of nothing and sizes of too much") {
    check::require_devices(1);
    void* pointer = &pointer;
    CHECK_ANSWER(cudaMalloc(&pointer, 0), cudaSuccess);
    CHECK(pointer == nullptr);
    CHECK_ANSWER(cudaMalloc(&pointer, std::size_t{1} << 60), cudaErrorMemoryAllocation);
    CHECK_ANSWER(cudaMallocHost(&pointer, std::size_t{1} << 50), cudaErrorMemoryAllocation);
    CHECK_ANSWER(cudaMallocAsync(&pointer, 0, nullptr), cudaSuccess);
    CHECK_ANSWER(cudaMallocAsync(&pointer, std::size_t{1} << 60, nullptr),
                 cudaErrorMemoryAllocation);
    std::size_t free = 0, total = 0;
    CHECK_ANSWER(cudaMemGetInfo(&free, &total), cudaSuccess);
    CHECK(free < total);
    CHECK_ANSWER(cudaMalloc(&pointer, total), cudaErrorMemoryAllocation);
}

TEST_CASE("memory that is allocated is missing from the free memory") {
    check::require_devices(1);
    CUDA_CHECK(cudaFree(nullptr));
    std::size_t before = 0, after = 0, total = 0;
    CUDA_CHECK(cudaMemGetInfo(&before, &total));
    char* d = device_memory();
    CUDA_CHECK(cudaMemGetInfo(&after, &total));
    CHECK(before - after >= block);
    CUDA_CHECK(cudaFree(d));
    CUDA_CHECK(cudaMemGetInfo(&after, &total));
    CHECK(before - after < block);
}

TEST_CASE("registering host memory") {
    check::require_devices(1);
    const auto owner = plain_memory();
    char* m = owner.get();
    char* h = pinned_memory();
    CHECK_ANSWER(cudaHostRegister(m, block, 0), cudaSuccess);
    CHECK_ANSWER(cudaHostRegister(m, block, 0), cudaErrorHostMemoryAlreadyRegistered);
    CHECK_ANSWER(cudaHostRegister(m + 4096, 4096, 0), cudaErrorHostMemoryAlreadyRegistered);
    CHECK_ANSWER(cudaFreeHost(m), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaHostUnregister(m + 4096), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaHostUnregister(m), cudaSuccess);
    CHECK_ANSWER(cudaHostUnregister(m), cudaErrorHostMemoryNotRegistered);
    CHECK_ANSWER(cudaHostRegister(m + 3, 1000003, 0), cudaSuccess);
    check_host(m + 3);
    CHECK_ANSWER(cudaHostUnregister(m + 3), cudaSuccess);
    CHECK_ANSWER(cudaHostRegister(m, 0, 0), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaHostRegister(nullptr, 100, 0), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaHostRegister(h, block, 0), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaHostUnregister(h), cudaErrorInvalidValue);
}

TEST_CASE("flags and device pointers of pinned memory") {
    check::require_devices(1);
    const auto m = plain_memory();
    char* d = device_memory();
    char* h = pinned_memory();
    unsigned flags = 0;
    void* pointer = nullptr;
    CHECK_ANSWER(cudaHostGetFlags(&flags, h), cudaSuccess);
    CHECK(flags == cudaHostAllocMapped);
    CHECK_ANSWER(cudaHostGetDevicePointer(&pointer, h, 0), cudaSuccess);
    CHECK(pointer == h);
    CHECK_ANSWER(cudaHostGetDevicePointer(&pointer, h + 5, 0), cudaSuccess);
    CHECK(pointer == h + 5);
    CHECK_ANSWER(cudaHostGetDevicePointer(&pointer, h, 1), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaHostGetDevicePointer(&pointer, m.get(), 0), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaHostGetDevicePointer(&pointer, d, 0), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaHostGetFlags(&flags, m.get()), cudaErrorInvalidValue);
    void* w = nullptr;
    CHECK_ANSWER(cudaHostAlloc(&w, mib, cudaHostAllocMapped), cudaSuccess);
    CHECK_ANSWER(cudaHostGetFlags(&flags, w), cudaSuccess);
    CHECK(flags == cudaHostAllocMapped);
    CHECK_ANSWER(cudaHostAlloc(&w, mib, cudaHostAllocPortable | cudaHostAllocWriteCombined),
                 cudaSuccess);
    CHECK_ANSWER(cudaHostGetFlags(&flags, w), cudaSuccess);
    CHECK(flags == (cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined));
    CHECK_ANSWER(cudaHostAlloc(&w, mib, 64), cudaErrorInvalidValue);
}

TEST_CASE("devices that are not there") {
    check::require_devices(1);
    int n = 0;
    CHECK_ANSWER(cudaGetDeviceCount(&n), cudaSuccess);
    CHECK_ANSWER(cudaSetDevice(n), cudaErrorInvalidDevice);
    CHECK_ANSWER(cudaSetDevice(-1), cudaErrorInvalidDevice);
    int current = -1;
    CHECK_ANSWER(cudaGetDevice(&current), cudaSuccess);
    CHECK(current == 0);
    int value = 0;
    CHECK_ANSWER(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, n), cudaErrorInvalidDevice);
    CHECK_ANSWER(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, n - 1), cudaSuccess);
    CHECK(value == 32);
}

TEST_CASE("peer access that makes no sense") {
    check::require_devices(1);
    int n = 0;
    CUDA_CHECK(cudaGetDeviceCount(&n));
    int can = -1;
    CHECK_ANSWER(cudaDeviceCanAccessPeer(&can, 0, 0), cudaSuccess);
    CHECK(can == 0);
    CHECK_ANSWER(cudaDeviceCanAccessPeer(&can, 0, n), cudaErrorInvalidDevice);
    CHECK_ANSWER(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessUnsupported);
    CHECK_ANSWER(cudaDeviceEnablePeerAccess(n, 0), cudaErrorInvalidDevice);
    CHECK_ANSWER(cudaDeviceEnablePeerAccess(0, 1), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled);
    char* a = device_memory();
    char* b = device_memory();
    CHECK_ANSWER(cudaMemcpyPeer(b, 0, a, 0, block), cudaSuccess);
    CHECK_ANSWER(cudaMemcpyPeer(b, n, a, 0, block), cudaErrorInvalidDevice);
    CHECK_ANSWER(cudaMemcpyPeer(b, 0, a, 0, 2 * block), cudaErrorInvalidValue);
}

TEST_CASE("what a pointer is") {
    check::require_devices(1);
    const auto m = plain_memory();
    const auto registered = plain_memory();
    CUDA_CHECK(cudaHostRegister(registered.get(), block, 0));
    char* d = device_memory();
    char* h = pinned_memory();
    check_unregistered(m.get());
    check_device(d);
    check_device(d + block - 1);
    check_unregistered(d + block);
    check_host(h);
    check_host(h + 1000);
    check_host(registered.get());
    void* managed = nullptr;
    CUDA_CHECK(cudaMallocManaged(&managed, mib));
    check_host(managed, cudaMemoryTypeManaged);
    const cudaStream_t s = stream();
    char* pooled = pool_memory(mib, s);
    check_device(pooled);
    CUDA_CHECK(cudaFreeAsync(pooled, s));
    check_unregistered(pooled);
    CUDA_CHECK(cudaStreamSynchronize(s));
    check_unregistered(pooled);
    CUDA_CHECK(cudaFree(d));
    check_unregistered(d);
    int on_the_stack = 0;
    check_unregistered(&on_the_stack);
    cudaPointerAttributes raw{};
    CHECK_ANSWER(cudaPointerGetAttributes(&raw, nullptr), cudaSuccess);
    CHECK(raw.type == cudaMemoryTypeUnregistered);
}

TEST_CASE("the kind of a copy has to fit its ends") {
    check::require_devices(1);
    const auto owner = plain_memory();
    const auto second_owner = plain_memory();
    char* m = owner.get();
    char* m2 = second_owner.get();
    char* d = device_memory();
    char* e = device_memory();
    char* h = pinned_memory();
    const auto invalid = cudaErrorInvalidValue;
    CHECK_ANSWER(cudaMemcpy(m2, m, block, cudaMemcpyHostToDevice), invalid);
    CHECK_ANSWER(cudaMemcpy(m2, m, block, cudaMemcpyDeviceToHost), invalid);
    CHECK_ANSWER(cudaMemcpy(m2, m, block, cudaMemcpyDeviceToDevice), invalid);
    CHECK_ANSWER(cudaMemcpy(d, m, block, cudaMemcpyDeviceToHost), invalid);
    CHECK_ANSWER(cudaMemcpy(m, d, block, cudaMemcpyHostToDevice), invalid);
    CHECK_ANSWER(cudaMemcpy(d, e, block, cudaMemcpyHostToDevice), cudaSuccess);
    CHECK_ANSWER(cudaMemcpy(d, e, block, cudaMemcpyDeviceToHost), cudaSuccess);
    CHECK_ANSWER(cudaMemcpy(d, m, block, cudaMemcpyDeviceToDevice), invalid);
    CHECK_ANSWER(cudaMemcpy(d, h, block, cudaMemcpyDeviceToDevice), cudaSuccess);
    CHECK_ANSWER(cudaMemcpy(d, m, block, cudaMemcpyDefault), cudaSuccess);
    CHECK_ANSWER(cudaMemcpy(m, m2, block, cudaMemcpyDefault), cudaSuccess);
    CHECK_ANSWER(cudaMemcpy(d, h, block, static_cast<cudaMemcpyKind>(9)),
                 cudaErrorInvalidMemcpyDirection);
}

TEST_CASE("a copy has to stay inside its allocations") {
    check::require_devices(1);
    const auto owner = plain_memory(block + 4 * mib);
    char* m = owner.get();
    char* d = device_memory();
    char* e = device_memory();
    char* h = pinned_memory();
    const auto invalid = cudaErrorInvalidValue;
    CHECK_ANSWER(cudaMemcpy(d, e, block + 1, cudaMemcpyDeviceToDevice), invalid);
    CHECK_ANSWER(cudaMemcpy(d, h, 2 * block, cudaMemcpyHostToDevice), invalid);
    CHECK_ANSWER(cudaMemcpy(d, m, block + 4 * mib, cudaMemcpyHostToDevice), invalid);
    CHECK_ANSWER(cudaMemcpy(d + block - 4, h, 8, cudaMemcpyHostToDevice), invalid);
    CHECK_ANSWER(cudaMemcpy(d, nullptr, 4, cudaMemcpyHostToDevice), invalid);
    CHECK_ANSWER(cudaMemcpy(nullptr, h, 4, cudaMemcpyHostToDevice), invalid);
    CHECK_ANSWER(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice), cudaSuccess);
    CUDA_CHECK(cudaFree(d));
    CHECK_ANSWER(cudaMemcpy(d, h, 4, cudaMemcpyHostToDevice), invalid);
}

TEST_CASE("filling memory") {
    check::require_devices(1);
    const auto m = plain_memory();
    char* d = device_memory();
    char* h = pinned_memory();
    CHECK_ANSWER(cudaMemset(h, 3, block), cudaSuccess);
    CHECK(h[block - 1] == 3);
    CHECK_ANSWER(cudaMemset(m.get(), 0, block), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaMemset(d, 0, block + 1), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaMemset(d, 7, block), cudaSuccess);
    CHECK_ANSWER(cudaMemcpy(h, d, block, cudaMemcpyDeviceToHost), cudaSuccess);
    CHECK(h[0] == 7);
    CHECK(h[block - 1] == 7);
}

TEST_CASE("rows with gaps between them") {
    check::require_devices(1);
    void* memory = nullptr;
    std::size_t pitch = 0;
    constexpr std::size_t width = 100, height = 5;
    CHECK_ANSWER(cudaMallocPitch(&memory, &pitch, width, height), cudaSuccess);
    CHECK(pitch >= width);
    std::vector<unsigned char> source(width * height), result(width * height);
    for (std::size_t i = 0; i < source.size(); ++i)
        source[i] = static_cast<unsigned char>(i * 7 + i / width);
    CHECK_ANSWER(
        cudaMemcpy2D(memory, pitch, source.data(), width, width, height, cudaMemcpyHostToDevice),
        cudaSuccess);
    CHECK_ANSWER(
        cudaMemcpy2D(result.data(), width, memory, pitch, width, height, cudaMemcpyDeviceToHost),
        cudaSuccess);
    CHECK(result == source);
    CHECK_ANSWER(cudaMemcpy2D(memory, width - 1, source.data(), width, width, height,
                              cudaMemcpyHostToDevice),
                 cudaErrorInvalidPitchValue);
}

TEST_CASE("events before, while and after they happen") {
    check::require_devices(1);
    float ms = 0;
    const cudaEvent_t a = event();
    const cudaEvent_t b = event();
    CHECK_ANSWER(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle);
    CHECK_ANSWER(cudaEventQuery(a), cudaSuccess);
    CHECK_ANSWER(cudaEventSynchronize(a), cudaSuccess);
    BusyStream busy;
    CUDA_CHECK(cudaEventRecord(a, busy));
    CHECK_ANSWER(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle);
    busy.make_busy();
    CUDA_CHECK(cudaEventRecord(b, busy));
    CHECK(cudaEventElapsedTime(&ms, a, b) == cudaErrorNotReady);
    CHECK(cudaGetLastError() == cudaSuccess); // not ready is no error
    CHECK(cudaEventQuery(b) == cudaErrorNotReady);
    CHECK(cudaStreamQuery(nullptr) == cudaErrorNotReady);
    CHECK(cudaGetLastError() == cudaSuccess);
    CUDA_CHECK(cudaEventSynchronize(b));
    CHECK_ANSWER(cudaEventElapsedTime(&ms, a, b), cudaSuccess);
    CHECK(ms > 40);
    cudaEvent_t untimed = nullptr;
    CUDA_CHECK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    CUDA_CHECK(cudaEventRecord(untimed, busy));
    CUDA_CHECK(cudaEventSynchronize(untimed));
    CHECK_ANSWER(cudaEventElapsedTime(&ms, a, untimed), cudaErrorInvalidResourceHandle);
    CHECK_ANSWER(cudaEventDestroy(a), cudaSuccess);
    CHECK_ANSWER(cudaEventQuery(nullptr), cudaErrorInvalidResourceHandle);
}

TEST_CASE("an event or stream may be destroyed while it is in use") {
    check::require_devices(1);
    const cudaStream_t s = stream();
    char* d = device_memory();
    char* h = pinned_memory();
    std::memset(h, 5, block);
    check::delay(0, s, 20ms);
    CUDA_CHECK(cudaMemcpyAsync(d, h, block, cudaMemcpyHostToDevice, s));
    const cudaEvent_t e = event();
    CUDA_CHECK(cudaEventRecord(e, s));
    CHECK_ANSWER(cudaEventDestroy(e), cudaSuccess);
    CHECK_ANSWER(cudaStreamDestroy(s), cudaSuccess);
    CHECK_ANSWER(cudaDeviceSynchronize(), cudaSuccess);
    char last = 0;
    CUDA_CHECK(cudaMemcpy(&last, d + block - 1, 1, cudaMemcpyDeviceToHost));
    CHECK(last == 5);
}

TEST_CASE("launches that cannot be") {
    check::require_devices(1);
    int shared = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlock, 0));
    CHECK(launch_with(1, 2048, 0) != cudaSuccess);
    CHECK(cudaPeekAtLastError() != cudaSuccess); // peeking leaves it
    CHECK(cudaGetLastError() != cudaSuccess);
    CHECK(cudaGetLastError() == cudaSuccess); // getting takes it
    CHECK(launch_with(0, 32, 0) != cudaSuccess);
    CHECK(cudaGetLastError() != cudaSuccess);
    CHECK(launch_with(1, 32, static_cast<std::size_t>(shared) + 1) == cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(launch_with(1, 1024, static_cast<std::size_t>(shared)) == cudaSuccess);
    CHECK_ANSWER(cudaDeviceSynchronize(), cudaSuccess); // nothing of it stays
}

TEST_CASE("a null pointer in a kernel ends the context") {
    check::require_devices(1);
    char* d = device_memory();
    void* pointer = nullptr;
    int n = 0;
    const auto illegal = cudaErrorIllegalAddress;
    CHECK(poke(nullptr, 0, 1) == cudaSuccess); // found out only later
    CHECK_ANSWER(cudaDeviceSynchronize(), illegal);
    CHECK_ANSWER(cudaDeviceSynchronize(), illegal);
    CHECK_ANSWER(cudaMalloc(&pointer, 16), illegal);
    CHECK_ANSWER(cudaFree(d), illegal);
    CHECK_ANSWER(cudaGetDeviceCount(&n), cudaSuccess);
    CHECK_ANSWER(cudaSetDevice(0), cudaSuccess);
    CHECK_ANSWER(cudaMallocHost(&pointer, 16), illegal);
    CHECK_ANSWER(cudaDeviceReset(), cudaSuccess);
    CHECK_ANSWER(cudaMalloc(&pointer, 16), cudaErrorDevicesUnavailable);
}

TEST_CASE("a write behind an allocation but inside its pages is not noticed") {
    check::require_devices(1);
    auto* d = reinterpret_cast<int*>(device_memory(4096));
    CHECK(poke(d, 1025, 1) == cudaSuccess);
    CHECK_ANSWER(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_CASE("memory that was freed is not there for kernels") {
    check::require_devices(1);
    auto* d = reinterpret_cast<int*>(device_memory());
    CUDA_CHECK(cudaFree(d));
    CHECK(poke(d, 0, 1) == cudaSuccess);
    CHECK_ANSWER(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

TEST_CASE("memory given back to a pool is gone after the wait") {
    check::require_devices(1);
    const cudaStream_t s = stream();
    auto* d = reinterpret_cast<int*>(pool_memory(block, s));
    CUDA_CHECK(cudaFreeAsync(d, s));
    CHECK(poke(d, 0, 1, s) == cudaSuccess);
    CHECK_ANSWER(cudaStreamSynchronize(s), cudaSuccess); // still mapped
    CHECK(poke(d, 0, 1, s) == cudaSuccess);
    CHECK_ANSWER(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
}

TEST_CASE("pageable memory is out of reach for kernels") {
    check::require_devices(1);
    int reachable = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&reachable, cudaDevAttrPageableMemoryAccess, 0));
    if (reachable) check::skip("this GPU reaches pageable memory");
    const auto m = plain_memory();
    CHECK(poke(reinterpret_cast<int*>(m.get()), 0, 1) == cudaSuccess);
    CHECK_ANSWER(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

TEST_CASE("kernels read and write pinned and registered memory") {
    check::require_devices(1);
    constexpr std::size_t n = 10000;
    auto* h = reinterpret_cast<int*>(pinned_memory());
    const auto registered = plain_memory();
    auto* r = reinterpret_cast<int*>(registered.get());
    CUDA_CHECK(cudaHostRegister(r, block, 0));
    CUDA_CHECK(count_up(h, n, 100));
    CUDA_CHECK(copy(r, h, n));
    CUDA_CHECK(cudaDeviceSynchronize());
    bool right = true;
    for (std::size_t i = 0; i < n; ++i)
        right = right && r[i] == 100 + static_cast<int>(i);
    CHECK(right);
}

TEST_CASE("which copies wait for work in another stream") {
    check::require_devices(1);
    const auto m = plain_memory();
    char* d = device_memory();
    char* e = device_memory();
    char* h = pinned_memory();
    const cudaStream_t t = stream();
    BusyStream s;
    const auto async = [&](void* to, const void* from, std::size_t n, cudaMemcpyKind kind,
                           cudaStream_t in) {
        return returns_at_once(s, [&] { return cudaMemcpyAsync(to, from, n, kind, in); });
    };
    // In the busy stream itself
    CHECK_FALSE(async(d, m.get(), block, cudaMemcpyHostToDevice, s));
    CHECK(async(d, m.get(), 4096, cudaMemcpyHostToDevice, s));
    CHECK_FALSE(async(m.get(), d, block, cudaMemcpyDeviceToHost, s));
    CHECK_FALSE(async(m.get(), d, 4, cudaMemcpyDeviceToHost, s));
    CHECK(async(d, h, block, cudaMemcpyHostToDevice, s));
    CHECK(async(h, d, block, cudaMemcpyDeviceToHost, s));
    // Beside it
    CHECK(async(d, m.get(), block / 8, cudaMemcpyHostToDevice, t));
    // In the null stream, which waits for the busy one
    CHECK_FALSE(returns_at_once(s, [&] { return cudaMemcpy(d, h, block, cudaMemcpyDefault); }));
    CHECK(returns_at_once(s, [&] { return cudaMemcpy(d, e, block, cudaMemcpyDefault); }));
    CHECK(returns_at_once(s, [&] { return cudaMemcpyPeer(d, 0, e, 0, block); }));
    CHECK(returns_at_once(s, [&] { return cudaMemset(d, 0, block); }));
}

TEST_CASE("which calls wait for the GPU") {
    check::require_devices(1);
    const auto m = plain_memory(4 * mib);
    const cudaStream_t t = stream();
    BusyStream s;
    void* v = nullptr;
    void* w = nullptr;
    cudaEvent_t e = nullptr;
    cudaStream_t other = nullptr;
    CHECK(returns_at_once(s, [&] { return cudaMalloc(&v, mib); }));
    CHECK_FALSE(returns_at_once(s, [&] { return cudaFree(v); }));
    CHECK(returns_at_once(s, [&] { return cudaMallocHost(&w, mib); }));
    CHECK(returns_at_once(s, [&] { return cudaHostRegister(m.get(), 4 * mib, 0); }));
    CHECK_FALSE(returns_at_once(s, [&] { return cudaHostUnregister(m.get()); }));
    CHECK(returns_at_once(s, [&] { return cudaMallocAsync(&v, mib, t); }));
    CHECK(returns_at_once(s, [&] { return cudaFreeAsync(v, t); }));
    v = pool_memory(mib, t);
    CHECK(returns_at_once(s, [&] { return cudaFree(v); }));
    CHECK(returns_at_once(s, [&] { return cudaEventCreate(&e); }));
    CHECK(returns_at_once(s, [&] { return cudaEventRecord(e, t); }));
    CHECK(returns_at_once(s, [&] { return cudaEventDestroy(e); }));
    CHECK(returns_at_once(s, [&] { return cudaStreamCreate(&other); }));
    CHECK(returns_at_once(s, [&] { return cudaStreamDestroy(other); }));
    CHECK_FALSE(returns_at_once(s, [&] { return cudaDeviceSynchronize(); }));
    CHECK(returns_at_once(s, [&] { return cudaStreamSynchronize(t); }));
}

TEST_CASE("blocking streams wait for the null stream, others do not") {
    check::require_devices(1);
    const cudaStream_t t = stream();
    const cudaStream_t free = stream(cudaStreamNonBlocking);
    auto* d = reinterpret_cast<int*>(device_memory());
    check::delay(0, nullptr, 50ms);
    CUDA_CHECK(count_up(d, 1, 0, t));
    CUDA_CHECK(count_up(d + 1, 1, 0, free));
    CHECK(cudaStreamSynchronize(free) == cudaSuccess);
    CHECK(cudaStreamQuery(nullptr) == cudaErrorNotReady);
    CHECK(cudaStreamQuery(t) == cudaErrorNotReady);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(cudaStreamQuery(t) == cudaSuccess);
}

TEST_CASE("a pageable source may be changed as soon as the call returns") {
    check::require_devices(1);
    BusyStream s;
    char* d = device_memory();
    for (const std::size_t bytes : {std::size_t{64}, std::size_t{65536}, std::size_t{65540}, mib}) {
        INFO(bytes);
        std::vector<char> source(bytes, 1), result(bytes, 0);
        s.make_busy();
        CUDA_CHECK(cudaMemcpyAsync(d, source.data(), bytes, cudaMemcpyHostToDevice, s));
        std::memset(source.data(), 2, bytes);
        CUDA_CHECK(cudaStreamSynchronize(s));
        CUDA_CHECK(cudaMemcpy(result.data(), d, bytes, cudaMemcpyDeviceToHost));
        CHECK(result == std::vector<char>(bytes, 1));
    }
}

TEST_CASE("a pinned source is read when its turn comes") {
    check::require_devices(1);
    BusyStream s;
    char* d = device_memory();
    char* h = pinned_memory();
    std::memset(h, 1, mib);
    s.make_busy();
    CUDA_CHECK(cudaMemcpyAsync(d, h, mib, cudaMemcpyHostToDevice, s));
    std::memset(h, 2, mib); // a mistake: the copy has not begun
    CUDA_CHECK(cudaStreamSynchronize(s));
    std::vector<char> result(mib);
    CUDA_CHECK(cudaMemcpy(result.data(), d, mib, cudaMemcpyDeviceToHost));
    CHECK(result == std::vector<char>(mib, 2));
}

TEST_CASE("a result in pinned memory is not there before the wait") {
    check::require_devices(1);
    BusyStream s;
    auto* h = reinterpret_cast<int*>(pinned_memory());
    auto* d = reinterpret_cast<int*>(device_memory());
    h[0] = h[1] = -1;
    s.make_busy();
    CUDA_CHECK(count_up(d, 1, 7, s));
    CUDA_CHECK(cudaMemcpyAsync(h, d, sizeof(int), cudaMemcpyDeviceToHost, s));
    CUDA_CHECK(count_up(h + 1, 1, 8, s));
    CHECK(h[0] == -1);
    CHECK(h[1] == -1);
    CUDA_CHECK(cudaStreamSynchronize(s));
    CHECK(h[0] == 7);
    CHECK(h[1] == 8);
}

TEST_CASE("a kernel may wait for a kernel in another stream") {
    check::require_devices(1);
    auto* d = reinterpret_cast<int*>(device_memory());
    CUDA_CHECK(cudaMemset(d, 0, block));
    CUDA_CHECK(cudaDeviceSynchronize());
    const cudaStream_t s = stream();
    const cudaStream_t t = stream();
    CUDA_CHECK(wait_for(d, d + 1, s));
    CUDA_CHECK(poke(d, 0, 5, t));
    CUDA_CHECK(cudaStreamSynchronize(s));
    CHECK(device_value(d + 1) == 5);
}

TEST_CASE("a kernel may wait for a host thread") {
    check::require_devices(1);
    auto* flag = reinterpret_cast<volatile int*>(pinned_memory());
    auto* d = reinterpret_cast<int*>(device_memory());
    flag[0] = 0;
    const cudaStream_t s = stream();
    CUDA_CHECK(wait_for(const_cast<int*>(flag), d, s));
    std::thread opener([&] {
        std::this_thread::sleep_for(50ms);
        flag[0] = 6;
    });
    CHECK(cudaStreamSynchronize(s) == cudaSuccess);
    opener.join();
    CHECK(device_value(d) == 6);
}

TEST_CASE("an event orders two streams") {
    check::require_devices(1);
    const cudaStream_t t = stream(cudaStreamNonBlocking);
    const cudaEvent_t e = event();
    auto* d = reinterpret_cast<int*>(device_memory());
    auto* h = reinterpret_cast<int*>(pinned_memory());
    CUDA_CHECK(cudaMemset(d, 0, block));
    CHECK(cudaStreamWaitEvent(t, e, 0) == cudaSuccess); // never recorded: no wait
    BusyStream s;
    s.make_busy();
    CUDA_CHECK(count_up(d, 1, 5, s));
    CUDA_CHECK(cudaMemcpyAsync(h, d, sizeof(int), cudaMemcpyDeviceToHost, t));
    CUDA_CHECK(cudaEventRecord(e, s));
    CUDA_CHECK(cudaStreamWaitEvent(t, e, 0));
    CUDA_CHECK(cudaMemcpyAsync(h + 1, d, sizeof(int), cudaMemcpyDeviceToHost, t));
    CUDA_CHECK(cudaStreamSynchronize(t));
    CHECK(h[0] == 0); // did not wait
    CHECK(h[1] == 5);
}

TEST_CASE("pinned memory is faster, and both directions work at once") {
    check::require_devices(1);
    int engines = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&engines, cudaDevAttrAsyncEngineCount, 0));
    const auto m = plain_memory();
    char* d = device_memory();
    char* e = device_memory();
    char* h = pinned_memory();
    char* i = pinned_memory();
    const double pinned = copy_rate(d, h, cudaMemcpyHostToDevice);
    const double pageable = copy_rate(d, m.get(), cudaMemcpyHostToDevice);
    CHECK(pageable < 1.05 * pinned);
    CHECK(copy_rate(d, e, cudaMemcpyDeviceToDevice) > pinned);
    if (engines < d2h_and_h2d) check::skip("this GPU copies in one direction at a time");

    const cudaStream_t s = stream();
    const cudaStream_t t = stream();
    const cudaEvent_t begin = event();
    const cudaEvent_t up = event();
    const cudaEvent_t down = event();
    CUDA_CHECK(cudaEventRecord(begin));
    CUDA_CHECK(cudaMemcpyAsync(d, h, block, cudaMemcpyHostToDevice, s));
    CUDA_CHECK(cudaMemcpyAsync(i, e, block, cudaMemcpyDeviceToHost, t));
    CUDA_CHECK(cudaEventRecord(up, s));
    CUDA_CHECK(cudaEventRecord(down, t));
    const double both = std::max(milliseconds(begin, up), milliseconds(begin, down));
    const double one = static_cast<double>(block) / 1e6 / pinned;
    CHECK(both < 1.6 * one);
}

TEST_CASE("pools reserve, hand out and give back") {
    check::require_devices(1);
    const cudaMemPool_t pool = default_pool();
    const cudaStream_t s = stream();
    CHECK(pool_bytes(pool, cudaMemPoolAttrReleaseThreshold) == 0);
    char* a = pool_memory(1000, s);
    CHECK(pool_bytes(pool, cudaMemPoolAttrUsedMemCurrent) >= 1000);
    CHECK(pool_bytes(pool, cudaMemPoolAttrReservedMemCurrent) >= 1000);
    CUDA_CHECK(cudaFreeAsync(a, s));
    CHECK(pool_bytes(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
    a = pool_memory(block, s);
    CUDA_CHECK(cudaFreeAsync(a, s));
    CHECK(pool_bytes(pool, cudaMemPoolAttrReservedMemCurrent) >= block);
    CUDA_CHECK(cudaStreamSynchronize(s));
    CHECK(pool_bytes(pool, cudaMemPoolAttrReservedMemCurrent) == 0); // threshold 0
    CHECK(pool_bytes(pool, cudaMemPoolAttrReservedMemHigh) >= block);
    CHECK(pool_bytes(pool, cudaMemPoolAttrUsedMemHigh) >= block);
    std::uint64_t all = ~std::uint64_t{0};
    CHECK_ANSWER(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all), cudaSuccess);
    a = pool_memory(block, s);
    CUDA_CHECK(cudaFreeAsync(a, s));
    CUDA_CHECK(cudaStreamSynchronize(s));
    CHECK(pool_bytes(pool, cudaMemPoolAttrReservedMemCurrent) >= block);
    CHECK_ANSWER(cudaMemPoolTrimTo(pool, 0), cudaSuccess);
    CHECK(pool_bytes(pool, cudaMemPoolAttrReservedMemCurrent) == 0);
}

TEST_CASE("pool memory is used again at once in its own stream only") {
    check::require_devices(1);
    const cudaMemPool_t pool = default_pool();
    int no = 0;
    // Whether another stream may have it depends on these alone now, not on luck.
    CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &no));
    CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &no));
    BusyStream s;
    const cudaStream_t t = stream();
    char* a = pool_memory(block, s);
    s.make_busy();
    CUDA_CHECK(cudaFreeAsync(a, s));
    char* b = pool_memory(block, t);
    CHECK(b != a);
    char* c = pool_memory(block, s);
    CHECK(c == a);
    CUDA_CHECK(cudaFreeAsync(c, s));
    const cudaEvent_t e = event();
    CUDA_CHECK(cudaEventRecord(e, s));
    CUDA_CHECK(cudaStreamWaitEvent(t, e, 0));
    CHECK(pool_memory(block, t) == a);
}

TEST_CASE("giving pool memory back twice") {
    check::require_devices(1);
    const cudaStream_t s = stream();
    char* a = pool_memory(1000, s);
    CHECK_ANSWER(cudaFreeAsync(a, s), cudaSuccess);
    CHECK_ANSWER(cudaFreeAsync(a, s), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaFree(a), cudaErrorInvalidValue);
    CHECK_ANSWER(cudaFreeAsync(nullptr, s), cudaSuccess);
    char* b = pool_memory(1000, s);
    CHECK_ANSWER(cudaFree(b), cudaSuccess);
    char* d = device_memory(); // memory of cudaMalloc is taken, too
    CHECK_ANSWER(cudaFreeAsync(d, s), cudaSuccess);
    CUDA_CHECK(cudaStreamSynchronize(s));
    CHECK_ANSWER(cudaFree(d), cudaErrorInvalidValue);
}

TEST_CASE("a pool of one's own") {
    check::require_devices(1);
    const cudaStream_t s = stream();
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = 0;
    cudaMemPool_t pool = nullptr;
    CHECK_ANSWER(cudaMemPoolCreate(&pool, &properties), cudaSuccess);
    void* a = nullptr;
    CHECK_ANSWER(cudaMallocFromPoolAsync(&a, block, pool, s), cudaSuccess);
    check_device(a);
    CHECK(pool_bytes(pool, cudaMemPoolAttrUsedMemCurrent) == block);
    CHECK(pool_bytes(default_pool(), cudaMemPoolAttrUsedMemCurrent) == 0);
    CUDA_CHECK(cudaFreeAsync(a, s));
    CHECK_ANSWER(cudaDeviceSetMemPool(0, pool), cudaSuccess);
    cudaMemPool_t current = nullptr;
    CHECK_ANSWER(cudaDeviceGetMemPool(&current, 0), cudaSuccess);
    CHECK(current == pool);
    CUDA_CHECK(cudaFreeAsync(pool_memory(1000, s), s));
    CHECK(pool_bytes(default_pool(), cudaMemPoolAttrUsedMemHigh) == 0);
    CUDA_CHECK(cudaStreamSynchronize(s));
    CHECK_ANSWER(cudaMemPoolDestroy(pool), cudaSuccess);
    CHECK_ANSWER(cudaDeviceGetMemPool(&current, 0), cudaSuccess);
    CHECK(current == default_pool());
}

TEST_CASE("access to pools by devices that are not there") {
    check::require_devices(1);
    int n = 0;
    CUDA_CHECK(cudaGetDeviceCount(&n));
    cudaMemAccessDesc wanted{};
    wanted.location.type = cudaMemLocationTypeDevice;
    wanted.location.id = n;
    wanted.flags = cudaMemAccessFlagsProtReadWrite;
    CHECK_ANSWER(cudaMemPoolSetAccess(default_pool(), &wanted, 1), cudaErrorInvalidDevice);
    cudaMemLocation here{};
    here.type = cudaMemLocationTypeDevice;
    cudaMemAccessFlags flags{};
    CHECK_ANSWER(cudaMemPoolGetAccess(&flags, default_pool(), &here), cudaSuccess);
    CHECK(flags == cudaMemAccessFlagsProtReadWrite);
}

TEST_CASE("variables of the program") {
    check::require_devices(1);
    auto* d = reinterpret_cast<int*>(device_memory());
    CUDA_CHECK(read_variable(d));
    CHECK(device_value(d) == 41);
    const int value = 17;
    CHECK_ANSWER(cudaMemcpyToSymbol(variable(), &value, sizeof value, 0, cudaMemcpyHostToDevice),
                 cudaSuccess);
    CUDA_CHECK(read_variable(d));
    CHECK(device_value(d) == 17);
    int back = 0;
    CHECK_ANSWER(cudaMemcpyFromSymbol(&back, variable(), sizeof back, 0, cudaMemcpyDeviceToHost),
                 cudaSuccess);
    CHECK(back == 17);
    const int four[4] = {1, 20, 300, 4000};
    CHECK_ANSWER(cudaMemcpyToSymbol(constant(), four, sizeof four, 0, cudaMemcpyHostToDevice),
                 cudaSuccess);
    CUDA_CHECK(sum_constant(d));
    CHECK(device_value(d) == 4321);
    CHECK_ANSWER(cudaMemcpyToSymbol(constant(), four, sizeof four, 4, cudaMemcpyHostToDevice),
                 cudaErrorInvalidValue);
    void* address = nullptr;
    std::size_t bytes = 0;
    CHECK_ANSWER(cudaGetSymbolAddress(&address, constant()), cudaSuccess);
    CHECK_ANSWER(cudaGetSymbolSize(&bytes, constant()), cudaSuccess);
    CHECK(bytes == sizeof four);
    CHECK(device_value(static_cast<int*>(address) + 2) == 300);
    CHECK_ANSWER(cudaGetSymbolAddress(&address, &back), cudaErrorInvalidSymbol);
}

namespace {

struct Called {
    std::vector<int> order;
    cudaError_t answer = cudaSuccess;
};

void call_first(void* given) {
    static_cast<Called*>(given)->order.push_back(1);
}

void call_second(void* given) {
    auto* called = static_cast<Called*>(given);
    called->order.push_back(2);
    void* pointer = nullptr;
    called->answer = cudaMalloc(&pointer, 16);
}

} // namespace

TEST_CASE("host functions run in order and may not call the runtime") {
    check::require_devices(1);
    BusyStream s;
    Called called;
    s.make_busy();
    CUDA_CHECK(cudaLaunchHostFunc(s, call_first, &called));
    CUDA_CHECK(cudaLaunchHostFunc(s, call_second, &called));
    CHECK(s.is_busy());
    CUDA_CHECK(cudaStreamSynchronize(s));
    CHECK(called.order == std::vector<int>{1, 2});
    CHECK(called.answer == cudaErrorNotPermitted);
}

TEST_CASE("the current device and the last error belong to the thread") {
    check::require_devices(1);
    int n = 0;
    CUDA_CHECK(cudaGetDeviceCount(&n));
    CUDA_CHECK(cudaSetDevice(n - 1));
    CHECK(cudaSetDevice(n) == cudaErrorInvalidDevice);
    int current = -1;
    cudaError_t last = cudaErrorUnknown;
    std::thread([&] {
        cudaGetDevice(&current);
        last = cudaPeekAtLastError();
    }).join();
    CHECK(current == 0);
    CHECK(last == cudaSuccess);
    CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
    CUDA_CHECK(cudaGetDevice(&current));
    CHECK(current == n - 1);
}

TEST_CASE("names and texts of errors") {
    CHECK(std::string(cudaGetErrorName(cudaErrorInvalidValue)) == "cudaErrorInvalidValue");
    CHECK(std::string(cudaGetErrorString(cudaErrorInvalidValue)) == "invalid argument");
    CHECK(std::string(cudaGetErrorString(cudaErrorMemoryAllocation)) == "out of memory");
    CHECK(std::string(cudaGetErrorString(cudaErrorIllegalAddress)) ==
          "an illegal memory access was encountered");
    CHECK(std::string(cudaGetErrorName(static_cast<cudaError_t>(12345))) ==
          "unrecognized error code");
}

TEST_CASE("what a kernel needs is known") {
    check::require_devices(1);
    cudaFuncAttributes found{};
    CHECK_ANSWER(cudaFuncGetAttributes(&found, copy_kernel()), cudaSuccess);
    CHECK(found.maxThreadsPerBlock == 1024);
    CHECK(found.sharedSizeBytes == 0);
    CHECK(found.numRegs > 0);
    int blocks = 0;
    CHECK_ANSWER(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, copy_kernel(), 256, 0),
                 cudaSuccess);
    CHECK(blocks >= 2);
    int not_a_kernel = 0;
    CHECK(cudaFuncGetAttributes(&found, &not_a_kernel) == cudaErrorInvalidResourceHandle);
}

TEST_CASE("streams know their flags, priority and device") {
    check::require_devices(1);
    int least = 1, greatest = 1;
    CHECK_ANSWER(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
    CHECK(greatest <= least);
    cudaStream_t s = nullptr;
    CHECK_ANSWER(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, greatest), cudaSuccess);
    unsigned flags = 0;
    int priority = 1, device = -1;
    CHECK_ANSWER(cudaStreamGetFlags(s, &flags), cudaSuccess);
    CHECK(flags == cudaStreamNonBlocking);
    CHECK_ANSWER(cudaStreamGetPriority(s, &priority), cudaSuccess);
    CHECK(priority == greatest);
    CHECK_ANSWER(cudaStreamGetDevice(s, &device), cudaSuccess);
    CHECK(device == 0);
    CHECK_ANSWER(cudaStreamDestroy(s), cudaSuccess);
}

TEST_CASE("streams and events of another device") {
    check::require_devices(2);
    CUDA_CHECK(cudaSetDevice(1));
    const cudaStream_t theirs = stream();
    const cudaEvent_t their_event = event();
    CUDA_CHECK(cudaSetDevice(0));
    auto* d = reinterpret_cast<int*>(device_memory());
    const cudaEvent_t own_event = event();
    CHECK(count_up(d, 1, 0, theirs) == cudaErrorInvalidResourceHandle);
    CHECK_ANSWER(cudaEventRecord(own_event, theirs), cudaErrorInvalidResourceHandle);
    CHECK_ANSWER(cudaEventRecord(their_event, theirs), cudaSuccess);
    CHECK_ANSWER(cudaStreamWaitEvent(nullptr, their_event, 0), cudaSuccess);
    CHECK_ANSWER(cudaStreamSynchronize(theirs), cudaSuccess);
    CHECK_ANSWER(cudaMemcpyAsync(d, d + 100, 4, cudaMemcpyDefault, theirs), cudaSuccess);
    CHECK_ANSWER(cudaStreamSynchronize(theirs), cudaSuccess);
    int device = -1;
    CUDA_CHECK(cudaStreamGetDevice(theirs, &device));
    CHECK(device == 1);
}

TEST_CASE("memory lies where it was allocated and can be freed from anywhere") {
    check::require_devices(2);
    CUDA_CHECK(cudaSetDevice(1));
    char* d = device_memory();
    CUDA_CHECK(cudaSetDevice(0));
    check_device(d, 1);
    CHECK_ANSWER(cudaMemset(d, 1, block), cudaSuccess);
    CHECK_ANSWER(cudaFree(d), cudaSuccess);
}

TEST_CASE("copies between two GPUs need no peer access") {
    check::require_devices(2);
    constexpr std::size_t n = 100000;
    auto* a = reinterpret_cast<int*>(device_memory());
    CUDA_CHECK(count_up(a, n, 3));
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaSetDevice(1));
    auto* b = reinterpret_cast<int*>(device_memory());
    CHECK_ANSWER(cudaMemcpyPeer(b, 1, a, 0, n * sizeof(int)), cudaSuccess);
    CHECK(device_value(b + n - 1) == static_cast<int>(n) + 2);
    CHECK_ANSWER(cudaMemcpy(b, a + 1, 4, cudaMemcpyDefault), cudaSuccess);
    CHECK(device_value(b) == 4);
}

TEST_CASE("peer access opens one direction, once") {
    check::require_peer_access(0, 1);
    auto* a = reinterpret_cast<int*>(device_memory());
    CUDA_CHECK(count_up(a, 1000, 3));
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaSetDevice(1));
    auto* b = reinterpret_cast<int*>(device_memory());
    CHECK_ANSWER(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
    CHECK_ANSWER(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
    CUDA_CHECK(copy(b, a, 1000)); // GPU 1 reads GPU 0
    CHECK_ANSWER(cudaDeviceSynchronize(), cudaSuccess);
    CHECK(device_value(b + 999) == 1002);
    CUDA_CHECK(cudaSetDevice(0));
    CHECK_ANSWER(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
    CHECK(poke(b, 0, 1) == cudaSuccess); // GPU 0 writes GPU 1: never opened
    CHECK_ANSWER(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

TEST_CASE("memory of another GPU without peer access") {
    check::require_devices(2);
    CUDA_CHECK(cudaSetDevice(1));
    auto* b = reinterpret_cast<int*>(device_memory());
    CUDA_CHECK(cudaSetDevice(0));
    CHECK(poke(b, 0, 1) == cudaSuccess);
    CHECK_ANSWER(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    CUDA_CHECK(cudaSetDevice(1));
    CHECK_ANSWER(cudaDeviceSynchronize(), cudaSuccess); // the other context lives on
}

TEST_CASE("pool memory is opened by the pool's access, not by peer access") {
    check::require_peer_access(1, 0);
    const cudaStream_t s = stream();
    auto* a = reinterpret_cast<int*>(pool_memory(block, s));
    CUDA_CHECK(cudaStreamSynchronize(s));
    CUDA_CHECK(cudaSetDevice(1));
    set_access(default_pool(0), 1, cudaMemAccessFlagsProtReadWrite);
    CHECK(poke(a, 0, 77) == cudaSuccess);
    CHECK_ANSWER(cudaDeviceSynchronize(), cudaSuccess);
    CHECK(device_value(a) == 77);
    set_access(default_pool(0), 1, cudaMemAccessFlagsProtNone);
    CHECK_ANSWER(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
    CHECK(poke(a, 0, 78) == cudaSuccess);
    CHECK_ANSWER(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

TEST_CASE("the stream decides on which GPU pool memory lies") {
    check::require_devices(2);
    CUDA_CHECK(cudaSetDevice(1));
    const cudaStream_t theirs = stream();
    CUDA_CHECK(cudaSetDevice(0));
    check_device(pool_memory(mib, theirs), 1);
    check_device(pool_memory(mib, nullptr), 0);
}

TEST_CASE("variables have one instance a GPU") {
    check::require_devices(2);
    const int value = 5;
    CUDA_CHECK(cudaMemcpyToSymbol(variable(), &value, sizeof value, 0, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaSetDevice(1));
    auto* d = reinterpret_cast<int*>(device_memory());
    CUDA_CHECK(read_variable(d));
    CHECK(device_value(d) == 41);
}

TEST_CASE("GPUs work at the same time") {
    check::require_devices(2);
    cudaStream_t streams[2]{};
    cudaEvent_t begins[2]{}, ends[2]{};
    for (int device = 0; device < 2; ++device) {
        CUDA_CHECK(cudaSetDevice(device));
        streams[device] = stream();
        begins[device] = event();
        ends[device] = event();
    }
    check::delay(0, streams[0], 50ms);
    CUDA_CHECK(cudaSetDevice(1));
    CUDA_CHECK(cudaEventRecord(begins[1], streams[1]));
    check::delay(1, streams[1], 50ms);
    CUDA_CHECK(cudaEventRecord(ends[1], streams[1]));
    CHECK(milliseconds(begins[1], ends[1]) < 75);
    // By then the other GPU's kernel, begun earlier, is at its end, too.
    CUDA_CHECK(cudaSetDevice(0));
    CUDA_CHECK(cudaEventRecord(ends[0], streams[0]));
    CHECK(cudaEventSynchronize(ends[0]) == cudaSuccess);
}
