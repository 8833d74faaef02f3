// Graphs, captured and built. Documented by NVIDIA; not yet seen on hardware.
#include "support/catch.hpp"

#include "common/cuda_check.hpp"
#include "common/event.hpp"
#include "common/stream.hpp"
#include "conformance/kernels.hpp"
#include "support/delay.hpp"
#include "support/devices.hpp"
#include "support/pattern.hpp"

#include <cuda_runtime_api.h>

#include <chrono>
#include <vector>

using namespace conformance;
using namespace std::chrono_literals;

namespace {

constexpr int count = 1000;
constexpr std::size_t bytes = count * sizeof(int);

/// Device memory, and pinned memory to look at it.
struct Numbers {
    Numbers() {
        void *on_gpu = nullptr, *pinned = nullptr;
        CUDA_CHECK(cudaMalloc(&on_gpu, bytes));
        CUDA_CHECK(cudaMallocHost(&pinned, bytes));
        device = static_cast<int*>(on_gpu);
        host = static_cast<int*>(pinned);
        CUDA_CHECK(cudaMemset(device, 0, bytes));
        CUDA_CHECK(cudaDeviceSynchronize());
        for (int i = 0; i < count; ++i)
            host[i] = -1;
    }
    ~Numbers() {
        cudaFree(device);
        cudaFreeHost(host);
    }
    Numbers(const Numbers&) = delete;
    Numbers& operator=(const Numbers&) = delete;

    /// Whether the host's numbers count up from `first`.
    bool count_from(int first) const {
        for (int i = 0; i < count; ++i)
            if (host[i] != first + i) return false;
        return true;
    }

    int* device = nullptr;
    int* host = nullptr;
};

class Captured {
public:
    explicit Captured(cudaGraph_t graph) : graph_(graph) {
        CUDA_CHECK(cudaGraphInstantiate(&executable_, graph_, 0));
    }
    ~Captured() {
        cudaGraphExecDestroy(executable_);
        cudaGraphDestroy(graph_);
    }
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;

    void launch(cudaStream_t stream) const {
        CUDA_CHECK(cudaGraphLaunch(executable_, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
    }
    cudaGraphExec_t executable() const { return executable_; }
    cudaGraph_t graph() const { return graph_; }

private:
    cudaGraph_t graph_;
    cudaGraphExec_t executable_ = nullptr;
};

template <class Work> cudaGraph_t capture(cudaStream_t stream, Work work) {
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    work();
    CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    return graph;
}

std::size_t node_count(cudaGraph_t graph) {
    std::size_t nodes = 0;
    CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    return nodes;
}

cudaGraphNodeType type_of(cudaGraphNode_t node) {
    cudaGraphNodeType type{};
    CUDA_CHECK(cudaGraphNodeGetType(node, &type));
    return type;
}

void CUDART_CB add_one(void* number) {
    ++*static_cast<int*>(number);
}

} // namespace

TEST_CASE("what is captured runs when the graph is launched, each time") {
    check::require_devices(1);
    Numbers numbers;
    const Stream stream;
    const Captured graph(capture(stream, [&] {
        CUDA_CHECK(count_up(numbers.device, count, 5, stream));
        CUDA_CHECK(
            cudaMemcpyAsync(numbers.host, numbers.device, bytes, cudaMemcpyDeviceToHost, stream));
    }));
    CHECK(node_count(graph.graph()) == 2);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CHECK(numbers.host[0] == -1);
    for (int round = 0; round < 2; ++round) {
        numbers.host[0] = -1;
        graph.launch(stream);
        CHECK(numbers.count_from(5));
    }
}

TEST_CASE("events carry a capture into another stream and back") {
    check::require_devices(1);
    Numbers first, second;
    const Stream stream, other;
    const Event fork, join;
    const Captured graph(capture(stream, [&] {
        check::delay(0, stream, 5ms);
        CUDA_CHECK(count_up(first.device, count, 1, stream));
        CUDA_CHECK(cudaEventRecord(fork, stream));
        CUDA_CHECK(cudaStreamWaitEvent(other, fork, 0));
        CUDA_CHECK(
            cudaMemcpyAsync(second.device, first.device, bytes, cudaMemcpyDeviceToDevice, other));
        CUDA_CHECK(
            cudaMemcpyAsync(second.host, second.device, bytes, cudaMemcpyDeviceToHost, other));
        CUDA_CHECK(
            cudaMemcpyAsync(first.host, first.device, bytes, cudaMemcpyDeviceToHost, stream));
        CUDA_CHECK(cudaEventRecord(join, other));
        CUDA_CHECK(cudaStreamWaitEvent(stream, join, 0));
    }));
    graph.launch(stream);
    CHECK(first.count_from(1));
    CHECK(second.count_from(1));
    cudaStreamCaptureStatus status{};
    CHECK(cudaStreamIsCapturing(other, &status) == cudaSuccess);
    CHECK(status == cudaStreamCaptureStatusNone);
}

TEST_CASE("a capture that is not joined or that is broken gives no graph") {
    check::require_devices(1);
    Numbers numbers;
    const Stream stream, other;
    const Event fork;
    cudaGraph_t graph = nullptr;

    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA_CHECK(count_up(numbers.device, count, 1, stream));
    CUDA_CHECK(cudaEventRecord(fork, stream));
    CUDA_CHECK(cudaStreamWaitEvent(other, fork, 0));
    CUDA_CHECK(count_up(numbers.device, count, 1, other));
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureUnjoined);
    CHECK(graph == nullptr);

    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(graph == nullptr);

