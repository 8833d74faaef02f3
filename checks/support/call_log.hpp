/// A record of what the submission asks of the CUDA runtime, and the power to refuse it.
///
/// The program of a check defines its own cudaMalloc and so on, which every call of the submission
/// reaches first. They forward to the runtime, and record while a CallLog lives.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

namespace check {

/// One call. Fields that a call has no argument for keep their default.
struct Call {
    std::string_view name;
    std::uint64_t sequence = 0; ///< position among all calls of the log, over all threads
    std::thread::id thread;
    int device = -1; ///< current device at the call
    cudaError_t result = cudaSuccess;
    bool faked = false; ///< refused or answered by the log, not by the runtime

    const void* pointer = nullptr; ///< allocated, released, queried or written (a destination)
    const void* source = nullptr;  ///< read by a copy
    std::size_t bytes = 0;         ///< requested or transferred
    unsigned flags = 0;
    cudaMemcpyKind kind = cudaMemcpyDefault;
    cudaStream_t stream = nullptr; ///< used, created or destroyed
    cudaEvent_t event = nullptr;   ///< used, created or destroyed
    cudaMemPool_t pool = nullptr;
    int other_device = -1;   ///< peer, or device that a call names: set, asked, given access
    int attribute = -1;      ///< cudaMemPoolAttr, or cudaDeviceP2PAttr
    std::uint64_t value = 0; ///< of a pool attribute; 1 for an access that is granted
};

using Names = std::vector<std::string_view>;

/// Calls that belong together. In code that nvcc compiles `cudaMallocHost(&p, n)` arrives as
/// cudaHostAlloc whenever `p` is not a void*, so ask for groups rather than for single names.
extern const Names pinned_allocations; ///< cudaMallocHost, cudaHostAlloc, cudaHostRegister
extern const Names device_allocations; ///< cudaMalloc and its kin, also from pools
extern const Names pool_allocations;   ///< cudaMallocAsync, cudaMallocFromPoolAsync
extern const Names device_releases;    ///< cudaFree, cudaFreeAsync
extern const Names copies;             ///< all cudaMemcpy...
extern const Names async_copies;       ///< all cudaMemcpy...Async
extern const Names waits; ///< host waits for the GPU: device, stream and event synchronisation
extern const Names stream_creations;
extern const Names event_creations;
extern const Names kernel_launches;

/// Records all wrapped calls of all threads from construction to destruction. One at a time.
/// Names that are not wrapped are refused with std::invalid_argument.
class CallLog {
public:
    CallLog();
    ~CallLog();

    CallLog(const CallLog&) = delete;
    CallLog& operator=(const CallLog&) = delete;

    /// Makes the `nth` call (from 1, counted from now) of any of these names fail with `error`, or
    /// all of them from now on. Such a call does nothing, and the runtime's last error is set as by
    /// a real failure. Possible errors: cudaErrorMemoryAllocation, cudaErrorInvalidValue,
    /// cudaErrorInvalidDevice, cudaErrorPeerAccessUnsupported.
    void fail(const Names& names, int nth, cudaError_t error);
    void fail_all(const Names& names, cudaError_t error);

    /// From now on no GPU can access another one: cudaDeviceCanAccessPeer and
    /// cudaDeviceGetP2PAttribute answer 0, and what would enable access fails as it really does.
    /// Access that is enabled already stays.
    void no_peer_access();

    /// Puts a delay in front of every call of these names that has a stream, in that stream.
    void delay_before(const Names& names, std::chrono::microseconds time);
    /// The same for the `nth` of these calls alone, from 1, counted from now.
    void delay_before_nth(const Names& names, int nth, std::chrono::microseconds time);

    /// Ends fail(), fail_all(), no_peer_access() and delays. Recording goes on.
    void behave();

    std::vector<Call> calls() const;
    std::vector<Call> calls(const Names& names) const;
    int count(std::string_view name) const;
    int count(const Names& names) const;
    /// How many calls fail(), fail_all() or no_peer_access() have refused so far.
    int refused() const;

    /// Calls that did not succeed, refused ones included. cudaErrorNotReady is no failure.
    std::vector<Call> failed_calls() const;

    /// Bytes of pinned host memory allocated or registered since construction and not released.
    std::size_t live_pinned_bytes() const;
    std::size_t peak_pinned_bytes() const;
    /// The same for device memory of one GPU, pools included. Where an allocation from a pool is
    /// counts as the device of its stream if the log saw the stream's creation, else as the current
    /// device.
    std::size_t live_device_bytes(int device) const;
    std::size_t peak_device_bytes(int device) const;

    /// What was made since construction and not released, one sentence each: memory, streams,
    /// events, pools. Empty when all is well.
    std::vector<std::string> leaks() const;

    /// All calls as text, one a line, for a failure's report.
    std::string text() const;

    struct State;

private:
    std::unique_ptr<State> state_;
};

/// CHECKs that everything which was made is released; `when` begins the report.
bool nothing_left(const CallLog& log, const std::string& when);

/// CHECKs that no call failed but those that the log was asked to refuse.
bool nothing_failed(const CallLog& log);

/// Whether anybody has called cudaDeviceReset() in this process, recorded or not.
bool device_was_reset();

/// One call as text, such as "cudaMallocHost(8388608 bytes) on GPU 1: cudaSuccess".
std::string to_text(const Call& call);

} // namespace check
