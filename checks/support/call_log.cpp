#include "support/call_log.hpp"

#include "support/delay.hpp"
#include "support/report.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace check {

namespace {

/// Names of all wrapped calls, filled by their definitions at the end of this file.
std::set<std::string_view>& wrapped() {
    static std::set<std::string_view> names;
    return names;
}

struct Registration {
    explicit Registration(std::string_view name) { wrapped().insert(name); }
};

bool contains(const Names& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

void must_be_wrapped(const Names& names) {
    for (const std::string_view name : names) {
        if (wrapped().count(name) == 0)
            throw std::invalid_argument("the call log does not wrap " + std::string(name));
    }
}

const Names pinned_releases = {"cudaFreeHost", "cudaHostUnregister"};
const Names pool_owners = {"cudaDeviceGetDefaultMemPool", "cudaDeviceGetMemPool",
                           "cudaMemPoolCreate"};

struct Memory {
    std::size_t bytes = 0;
    int device = -1; ///< -1: pinned host memory
    std::string_view made_by;
};

struct Level {
    std::size_t now = 0;
    std::size_t peak = 0;

    void add(std::size_t bytes) {
        now += bytes;
        peak = std::max(peak, now);
    }
};

struct Refusal {
    Names names;
    int countdown = 0; ///< refuses when it gets to 0; all calls when it was 0 from the start
    bool all = false;
    cudaError_t error = cudaSuccess;
};

struct Delay {
    Names names;
    std::chrono::microseconds time{};
    int nth = 0; ///< which of the calls, from 1; 0 for all
    int seen = 0;
};

std::mutex mutex;
CallLog::State* active = nullptr;

/// While a wrapper runs, what it calls itself is neither recorded nor refused.
thread_local bool inside = false;

struct Inside {
    Inside() { inside = true; }
    ~Inside() { inside = false; }
};

int current_device() {
    int device = -1;
    cudaGetDevice(&device);
    return device;
}

bool can_be_provoked(cudaError_t error) {
    return error == cudaErrorMemoryAllocation || error == cudaErrorInvalidValue ||
           error == cudaErrorInvalidDevice || error == cudaErrorPeerAccessUnsupported;
}

/// Makes the runtime fail with `error` by a request that it must refuse, so that its last error is
/// set as well. Returns what it answers, which is another error once a context is broken.
cudaError_t provoke(cudaError_t error) {
    void* memory = nullptr;
    switch (error) {
    case cudaErrorMemoryAllocation:
        return cudaMalloc(&memory, std::size_t{1} << 60);
    case cudaErrorInvalidValue:
        return cudaFreeHost(&memory);
    case cudaErrorInvalidDevice:
        return cudaSetDevice(-1);
    default:
        return cudaDeviceEnablePeerAccess(current_device(), 0);
    }
}

} // namespace

struct CallLog::State {
    std::vector<Call> calls;
    std::vector<Refusal> refusals;
    std::vector<Delay> delays;
    bool peers_apart = false;
    int refused = 0;
    std::uint64_t next = 0;

    std::map<const void*, Memory> memory;
    std::map<int, Level> levels; ///< by device; -1 is pinned host memory
    std::map<cudaStream_t, int> streams;
    std::set<cudaEvent_t> events;
    std::map<cudaMemPool_t, int> pools; ///< all whose device is known
    std::set<cudaMemPool_t> made_pools;

    void add(const void* pointer, Memory made) {
        if (pointer == nullptr) return;
        levels[made.device].add(made.bytes);
        memory[pointer] = made;
    }

    void release(const void* pointer) {
        const auto found = memory.find(pointer);
        if (found == memory.end()) return;
        levels[found->second.device].now -= found->second.bytes;
        memory.erase(found);
    }

    int device_of_stream(cudaStream_t stream) const {
        const auto known = streams.find(stream);
        return known == streams.end() ? -1 : known->second;
    }

    int device_of_allocation(const Call& call) const {
        if (const auto pool = pools.find(call.pool); pool != pools.end()) return pool->second;
        if (const int device = device_of_stream(call.stream); device >= 0) return device;
        return call.device;
    }

    /// The error with which this call is to fail; cudaSuccess when it is to go ahead.
    cudaError_t error_for(std::string_view name) {
        if (peers_apart && name == "cudaDeviceEnablePeerAccess")
            return cudaErrorPeerAccessUnsupported;
        for (Refusal& refusal : refusals) {
            if (!contains(refusal.names, name)) continue;
            if (refusal.all || --refusal.countdown == 0) return refusal.error;
        }
        return cudaSuccess;
    }

