// Streams.
#include "api/call.hpp"

#include <algorithm>

using namespace sim;
using namespace sim::api;

namespace {

constexpr int greatest_priority = -5; // as on GPUs since Pascal
constexpr int least_priority = 0;

cudaError_t create(cudaStream_t* stream, unsigned flags, int priority) {
    return device_call([&](Call& call) {
        if (!stream || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
        call.thread.spend(call.node.file.api.stream_create.of(0));
        const int clamped = std::min(std::max(priority, greatest_priority), least_priority);
        *stream = reinterpret_cast<cudaStream_t>(
            &call.node.add_stream(call.device(), flags, clamped, !(flags & cudaStreamNonBlocking)));
        return cudaSuccess;
    });
}

cudaError_t launch_host_function(cudaStream_t handle, std::function<void()> function) {
    return with_stream(handle, [&](Call& call, Stream& stream) {
        call.thread.spend(call.node.file.api.launch.of(0));
        if (cudaError_t error = ready_for_work(call, stream)) return error;
        const auto make = [&node = call.node, &device = *stream.device, function] {
            return std::make_shared<HostOperation>(node, device, "host function", function);
        };
        call.node.submit(stream, make, call.thread);
        return cudaSuccess;
    });
}

/// The stream goes on behind an event of a capture, and takes part in it from now on.
cudaError_t join_capture(Stream& stream, const Event& event) {
    if (event.capture->over) return cudaErrorCapturedEvent;
    if (stream.capture && stream.capture != event.capture) return cudaErrorStreamCaptureMerge;
    if (!stream.capture) {
        stream.capture = event.capture;
        stream.capture_after.clear();
        stream.capture->streams.push_back(&stream);
    }
    for (GraphNode* node : event.capture_after) {
        auto& after = stream.capture_after;
        if (std::find(after.begin(), after.end(), node) == after.end()) after.push_back(node);
    }
    return cudaSuccess;
}

} // namespace

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    return create(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
    return create(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
    return create(stream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    return device_call([&](Call& call) {
        // The default streams cannot be destroyed. Work in flight goes on.
        const Stream* stream = call.node.find_stream(handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (stream->capture) return not_while_capturing(call);
        call.thread.spend(call.node.file.api.stream_create.of(0));
        call.node.remove_stream(handle);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    return with_stream(handle, [&](Call& call, Stream& stream) {
        if (stream.capture) return not_while_capturing(call);
        Device& device = *stream.device;
        call.node.wait(stream, call.thread, call.lock);
        after_synchronization(call, device);
        return state_of(device);
    });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
    return with_stream(handle, [&](Call& call, Stream& stream) {
        Device& device = *stream.device;
        if (stream.capture) return not_while_capturing(call);
        call.thread.spend(call.node.file.api.query.of(0));
        const bool over = call.node.is_over(stream, call.thread, call.lock);
        if (device.sticky != 0) return state_of(device);
        return over ? cudaSuccess : cudaErrorNotReady;
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned int flags) {
    return with_stream(handle, [&](Call& call, Stream& stream) {
        const Event* event = call.node.find_event(event_handle);
        if (!event) return cudaErrorInvalidResourceHandle;
        if (flags > cudaEventWaitExternal) return cudaErrorInvalidValue;
        call.thread.spend(call.node.file.api.wait_event.of(0));
        if (event->capture) return join_capture(stream, *event);
        if (stream.capture) return cudaErrorStreamCaptureIsolation;
        if (!event->record) return cudaSuccess; // never recorded: there is nothing to wait for
        call.node.submit(stream,
                         [&stream] {
                             return std::make_shared<MarkerOperation>(*stream.device,
                                                                      "wait for an event");
                         },
                         call.thread, {event->record});
        return cudaSuccess;
    });
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned int* flags) {
    return with_stream(handle, [&](Call&, Stream& stream) {
        if (!flags) return cudaErrorInvalidValue;
        *flags = stream.flags;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
    return with_stream(handle, [&](Call&, Stream& stream) {
        if (!priority) return cudaErrorInvalidValue;
        *priority = stream.priority;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
    return with_stream(handle, [&](Call&, Stream& stream) {
        if (!id) return cudaErrorInvalidValue;
        *id = stream.id;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
    return with_stream(handle, [&](Call&, Stream& stream) {
        if (!device) return cudaErrorInvalidValue;
        *device = stream.device->index;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    return host_call([&](Call&) {
        if (least) *least = least_priority;
        if (greatest) *greatest = greatest_priority;
        return cudaSuccess;
    });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
    if (!function) return host_call([](Call&) { return cudaErrorInvalidValue; });
    return launch_host_function(handle, [=] { function(data); });
}

cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback, void* data,
                                  unsigned int flags) {
    if (!callback || flags != 0) return host_call([](Call&) { return cudaErrorInvalidValue; });
    return launch_host_function(handle, [=] { callback(handle, cudaSuccess, data); });
}
