// What every runtime call does before and after its own work: take the lock, find the caller,
// make the context, remember the error.
#pragma once

#include "node/node.hpp"
#include "node/operations.hpp"

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

namespace sim::api {

/// PCI bus number of device 0; the others follow.
inline constexpr int first_bus = 0x10;

/// One runtime call in progress, with the node locked.
struct Call {
    Node& node;
    HostThread& thread;
    Lock lock;
    Device& device() const { return *node.devices[static_cast<std::size_t>(thread.device)]; }
};

/// Remembers `error` for cudaGetLastError and returns it. "Not ready" is an answer, no error.
cudaError_t remember(HostThread& thread, cudaError_t error);

Call begin_call();

/// Makes the device's context at its first use. What the call has to answer instead of working:
/// the error that the context has died of, or that the process gets no new one.
cudaError_t use_context(Call& call, Device& device);

/// A call that needs no context: `body(Call&)` returns the answer.
template <class Body> cudaError_t host_call(Body&& body) {
    Call call = begin_call();
    return remember(call.thread, body(call));
}

/// A call that works on the current device.
template <class Body> cudaError_t device_call(Body&& body) {
    Call call = begin_call();
    if (call.thread.in_host_function) return remember(call.thread, cudaErrorNotPermitted);
    cudaError_t error = use_context(call, call.device());
    if (error == cudaSuccess) error = body(call);
    return remember(call.thread, error);
}

/// The stream a handle means for the calling thread: the default streams, or a live stream of the
/// program. nullptr when there is no such stream.
Stream* find_stream(Call& call, cudaStream_t handle);

/// Whether a stream takes work now: the error of its device, or what a capture does not allow.
cudaError_t ready_for_work(Call& call, const Stream& stream);

/// For calls that no capture allows, or no strict one: breaks the captures under way, if there are
/// any, and returns the error that says so.
cudaError_t not_while_capturing(Call& call);
cudaError_t not_while_capturing_strictly(Call& call);

/// The error that waiting brought up: a device may have died meanwhile.
inline cudaError_t state_of(const Device& device) {
    return static_cast<cudaError_t>(device.sticky);
}

/// Hands the stream behind a handle to `body`, unless its device has died.
template <class Body> cudaError_t with_stream(cudaStream_t handle, Body&& body) {
    return device_call([&](Call& call) -> cudaError_t {
        Stream* stream = find_stream(call, handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (stream->device->sticky != 0) return state_of(*stream->device);
        return body(call, *stream);
    });
}

/// The calling thread is busy with a call that allocates or releases, or so.
void spend_on(Call& call, const char* what, double ns);

inline std::uint64_t address_of(const void* pointer) {
    return reinterpret_cast<std::uint64_t>(pointer);
}
inline void* pointer_to(std::uint64_t address) {
    return reinterpret_cast<void*>(address);
}

/// Fills what the parameters of a graph's node name, in a stream.
cudaError_t fill_elements(const cudaMemsetParams& what, cudaStream_t stream);

/// Pool memory that a stream gives back at its end, and what waiting does to pools.
void after_synchronization(Call& call, Device& device);

} // namespace sim::api