    std::chrono::microseconds delay_for(std::string_view name) {
        std::chrono::microseconds time{};
        for (Delay& delay : delays) {
            if (!contains(delay.names, name)) continue;
            ++delay.seen;
            if (delay.nth == 0 || delay.nth == delay.seen) time += delay.time;
        }
        return time;
    }

    /// What a successful call has made or released.
    void account(const Call& call) {
        if (contains(pinned_allocations, call.name)) {
            add(call.pointer, {call.bytes, -1, call.name});
        } else if (contains(device_allocations, call.name)) {
            add(call.pointer, {call.bytes, device_of_allocation(call), call.name});
        } else if (contains(stream_creations, call.name)) {
            streams[call.stream] = call.device;
        } else if (call.name == "cudaStreamDestroy") {
            streams.erase(call.stream);
        } else if (contains(event_creations, call.name)) {
            events.insert(call.event);
        } else if (call.name == "cudaEventDestroy") {
            events.erase(call.event);
        } else if (contains(pool_owners, call.name)) {
            pools[call.pool] = call.other_device;
            if (call.name == "cudaMemPoolCreate") made_pools.insert(call.pool);
        } else if (call.name == "cudaMemPoolDestroy") {
            pools.erase(call.pool);
            made_pools.erase(call.pool);
        }
    }
};

namespace {

/// The device on which to delay `stream`.
int device_for_delay(cudaStream_t stream, int seen) {
    if (seen >= 0) return seen;
#if CUDART_VERSION >= 12080
    int device = -1;
    if (stream != nullptr && cudaStreamGetDevice(stream, &device) == cudaSuccess) return device;
#endif
    return current_device();
}

/// One call on its way through a wrapper.
class Passage {
public:
    Passage(std::string_view name, bool has_stream) : has_stream_(has_stream) {
        call.name = name;
        call.thread = std::this_thread::get_id();
        call.device = current_device();
    }

    /// Once the arguments are in `call`: true when the runtime is to be asked.
    bool may_go() {
        std::chrono::microseconds wait{};
        int stream_device = -1;
        cudaError_t error = cudaSuccess;
        {
            const std::lock_guard lock(mutex);
            if (active == nullptr) return true;
            call.sequence = active->next++;
            error = active->error_for(call.name);
            if (has_stream_) wait = active->delay_for(call.name);
            stream_device = active->device_of_stream(call.stream);
            const bool releases =
                contains(device_releases, call.name) || contains(pinned_releases, call.name);
            // Before the call: as soon as it is made, others may get the same address.
            if (releases && error == cudaSuccess) take_memory();
        }
        if (error != cudaSuccess) {
            call.faked = true;
            call.result = provoke(error);
            if (call.result == cudaSuccess) call.result = error;
            return false;
        }
        if (wait.count() > 0)
            delay(device_for_delay(call.stream, stream_device), call.stream, wait);
        return true;
    }

    bool peers_apart() const {
        const std::lock_guard lock(mutex);
        return active != nullptr && active->peers_apart;
    }

    cudaError_t end() {
        const std::lock_guard lock(mutex);
        if (active == nullptr) return call.result;
        if (call.faked && call.result != cudaSuccess) ++active->refused;
        if (call.result == cudaSuccess) {
            active->account(call);
        } else if (taken_.made_by != std::string_view()) {
            active->add(call.pointer, taken_);
        }
        active->calls.push_back(call);
        return call.result;
    }

    Call call;

private:
    void take_memory() {
        const auto found = active->memory.find(call.pointer);
        if (found == active->memory.end()) return;
        taken_ = found->second;
        active->release(call.pointer);
    }