    cudaGetLastError();
    CHECK(count_up(numbers.device, count, 1, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
}

TEST_CASE("a graph can be built node by node") {
    check::require_devices(1);
    Numbers numbers;
    const Stream stream;
    int calls = 0;
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaGraphCreate(&graph, 0));
    cudaMemsetParams fill{};
    fill.dst = numbers.device;
    fill.elementSize = sizeof(int);
    fill.value = 0x01020304;
    fill.width = count;
    fill.height = 1;
    cudaHostNodeParams host{add_one, &calls};
    cudaGraphNode_t filled = nullptr, copied = nullptr, called = nullptr;
    CUDA_CHECK(cudaGraphAddMemcpyNode1D(&copied, graph, nullptr, 0, numbers.host, numbers.device,
                                        bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill));
    const cudaGraphNode_t both[] = {copied, filled};
    CUDA_CHECK(cudaGraphAddHostNode(&called, graph, both, 2, &host));
#if CUDART_VERSION >= 13000
    CUDA_CHECK(cudaGraphAddDependencies(graph, &filled, &copied, nullptr, 1));
#else
    CUDA_CHECK(cudaGraphAddDependencies(graph, &filled, &copied, 1));
#endif
    CHECK(node_count(graph) == 3);
    CHECK(type_of(filled) == cudaGraphNodeTypeMemset);
    CHECK(type_of(copied) == cudaGraphNodeTypeMemcpy);
    CHECK(type_of(called) == cudaGraphNodeTypeHost);

    const Captured executable(graph);
    executable.launch(stream);
    CHECK(calls == 1);
    CHECK(numbers.host[0] == 0x01020304);
    CHECK(numbers.host[count - 1] == 0x01020304);

    // The executable is a copy: it changes only by what is meant for it.
    fill.value = 7;
    CHECK(cudaGraphExecMemsetNodeSetParams(executable.executable(), filled, &fill) == cudaSuccess);
    executable.launch(stream);
    CHECK(numbers.host[0] == 7);
    CHECK(calls == 2);
}

TEST_CASE("a graph that waits for itself cannot be launched") {
    check::require_devices(1);
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t first = nullptr, second = nullptr;
    CUDA_CHECK(cudaGraphAddEmptyNode(&first, graph, nullptr, 0));
    CUDA_CHECK(cudaGraphAddEmptyNode(&second, graph, &first, 1));
#if CUDART_VERSION >= 13000
    const cudaError_t added = cudaGraphAddDependencies(graph, &second, &first, nullptr, 1);
#else
    const cudaError_t added = cudaGraphAddDependencies(graph, &second, &first, 1);
#endif
    cudaGraphExec_t executable = nullptr;
    const bool refused =
        added != cudaSuccess || cudaGraphInstantiate(&executable, graph, 0) != cudaSuccess;
    CHECK(refused);
    cudaGraphDestroy(graph);
}

TEST_CASE("an executable can take over a graph of the same shape") {
    check::require_devices(1);
    Numbers numbers;
    const Stream stream;
    const auto counting_from = [&](int first) {
        return capture(stream, [&] {
            CUDA_CHECK(count_up(numbers.device, count, first, stream));
            CUDA_CHECK(cudaMemcpyAsync(numbers.host, numbers.device, bytes, cudaMemcpyDeviceToHost,
                                       stream));
        });
    };
    const Captured graph(counting_from(3));
    cudaGraph_t changed = counting_from(30);
    cudaGraphExecUpdateResultInfo info{};
    CHECK(cudaGraphExecUpdate(graph.executable(), changed, &info) == cudaSuccess);
    graph.launch(stream);
    CHECK(numbers.count_from(30));
    cudaGraphDestroy(changed);

    cudaGraph_t shorter =
        capture(stream, [&] { CUDA_CHECK(count_up(numbers.device, count, 1, stream)); });
    CHECK(cudaGraphExecUpdate(graph.executable(), shorter, &info) ==
          cudaErrorGraphExecUpdateFailure);
    CHECK(info.result == cudaGraphExecUpdateErrorTopologyChanged);
    cudaGraphDestroy(shorter);
}

TEST_CASE("a box is copied without what lies between its rows") {
    check::require_devices(1);
    constexpr std::size_t width = 33, height = 5, depth = 3;
    const cudaExtent size{width, height, depth};
    cudaPitchedPtr on_gpu{};
    CUDA_CHECK(cudaMalloc3D(&on_gpu, size));
    CHECK(on_gpu.pitch >= width);
    CUDA_CHECK(cudaMemset3D(on_gpu, 0x55, size));

    std::vector<unsigned char> there(width * height * depth), back(there.size(), 0);
    check::fill_pattern(there.data(), there.size(), 1);
    cudaMemcpy3DParms copy{};
    copy.srcPtr = {there.data(), width, width, height};
    copy.dstPtr = on_gpu;
    copy.extent = size;
    copy.kind = cudaMemcpyHostToDevice;
    CUDA_CHECK(cudaMemcpy3D(&copy));

    // All but the first column, row and slice.
    cudaMemcpy3DParms part{};
    part.srcPtr = on_gpu;
    part.srcPos = {1, 1, 1};
    part.dstPtr = {back.data(), width, width, height};
    part.dstPos = {1, 1, 1};
    part.extent = {width - 1, height - 1, depth - 1};
    part.kind = cudaMemcpyDeviceToHost;
    CUDA_CHECK(cudaMemcpy3D(&part));
    for (std::size_t z = 0; z < depth; ++z)
        for (std::size_t y = 0; y < height; ++y)
            for (std::size_t x = 0; x < width; ++x) {
                const std::size_t i = (z * height + y) * width + x;
                CHECK(back[i] == (x && y && z ? there[i] : 0));
            }
    cudaFree(on_gpu.ptr);
}
