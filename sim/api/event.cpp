// Events.
#include "api/call.hpp"

using namespace sim;
using namespace sim::api;

namespace {

template <class Body> cudaError_t with_event(cudaEvent_t handle, Body&& body) {
    return device_call([&](Call& call) -> cudaError_t {
        Event* event = call.node.find_event(handle);
        return event ? body(call, *event) : cudaErrorInvalidResourceHandle;
    });
}

/// Asking for an event that was recorded into a graph has no answer.
cudaError_t captured(Call& call) {
    call.node.break_captures();
    return cudaErrorCapturedEvent;
}

} // namespace

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
    return device_call([&](Call& call) {
        constexpr unsigned known =
            cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
        if (!event || (flags & ~known)) return cudaErrorInvalidValue;
        call.thread.spend(call.node.file.api.event_create.of(0));
        *event = reinterpret_cast<cudaEvent_t>(
            &call.node.add_event(call.device(), flags, !(flags & cudaEventDisableTiming)));
        return cudaSuccess;
    });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    return with_event(handle, [&](Call& call, Event&) {
        call.thread.spend(call.node.file.api.event_create.of(0));
        call.node.remove_event(handle);
        return cudaSuccess;
    });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle,
                                     unsigned int flags) {
    return with_event(handle, [&](Call& call, Event& event) {
        Stream* stream = find_stream(call, stream_handle);
        if (!stream || stream->device != event.device) return cudaErrorInvalidResourceHandle;
        if (flags > cudaEventRecordExternal) return cudaErrorInvalidValue;
        call.thread.spend(call.node.file.api.event_record.of(0));
        event.capture = stream->capture;
        event.capture_after = stream->capture_after;
        if (stream->capture) return cudaSuccess; // it marks a place in the graph
        event.record = call.node.submit(
            *stream,
            [stream] {
                return std::make_shared<MarkerOperation>(*stream->device, "record of an event");
            },
            call.thread);
        return cudaSuccess;
    });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    return with_event(handle, [&](Call& call, Event& event) {
        Device& device = *event.device;
        if (event.capture) return captured(call);
        if (event.record) call.node.wait(event.record, call.thread, call.lock);
        after_synchronization(call, device);
        return state_of(device);
    });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
    return with_event(handle, [&](Call& call, Event& event) {
        Device& device = *event.device;
        call.thread.spend(call.node.file.api.query.of(0));
        if (event.capture) return captured(call);
        const bool over = call.node.is_over(event.record, call.thread, call.lock);
        if (device.sticky != 0) return state_of(device);
        return over ? cudaSuccess : cudaErrorNotReady;
    });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t stop) {
    return device_call([&](Call& call) {
        const Event* first = call.node.find_event(start);
        const Event* last = call.node.find_event(stop);
        if (!ms) return cudaErrorInvalidValue;
        if (!first || !last || !first->timed || !last->timed || !first->record || !last->record ||
            first->device != last->device)
            return cudaErrorInvalidResourceHandle;
        const OperationPtr begin = first->record;
        const OperationPtr end = last->record;
        if (!call.node.is_over(begin, call.thread, call.lock) ||
            !call.node.is_over(end, call.thread, call.lock))
            return cudaErrorNotReady;
        *ms = static_cast<float>((end->end - begin->end) / 1e6);
        return cudaSuccess;
    });
}