    Inside inside_;
    bool has_stream_;
    Memory taken_;
};

/// A pool attribute's value: a number of bytes, or an int for the reuse policies.
std::uint64_t pool_attribute(cudaMemPoolAttr attribute, const void* value) {
    const bool is_policy = attribute == cudaMemPoolReuseFollowEventDependencies ||
                           attribute == cudaMemPoolReuseAllowOpportunistic ||
                           attribute == cudaMemPoolReuseAllowInternalDependencies;
    if (is_policy) return static_cast<std::uint64_t>(*static_cast<const int*>(value));
    return *static_cast<const std::uint64_t*>(value);
}

std::atomic<bool> was_reset = false;

bool recording() {
    if (inside) return false;
    const std::lock_guard lock(mutex);
    return active != nullptr;
}

void* next_symbol(const char* name) {
    void* symbol = dlsym(RTLD_NEXT, name);
    if (symbol == nullptr) {
        std::fprintf(stderr, "the CUDA runtime in use has no %s\n", name);
        std::abort();
    }
    return symbol;
}

} // namespace

const Names pinned_allocations = {"cudaMallocHost", "cudaHostAlloc", "cudaHostRegister"};
const Names device_allocations = {"cudaMalloc", "cudaMallocPitch", "cudaMallocManaged",
                                  "cudaMallocAsync", "cudaMallocFromPoolAsync"};
const Names pool_allocations = {"cudaMallocAsync", "cudaMallocFromPoolAsync"};
const Names device_releases = {"cudaFree", "cudaFreeAsync"};
const Names copies = {"cudaMemcpy",          "cudaMemcpyAsync", "cudaMemcpyPeer",
                      "cudaMemcpyPeerAsync", "cudaMemcpy2D",    "cudaMemcpy2DAsync"};
const Names async_copies = {"cudaMemcpyAsync", "cudaMemcpyPeerAsync", "cudaMemcpy2DAsync"};
const Names waits = {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize"};
const Names stream_creations = {"cudaStreamCreate", "cudaStreamCreateWithFlags",
                                "cudaStreamCreateWithPriority"};
const Names event_creations = {"cudaEventCreate", "cudaEventCreateWithFlags"};
const Names kernel_launches = {"cudaLaunchKernel", "__cudaLaunchKernel",
                               "cudaLaunchCooperativeKernel"};

CallLog::CallLog() : state_(std::make_unique<State>()) {
    const std::lock_guard lock(mutex);
    if (active != nullptr) throw std::logic_error("one CallLog at a time");
    active = state_.get();
}

CallLog::~CallLog() {
    const std::lock_guard lock(mutex);
    active = nullptr;
}

void CallLog::fail(const Names& names, int nth, cudaError_t error) {
    must_be_wrapped(names);
    if (!can_be_provoked(error) || nth < 1) throw std::invalid_argument("CallLog::fail");
    const std::lock_guard lock(mutex);
    state_->refusals.push_back({names, nth, false, error});
}

void CallLog::fail_all(const Names& names, cudaError_t error) {
    must_be_wrapped(names);
    if (!can_be_provoked(error)) throw std::invalid_argument("CallLog::fail_all");
    const std::lock_guard lock(mutex);
    state_->refusals.push_back({names, 0, true, error});
}

void CallLog::no_peer_access() {
    const std::lock_guard lock(mutex);
    state_->peers_apart = true;
}

void CallLog::delay_before(const Names& names, std::chrono::microseconds time) {
    must_be_wrapped(names);
    const std::lock_guard lock(mutex);
    state_->delays.push_back({names, time});
}

void CallLog::delay_before_nth(const Names& names, int nth, std::chrono::microseconds time) {
    must_be_wrapped(names);
    if (nth < 1) throw std::invalid_argument("CallLog::delay_before_nth");
    const std::lock_guard lock(mutex);
    state_->delays.push_back({names, time, nth});
}

void CallLog::behave() {
    const std::lock_guard lock(mutex);
    state_->refusals.clear();
    state_->delays.clear();
    state_->peers_apart = false;
}

std::vector<Call> CallLog::calls() const {
    const std::lock_guard lock(mutex);
    std::vector<Call> all = state_->calls;
    std::sort(all.begin(), all.end(),
              [](const Call& a, const Call& b) { return a.sequence < b.sequence; });
    return all;
}

std::vector<Call> CallLog::calls(const Names& names) const {
    must_be_wrapped(names);
    std::vector<Call> some = calls();
    some.erase(std::remove_if(some.begin(), some.end(),
                              [&](const Call& call) { return !contains(names, call.name); }),
               some.end());
    return some;
}

int CallLog::count(std::string_view name) const {
    return count(Names{name});
}

int CallLog::count(const Names& names) const {
    return static_cast<int>(calls(names).size());
}

int CallLog::refused() const {
    const std::lock_guard lock(mutex);
    return state_->refused;
}

std::vector<Call> CallLog::failed_calls() const {
    std::vector<Call> failed = calls();
    failed.erase(std::remove_if(failed.begin(), failed.end(),
                                [](const Call& call) {
                                    return call.result == cudaSuccess ||
                                           call.result == cudaErrorNotReady;
                                }),
                 failed.end());
    return failed;
}

std::size_t CallLog::live_pinned_bytes() const {
    return live_device_bytes(-1);
}

std::size_t CallLog::peak_pinned_bytes() const {
    return peak_device_bytes(-1);
}

std::size_t CallLog::live_device_bytes(int device) const {
    const std::lock_guard lock(mutex);
    return state_->levels[device].now;
}

std::size_t CallLog::peak_device_bytes(int device) const {
    const std::lock_guard lock(mutex);
    return state_->levels[device].peak;
}

std::vector<std::string> CallLog::leaks() const {
    const std::lock_guard lock(mutex);
    std::vector<std::string> sentences;
    for (const auto& [pointer, memory] : state_->memory) {
        std::ostringstream text;
        text << memory.bytes << " bytes of "
             << (memory.device < 0 ? "pinned host memory"
                                   : "memory of GPU " + std::to_string(memory.device))
             << " from " << memory.made_by << " are not released";
        sentences.push_back(text.str());
    }
    for (const auto& [stream, device] : state_->streams)
        sentences.push_back("a stream of GPU " + std::to_string(device) + " is not destroyed");
    if (!state_->events.empty())
        sentences.push_back(std::to_string(state_->events.size()) + " event(s) not destroyed");
    if (!state_->made_pools.empty())
        sentences.push_back(std::to_string(state_->made_pools.size()) +
                            " memory pool(s) not destroyed");
    return sentences;
}

std::string CallLog::text() const {
    std::string all;
    for (const Call& call : calls())
        all += to_text(call) + '\n';
    return all;
}

bool nothing_left(const CallLog& log, const std::string& when) {
    const std::vector<std::string> leaks = log.leaks();
    bool ok = expect(leaks.empty(), when + ": " + (leaks.empty() ? "" : leaks.front()));
    for (std::size_t i = 1; i < leaks.size(); ++i)
        expect(false, when + ": " + leaks[i]);
    return ok;
}

bool nothing_failed(const CallLog& log) {
    bool ok = true;
    for (const Call& call : log.failed_calls())
        ok &= expect(call.faked, "failed: " + to_text(call));
    return ok;
}

std::string to_text(const Call& call) {
    std::ostringstream text;
    text << call.name << '(';
    const char* separator = "";
    if (call.bytes > 0) text << call.bytes << " bytes", separator = ", ";
    if (call.other_device >= 0) text << separator << "GPU " << call.other_device, separator = ", ";
    if (call.stream != nullptr) text << separator << "stream " << call.stream;
    text << ") with GPU " << call.device << " current: " << cudaGetErrorName(call.result);
    if (call.faked) text << " (by the check)";
    return text.str();
}

bool device_was_reset() {
    return was_reset;
}

} // namespace check

// The wrapped calls. Each wrapper notes its arguments (`before`), asks the runtime unless the log
// says otherwise, and notes what came back (`after`, on success).

#define CHECK_WRAP(name, parameters, arguments, has_stream, before, after)                         \
    static const check::Registration registration_of_##name(#name);                                \
    extern "C" cudaError_t CUDARTAPI name parameters {                                             \
        static const auto forward =                                                                \
            reinterpret_cast<cudaError_t(*) parameters>(check::next_symbol(#name));                \
        if (!check::recording()) return forward arguments;                                         \
        check::Passage passage(#name, has_stream);                                                 \
        check::Call& call = passage.call;                                                          \
        before;                                                                                    \
        if (passage.may_go()) {                                                                    \
            call.result = forward arguments;                                                       \
            if (call.result == cudaSuccess) {                                                      \
                after;                                                                             \
            }                                                                                      \
        }                                                                                          \
        return passage.end();                                                                      \
    }                                                                                              \
    static_assert(true)

#define CHECK_PLAIN(name, parameters, arguments, before)                                           \
    CHECK_WRAP(name, parameters, arguments, false, before, (void)0)
#define CHECK_STREAM(name, parameters, arguments, before)                                          \
    CHECK_WRAP(name, parameters, arguments, true, before, (void)0)

// Memory

CHECK_WRAP(cudaMalloc, (void** pointer, std::size_t bytes), (pointer, bytes), false,
           call.bytes = bytes, call.pointer = *pointer);
CHECK_WRAP(cudaMallocPitch,
           (void** pointer, std::size_t* pitch, std::size_t width, std::size_t height),
           (pointer, pitch, width, height), false, call.bytes = width * height,
           (call.pointer = *pointer, call.bytes = *pitch * height));
CHECK_WRAP(cudaMallocManaged, (void** pointer, std::size_t bytes, unsigned flags),
           (pointer, bytes, flags), false, (call.bytes = bytes, call.flags = flags),
           call.pointer = *pointer);
CHECK_PLAIN(cudaFree, (void* pointer), (pointer), call.pointer = pointer);
CHECK_WRAP(cudaMallocHost, (void** pointer, std::size_t bytes), (pointer, bytes), false,
           call.bytes = bytes, call.pointer = *pointer);
CHECK_WRAP(cudaHostAlloc, (void** pointer, std::size_t bytes, unsigned flags),
           (pointer, bytes, flags), false, (call.bytes = bytes, call.flags = flags),
           call.pointer = *pointer);
CHECK_PLAIN(cudaFreeHost, (void* pointer), (pointer), call.pointer = pointer);
CHECK_PLAIN(cudaHostRegister, (void* pointer, std::size_t bytes, unsigned flags),
            (pointer, bytes, flags),
            (call.pointer = pointer, call.bytes = bytes, call.flags = flags));
CHECK_PLAIN(cudaHostUnregister, (void* pointer), (pointer), call.pointer = pointer);

// Copies and fills

CHECK_PLAIN(cudaMemcpy, (void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind),
            (to, from, bytes, kind),
            (call.pointer = to, call.source = from, call.bytes = bytes, call.kind = kind));
CHECK_STREAM(cudaMemcpyAsync,
             (void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
              cudaStream_t stream),
             (to, from, bytes, kind, stream),
             (call.pointer = to, call.source = from, call.bytes = bytes, call.kind = kind,
              call.stream = stream));
CHECK_PLAIN(cudaMemcpyPeer,
            (void* to, int to_device, const void* from, int from_device, std::size_t bytes),
            (to, to_device, from, from_device, bytes),
            (call.pointer = to, call.source = from, call.bytes = bytes,
             call.other_device = to_device));
CHECK_STREAM(cudaMemcpyPeerAsync,
             (void* to, int to_device, const void* from, int from_device, std::size_t bytes,
              cudaStream_t stream),
             (to, to_device, from, from_device, bytes, stream),
             (call.pointer = to, call.source = from, call.bytes = bytes,
              call.other_device = to_device, call.stream = stream));
CHECK_PLAIN(cudaMemcpy2D,
            (void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
             std::size_t width, std::size_t height, cudaMemcpyKind kind),
            (to, to_pitch, from, from_pitch, width, height, kind),
            (call.pointer = to, call.source = from, call.bytes = width * height, call.kind = kind));
CHECK_STREAM(cudaMemcpy2DAsync,
             (void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream),
             (to, to_pitch, from, from_pitch, width, height, kind, stream),
             (call.pointer = to, call.source = from, call.bytes = width * height, call.kind = kind,
              call.stream = stream));
CHECK_PLAIN(cudaMemset, (void* to, int value, std::size_t bytes), (to, value, bytes),
            (call.pointer = to, call.bytes = bytes));
CHECK_STREAM(cudaMemsetAsync, (void* to, int value, std::size_t bytes, cudaStream_t stream),
             (to, value, bytes, stream),
             (call.pointer = to, call.bytes = bytes, call.stream = stream));

// Pools

CHECK_WRAP(cudaMallocAsync, (void** pointer, std::size_t bytes, cudaStream_t stream),
           (pointer, bytes, stream), true, (call.bytes = bytes, call.stream = stream),
           call.pointer = *pointer);
CHECK_WRAP(cudaMallocFromPoolAsync,
           (void** pointer, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
           (pointer, bytes, pool, stream), true,
           (call.bytes = bytes, call.pool = pool, call.stream = stream), call.pointer = *pointer);
CHECK_STREAM(cudaFreeAsync, (void* pointer, cudaStream_t stream), (pointer, stream),
             (call.pointer = pointer, call.stream = stream));
CHECK_WRAP(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device), (pool, device), false,
           call.other_device = device, call.pool = *pool);
CHECK_WRAP(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device), (pool, device), false,
           call.other_device = device, call.pool = *pool);
CHECK_PLAIN(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool), (device, pool),
            (call.other_device = device, call.pool = pool));
CHECK_WRAP(cudaMemPoolCreate, (cudaMemPool_t * pool, const cudaMemPoolProps* properties),
           (pool, properties), false, call.other_device = properties->location.id,
           call.pool = *pool);
CHECK_PLAIN(cudaMemPoolDestroy, (cudaMemPool_t pool), (pool), call.pool = pool);
CHECK_PLAIN(cudaMemPoolTrimTo, (cudaMemPool_t pool, std::size_t bytes), (pool, bytes),
            (call.pool = pool, call.bytes = bytes));
CHECK_PLAIN(cudaMemPoolSetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value),
            (pool, attribute, value),
            (call.pool = pool, call.attribute = attribute,
             call.value = check::pool_attribute(attribute, value)));
CHECK_WRAP(cudaMemPoolGetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value),
           (pool, attribute, value), false, (call.pool = pool, call.attribute = attribute),
           call.value = check::pool_attribute(attribute, value));
