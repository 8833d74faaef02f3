#include "api/call.hpp"

#include "node/trace.hpp"

namespace sim::api {

cudaError_t remember(HostThread& thread, cudaError_t error) {
    if (error != cudaSuccess && error != cudaErrorNotReady) thread.last_error = error;
    return error;
}

Call begin_call() {
    Node& node = the_node();
    HostThread& thread = this_thread();
    thread.spend(node.file.api.any_call.of(0));
    return {node, thread, Lock(node.mutex)};
}

cudaError_t use_context(Call& call, Device& device) {
    if (device.sticky != 0) return state_of(device);
    if (device.lost) return cudaErrorDevicesUnavailable;
    if (device.context) return cudaSuccess;
    device.context = true;
    device.memory.take_overhead(device.figures.gpu.context_bytes);
    call.thread.spend(device.figures.api.context.of(0));
    return cudaSuccess;
}

Stream* find_stream(Call& call, cudaStream_t handle) {
    if (handle == nullptr || handle == cudaStreamLegacy) return &call.device().legacy_stream;
    if (handle == cudaStreamPerThread) return &call.node.thread_stream(call.thread, call.device());
    return call.node.find_stream(handle);
}

cudaError_t ready_for_work(Call& call, const Stream& stream) {
    if (stream.device->sticky != 0) return state_of(*stream.device);
    if (stream.capture && !stream.capture->valid) return cudaErrorStreamCaptureInvalidated;
    if (!stream.legacy || !call.node.is_capturing()) return cudaSuccess;
    // The default stream would wait for the capturing one, which has nothing to wait for.
    call.node.break_captures();
    return cudaErrorStreamCaptureImplicit;
}

cudaError_t not_while_capturing(Call& call) {
    if (!call.node.is_capturing()) return cudaSuccess;
    call.node.break_captures();
    return cudaErrorStreamCaptureUnsupported;
}

cudaError_t not_while_capturing_strictly(Call& call) {
    return call.node.is_capturing(true) ? not_while_capturing(call) : cudaSuccess;
}

void spend_on(Call& call, const char* what, double ns) {
    const double begin = call.thread.clock;
    call.thread.spend(ns);
    if (Trace* trace = Trace::active()) trace->add(call.thread, what, "allocation", begin);
}

void after_synchronization(Call& call, Device& device) {
    call.thread.spend(call.node.file.api.synchronize.of(0));
    call.node.trim_pools(device, call.thread);
}

} // namespace sim::api
