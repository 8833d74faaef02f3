// Capturing what is put into streams as a graph.
#include "api/graph.hpp"

#include <algorithm>

using namespace sim;
using namespace sim::api;

namespace {

/// Whether everything captured in other streams has been waited for in the one that began.
bool is_joined(const Capture& capture) {
    const Stream& origin = *capture.streams.front();
    return std::all_of(capture.streams.begin(), capture.streams.end(), [&](const Stream* stream) {
        return std::all_of(
            stream->capture_after.begin(), stream->capture_after.end(),
            [&](const GraphNode* node) { return is_behind(origin.capture_after, *node); });
    });
}

void end(Capture& capture) {
    capture.over = true;
    const std::vector<Stream*> streams = std::move(capture.streams);
    for (Stream* stream : streams) {
        stream->capture_after.clear();
        stream->capture.reset();
    }
}

cudaStreamCaptureStatus status_of(const Stream& stream) {
    if (!stream.capture) return cudaStreamCaptureStatusNone;
    return stream.capture->valid ? cudaStreamCaptureStatusActive
                                 : cudaStreamCaptureStatusInvalidated;
}

} // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
    return with_stream(handle, [&](Call&, Stream& stream) {
        static std::uint64_t captures = 0;
        if (stream.legacy) return cudaErrorStreamCaptureUnsupported;
        if (stream.capture) return cudaErrorIllegalState;
        stream.capture = std::make_shared<Capture>();
        stream.capture->graph = std::make_shared<Graph>();
        stream.capture->streams = {&stream};
        stream.capture->strict = mode == cudaStreamCaptureModeGlobal;
        stream.capture->id = ++captures;
        stream.capture_after.clear();
        return cudaSuccess;
    });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
    return with_stream(handle, [&](Call&, Stream& stream) {
        if (!graph) return cudaErrorInvalidValue;
        *graph = nullptr;
        if (!stream.capture) return cudaErrorIllegalState;
        const std::shared_ptr<Capture> capture = stream.capture;
        if (capture->streams.front() != &stream) {
            capture->valid = false;
            return cudaErrorStreamCaptureUnmatched;
        }
        const bool joined = is_joined(*capture);
        end(*capture);
        if (!capture->valid) return cudaErrorStreamCaptureInvalidated;
        if (!joined) return cudaErrorStreamCaptureUnjoined;
        *graph = keep_graph(capture->graph);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
    return with_stream(handle, [&](Call&, Stream& stream) {
        if (!status) return cudaErrorInvalidValue;
        *status = status_of(stream);
        return cudaSuccess;
    });
}

#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, std::size_t* count) {
    return with_stream(handle, [&](Call&, Stream& stream) {
        if (!status) return cudaErrorInvalidValue;
        *status = status_of(stream);
        if (*status != cudaStreamCaptureStatusActive) return cudaSuccess;
        if (id) *id = stream.capture->id;
        if (graph) *graph = reinterpret_cast<cudaGraph_t>(stream.capture->graph.get());
        if (dependencies)
            *dependencies = reinterpret_cast<const cudaGraphNode_t*>(stream.capture_after.data());
        if (edges) *edges = nullptr;
        if (count) *count = stream.capture_after.size();
        return cudaSuccess;
    });
}
#endif

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
    thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
    return host_call([&](Call&) {
        if (!mode) return cudaErrorInvalidValue;
        std::swap(*mode, current);
        return cudaSuccess;
    });
}