CHECK_PLAIN(cudaMemPoolSetAccess,
            (cudaMemPool_t pool, const cudaMemAccessDesc* access, std::size_t count),
            (pool, access, count),
            (call.pool = pool, call.bytes = count,
             call.other_device = count > 0 ? access->location.id : -1,
             call.value = count > 0 && access->flags == cudaMemAccessFlagsProtReadWrite));

// Devices and peers

CHECK_PLAIN(cudaSetDevice, (int device), (device), call.other_device = device);
CHECK_PLAIN(cudaDeviceSynchronize, (), (), (void)0);
extern "C" cudaError_t CUDARTAPI cudaDeviceReset() {
    check::was_reset = true;
    return reinterpret_cast<cudaError_t (*)()>(check::next_symbol("cudaDeviceReset"))();
}
CHECK_WRAP(cudaDeviceCanAccessPeer, (int* can, int device, int peer), (can, device, peer), false,
           call.other_device = peer,
           (passage.peers_apart() ? * can = 0, call.faked = true : false));
CHECK_WRAP(cudaDeviceGetP2PAttribute,
           (int* value, cudaDeviceP2PAttr attribute, int device, int peer),
           (value, attribute, device, peer), false,
           (call.other_device = peer, call.attribute = attribute),
           (passage.peers_apart() ? * value = 0, call.faked = true : false));
