// Managed memory and advice about it. The simulated node keeps managed memory in the host, visible
// to all, and does not model pages that move: kernels use it at the rate of their own memory, or,
// where advice keeps it in the host, over the link. Other advice is checked and changes nothing.
#include "api/call.hpp"

#include <algorithm>

using namespace sim;
using namespace sim::api;

namespace {

bool in_managed_memory(Call& call, const void* pointer, std::size_t bytes) {
    const HostRange* range = call.node.host.find(address_of(pointer));
    return range && range->kind == HostKind::managed && bytes <= range->end() - address_of(pointer);
}

cudaError_t check_advice(Call& call, const void* pointer, std::size_t bytes, bool on_device,
                         int device) {
    if (bytes == 0 || !in_managed_memory(call, pointer, bytes)) return cudaErrorInvalidValue;
    return on_device && !call.node.device(device) ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t advise(Call& call, const void* pointer, std::size_t bytes, cudaMemoryAdvise advice,
                   bool on_device, int device) {
    const cudaError_t answer = check_advice(call, pointer, bytes, on_device, device);
    if (answer != cudaSuccess) return answer;
    if (advice == cudaMemAdviseSetPreferredLocation)
        call.node.host.keep_in_host(address_of(pointer), !on_device);
    if (advice == cudaMemAdviseUnsetPreferredLocation)
        call.node.host.keep_in_host(address_of(pointer), false);
    return cudaSuccess;
}

} // namespace

#if CUDART_VERSION >= 13000
cudaError_t cudaMemAdvise(const void* pointer, std::size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation location) {
    const bool on_device = location.type == cudaMemLocationTypeDevice;
    return device_call(
        [&](Call& call) { return advise(call, pointer, bytes, advice, on_device, location.id); });
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, std::size_t bytes, cudaMemLocation location,
                                 unsigned int flags, cudaStream_t handle) {
    const bool on_device = location.type == cudaMemLocationTypeDevice;
    return device_call([&](Call& call) -> cudaError_t {
        if (flags != 0) return cudaErrorInvalidValue;
        if (!find_stream(call, handle)) return cudaErrorInvalidResourceHandle;
        return check_advice(call, pointer, bytes, on_device, location.id);
    });
}
#else
cudaError_t cudaMemAdvise(const void* pointer, std::size_t bytes, cudaMemoryAdvise advice,
                          int device) {
    return device_call([&](Call& call) {
        return advise(call, pointer, bytes, advice, device != cudaCpuDeviceId, device);
    });
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, std::size_t bytes, int device,
                                 cudaStream_t handle) {
    return device_call([&](Call& call) -> cudaError_t {
        if (!find_stream(call, handle)) return cudaErrorInvalidResourceHandle;
        return check_advice(call, pointer, bytes, device != cudaCpuDeviceId, device);
    });
}
#endif

cudaError_t cudaStreamAttachMemAsync(cudaStream_t handle, void* pointer, std::size_t bytes,
                                     unsigned int flags) {
    return device_call([&](Call& call) -> cudaError_t {
        constexpr unsigned known[] = {cudaMemAttachGlobal, cudaMemAttachHost, cudaMemAttachSingle};
        if (!find_stream(call, handle)) return cudaErrorInvalidResourceHandle;
        if (std::count(std::begin(known), std::end(known), flags) == 0)
            return cudaErrorInvalidValue;
        return in_managed_memory(call, pointer, bytes) ? cudaSuccess : cudaErrorInvalidValue;
    });
}