CHECK_PLAIN(cudaDeviceEnablePeerAccess, (int peer, unsigned flags), (peer, flags),
            (call.other_device = peer, call.flags = flags));
CHECK_PLAIN(cudaDeviceDisablePeerAccess, (int peer), (peer), call.other_device = peer);

// Streams and events

CHECK_WRAP(cudaStreamCreate, (cudaStream_t * stream), (stream), false, (void)0,
           call.stream = *stream);
CHECK_WRAP(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), (stream, flags),
           false, call.flags = flags, call.stream = *stream);
CHECK_WRAP(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority),
           (stream, flags, priority), false, call.flags = flags, call.stream = *stream);
CHECK_PLAIN(cudaStreamDestroy, (cudaStream_t stream), (stream), call.stream = stream);
CHECK_PLAIN(cudaStreamSynchronize, (cudaStream_t stream), (stream), call.stream = stream);
CHECK_PLAIN(cudaStreamQuery, (cudaStream_t stream), (stream), call.stream = stream);
CHECK_STREAM(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
             (stream, event, flags),
             (call.stream = stream, call.event = event, call.flags = flags));
CHECK_STREAM(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void* argument),
             (stream, function, argument), call.stream = stream);
CHECK_WRAP(cudaEventCreate, (cudaEvent_t * event), (event), false, (void)0, call.event = *event);
CHECK_WRAP(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), (event, flags), false,
           call.flags = flags, call.event = *event);
CHECK_STREAM(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream),
             (call.event = event, call.stream = stream));
CHECK_PLAIN(cudaEventSynchronize, (cudaEvent_t event), (event), call.event = event);
CHECK_PLAIN(cudaEventQuery, (cudaEvent_t event), (event), call.event = event);
CHECK_PLAIN(cudaEventDestroy, (cudaEvent_t event), (event), call.event = event);

// Kernels. Code of nvcc 13 launches by the second one, which no public header declares.

CHECK_STREAM(cudaLaunchKernel,
             (const void* kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
              cudaStream_t stream),
             (kernel, grid, block, arguments, shared_bytes, stream), call.stream = stream);
extern "C" cudaError_t CUDARTAPI __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t,
                                                    cudaStream_t);
CHECK_STREAM(__cudaLaunchKernel,
             (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
              std::size_t shared_bytes, cudaStream_t stream),
             (kernel, grid, block, arguments, shared_bytes, stream), call.stream = stream);
CHECK_STREAM(cudaLaunchCooperativeKernel,
             (const void* kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
              cudaStream_t stream),
             (kernel, grid, block, arguments, shared_bytes, stream), call.stream = stream);
