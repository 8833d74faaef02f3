// Graphs: built node by node, copied, made executable, launched.
#include "api/graph.hpp"

#include "node/operations.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

using namespace sim;
using namespace sim::api;

namespace {

/// A graph that can be launched: a copy, so that later changes of the original don't show.
struct Executable {
    std::unique_ptr<Graph> graph;
    std::vector<const GraphNode*> originals; // in the places of the copy's nodes
    OperationPtr last;                       // launches of one executable follow each other
    unsigned long long flags = 0;
};

std::map<const void*, std::shared_ptr<Graph>> graphs;
std::map<const void*, std::unique_ptr<Executable>> executables;
std::map<const Graph*, std::vector<const GraphNode*>> clones; // originals, place by place

std::vector<const GraphNode*> pointers(const Graph& graph) {
    std::vector<const GraphNode*> result;
    for (const auto& node : graph.nodes)
        result.push_back(node.get());
    return result;
}

/// Hands the graph behind a handle to `body`.
template <class Body> cudaError_t with_graph(cudaGraph_t handle, Body&& body) {
    return host_call([&](Call& call) -> cudaError_t {
        const std::shared_ptr<Graph> graph = find_graph(handle);
        return graph ? body(call, graph) : cudaErrorInvalidValue;
    });
}

template <class Body> cudaError_t with_executable(cudaGraphExec_t handle, Body&& body) {
    return device_call([&](Call& call) -> cudaError_t {
        const auto found = executables.find(handle);
        return found != executables.end() ? body(call, *found->second) : cudaErrorInvalidValue;
    });
}

std::shared_ptr<Graph> graph_of(const GraphNode* node) {
    for (const auto& [handle, graph] : graphs) {
        if (graph->holds(node)) return graph;
    }
    return nullptr;
}

/// A stream that fills a graph as long as this lives: nodes are made by the calls that put the same
/// work into a stream.
class Recorder {
public:
    Recorder(const std::shared_ptr<Graph>& graph, std::vector<GraphNode*> after) {
        error_ = device_call([&](Call& call) {
            stream_ = &call.node.add_stream(call.device(), cudaStreamNonBlocking, 0, false);
            stream_->capture = std::make_shared<Capture>();
            stream_->capture->graph = graph;
            stream_->capture->streams = {stream_};
            stream_->capture->by_program = false;
            stream_->capture_after = std::move(after);
            return cudaSuccess;
        });
    }
    ~Recorder() {
        if (!stream_) return;
        host_call([&](Call& call) {
            stream_->capture.reset();
            call.node.remove_stream(stream_);
            return cudaSuccess;
        });
    }
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    cudaError_t error() const { return error_; }
    cudaStream_t stream() const { return reinterpret_cast<cudaStream_t>(stream_); }
    /// What was recorded last.
    const std::vector<GraphNode*>& last() const { return stream_->capture_after; }

private:
    cudaError_t error_ = cudaSuccess;
    Stream* stream_ = nullptr;
};

bool read_nodes(const Graph& graph, const cudaGraphNode_t* handles, std::size_t count,
                std::vector<GraphNode*>& nodes) {
    if (count > 0 && !handles) return false;
    for (std::size_t i = 0; i < count; ++i)
        nodes.push_back(node_behind(handles[i]));
    return std::all_of(nodes.begin(), nodes.end(),
                       [&](const GraphNode* node) { return graph.holds(node); });
}

/// Adds a node that does what `issue` puts into a stream.
template <class Issue>
cudaError_t add_node(cudaGraphNode_t* result, cudaGraph_t handle,
                     const cudaGraphNode_t* dependencies, std::size_t count, Issue&& issue) {
    std::shared_ptr<Graph> graph;
    std::vector<GraphNode*> after;
    const cudaError_t usable = with_graph(handle, [&](Call&, const std::shared_ptr<Graph>& found) {
        graph = found;
        const bool known = result && read_nodes(*graph, dependencies, count, after);
        return known ? cudaSuccess : cudaErrorInvalidValue;
    });
    if (usable != cudaSuccess) return usable;
    const std::size_t former = graph->nodes.size();
    const Recorder recorder(graph, after);
    cudaError_t error = recorder.error();
    if (error == cudaSuccess) error = issue(recorder.stream());
    if (error != cudaSuccess) return error;
    return device_call([&](Call& call) {
        const bool added = graph->nodes.size() > former;
        *result =
            handle_of(added ? recorder.last().front() : &graph->add(call.device(), nullptr, after));
        return cudaSuccess;
    });
}

/// Gives a node the work that `issue` puts into a stream.
template <class Issue> cudaError_t change_node(GraphNode* node, Issue&& issue) {
    const auto scratch = std::make_shared<Graph>();
    const Recorder recorder(scratch, {});
    cudaError_t error = recorder.error();
    if (error == cudaSuccess) error = issue(recorder.stream());
    if (error != cudaSuccess) return error;
    return host_call([&](Call&) {
        if (scratch->nodes.size() > 1) return cudaErrorNotSupported;
        node->make = scratch->nodes.empty() ? nullptr : scratch->nodes.front()->make;
        return cudaSuccess;
    });
}

template <class Issue> cudaError_t change_node(cudaGraphNode_t handle, Issue&& issue) {
    GraphNode* node = node_behind(handle);
    const cudaError_t found =
        host_call([&](Call&) { return graph_of(node) ? cudaSuccess : cudaErrorInvalidValue; });
    return found == cudaSuccess ? change_node(node, issue) : found;
}

/// The same in an executable, for the node that `handle` was when it was made.
template <class Issue>
cudaError_t change_node(cudaGraphExec_t executable, cudaGraphNode_t handle, Issue&& issue) {
    GraphNode* node = nullptr;
    const cudaError_t found = with_executable(executable, [&](Call&, Executable& what) {
        const auto place =
            std::find(what.originals.begin(), what.originals.end(), node_behind(handle));
        if (place == what.originals.end()) return cudaErrorInvalidValue;
        node = what.graph->nodes[static_cast<std::size_t>(place - what.originals.begin())].get();
        return cudaSuccess;
    });
    return found == cudaSuccess ? change_node(node, issue) : found;
}

auto launching(const cudaKernelNodeParams* what) {
    return [what](cudaStream_t stream) {
        if (!what) return cudaErrorInvalidValue;
        return cudaLaunchKernel(what->func, what->gridDim, what->blockDim, what->kernelParams,
                                what->sharedMemBytes, stream);
    };
}

auto copying(void* destination, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
    return [=](cudaStream_t stream) {
        return cudaMemcpyAsync(destination, source, bytes, kind, stream);
    };
}

auto copying(const cudaMemcpy3DParms* what) {
    return [what](cudaStream_t stream) { return cudaMemcpy3DAsync(what, stream); };
}

auto filling(const cudaMemsetParams* what) {
    return [what](cudaStream_t stream) {
        return what ? fill_elements(*what, stream) : cudaErrorInvalidValue;
    };
}

auto calling(const cudaHostNodeParams* what) {
    return [what](cudaStream_t stream) {
        return what ? cudaLaunchHostFunc(stream, what->fn, what->userData) : cudaErrorInvalidValue;
    };
}

cudaGraphNodeType type_of(const GraphNode& node) {
    if (!node.make) return cudaGraphNodeTypeEmpty;
    const OperationPtr sample = node.make();
    const Operation& operation = *sample;
    if (dynamic_cast<const KernelOperation*>(&operation)) return cudaGraphNodeTypeKernel;
    if (dynamic_cast<const CopyOperation*>(&operation)) return cudaGraphNodeTypeMemcpy;
    if (dynamic_cast<const FillOperation*>(&operation)) return cudaGraphNodeTypeMemset;
    if (dynamic_cast<const HostOperation*>(&operation)) return cudaGraphNodeTypeHost;
    return cudaGraphNodeTypeEmpty;
}

/// Answers as the runtime's lists do: how many there are, or as many as there is room for.
template <class T> cudaError_t list(const std::vector<T>& found, T* room, std::size_t* count) {
    if (!count) return cudaErrorInvalidValue;
    if (!room) {
        *count = found.size();
        return cudaSuccess;
    }
    const std::size_t given = std::min(*count, found.size());
    std::copy_n(found.begin(), given, room);
    std::fill(room + given, room + *count, T{});
    *count = given;
    return cudaSuccess;
}

std::vector<cudaGraphNode_t> handles_of(const std::vector<GraphNode*>& nodes) {
    std::vector<cudaGraphNode_t> handles;
    handles.reserve(nodes.size());
    for (GraphNode* node : nodes)
        handles.push_back(handle_of(node));
    return handles;
}

/// For the same nodes in the same order: whether each waits for the same others.
bool same_shape(const Graph& one, const Graph& other) {
    if (one.nodes.size() != other.nodes.size()) return false;
    std::unordered_map<const GraphNode*, std::size_t> place_in_one, place_in_other;
    for (std::size_t i = 0; i < one.nodes.size(); ++i) {
        place_in_one[one.nodes[i].get()] = i;
        place_in_other[other.nodes[i].get()] = i;
    }
    for (std::size_t i = 0; i < one.nodes.size(); ++i) {
        const auto &first = one.nodes[i]->after, &second = other.nodes[i]->after;
        const bool same = std::equal(first.begin(), first.end(), second.begin(), second.end(),
                                     [&](const GraphNode* a, const GraphNode* b) {
                                         return place_in_one.at(a) == place_in_other.at(b);
                                     });
        if (!same) return false;
    }
    return true;
}

} // namespace

namespace sim::api {

cudaGraph_t keep_graph(std::shared_ptr<Graph> graph) {
    const auto handle = reinterpret_cast<cudaGraph_t>(graph.get());
    graphs[handle] = std::move(graph);
    return handle;
}

std::shared_ptr<Graph> find_graph(cudaGraph_t handle) {
    const auto found = graphs.find(handle);
    return found == graphs.end() ? nullptr : found->second;
}

} // namespace sim::api

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
    return host_call([&](Call&) {
        if (!graph || flags != 0) return cudaErrorInvalidValue;
        *graph = keep_graph(std::make_shared<Graph>());
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
    return with_graph(handle, [&](Call&, const std::shared_ptr<Graph>& graph) {
        clones.erase(graph.get());
        graphs.erase(handle);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
    return with_graph(original, [&](Call&, const std::shared_ptr<Graph>& graph) {
        if (!clone) return cudaErrorInvalidValue;
        *clone = keep_graph(graph->copy());
        clones[find_graph(*clone).get()] = pointers(*graph);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* found, cudaGraphNode_t original,
                                     cudaGraph_t clone) {
    return with_graph(clone, [&](Call&, const std::shared_ptr<Graph>& graph) {
        const std::vector<const GraphNode*>& originals = clones[graph.get()];
        const auto place = std::find(originals.begin(), originals.end(), node_behind(original));
        if (!found || place == originals.end()) return cudaErrorInvalidValue;
        *found = handle_of(graph->nodes[static_cast<std::size_t>(place - originals.begin())].get());
        return cudaSuccess;
    });
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, std::size_t count,
                                   const cudaKernelNodeParams* what) {
    return add_node(node, graph, dependencies, count, launching(what));
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, std::size_t count,
                                   const cudaMemcpy3DParms* what) {
    return add_node(node, graph, dependencies, count, copying(what));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, std::size_t count,
                                     void* destination, const void* source, std::size_t bytes,
                                     cudaMemcpyKind kind) {
    return add_node(node, graph, dependencies, count, copying(destination, source, bytes, kind));
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, std::size_t count,
                                   const cudaMemsetParams* what) {
    return add_node(node, graph, dependencies, count, filling(what));
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* dependencies, std::size_t count,
                                 const cudaHostNodeParams* what) {
    return add_node(node, graph, dependencies, count, calling(what));
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* dependencies, std::size_t count) {
    return add_node(node, graph, dependencies, count, [](cudaStream_t) { return cudaSuccess; });
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* dependencies, std::size_t count,
                                       cudaGraph_t child) {
    return add_node(node, graph, dependencies, count, [&](cudaStream_t stream) {
        return with_graph(child, [&](Call& call, const std::shared_ptr<Graph>& inside) {
            call.node.submit(*find_stream(call, stream), *inside, call.thread, nullptr);
            return cudaSuccess;
        });
    });
}

#if CUDART_VERSION >= 13000
cudaError_t cudaGraphAddDependencies(cudaGraph_t handle, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                     std::size_t count) {
#else
cudaError_t cudaGraphAddDependencies(cudaGraph_t handle, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, std::size_t count) {
#endif
    return with_graph(handle, [&](Call&, const std::shared_ptr<Graph>& graph) {
        std::vector<GraphNode*> earlier, later;
        if (!read_nodes(*graph, from, count, earlier) || !read_nodes(*graph, to, count, later))
            return cudaErrorInvalidValue;
        for (std::size_t i = 0; i < count; ++i)
            later[i]->after.push_back(earlier[i]);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t handle) {
    return host_call([&](Call&) {
        const std::shared_ptr<Graph> graph = graph_of(node_behind(handle));
        if (!graph) return cudaErrorInvalidValue;
        graph->remove(*node_behind(handle));
        return cudaSuccess;
    });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, std::size_t* count) {
    return with_graph(handle, [&](Call&, const std::shared_ptr<Graph>& graph) {
        std::vector<GraphNode*> all;
        for (const auto& node : graph->nodes)
            all.push_back(node.get());
        return list(handles_of(all), nodes, count);
    });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, std::size_t* count) {
    return with_graph(handle, [&](Call&, const std::shared_ptr<Graph>& graph) {
        std::vector<GraphNode*> roots;
        for (const auto& node : graph->nodes) {
            if (node->after.empty()) roots.push_back(node.get());
        }
        return list(handles_of(roots), nodes, count);
    });
}

#if CUDART_VERSION >= 13000
cudaError_t cudaGraphGetEdges(cudaGraph_t handle, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData*, std::size_t* count) {
#else
cudaError_t cudaGraphGetEdges(cudaGraph_t handle, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              std::size_t* count) {
#endif
    return with_graph(handle, [&](Call&, const std::shared_ptr<Graph>& graph) {
        if (!count || !from != !to) return cudaErrorInvalidValue;
        std::vector<GraphNode*> begins, ends;
        for (const auto& node : graph->nodes) {
            for (GraphNode* earlier : node->after) {
                begins.push_back(earlier);
                ends.push_back(node.get());
            }
        }
        std::size_t room = *count;
        list(handles_of(begins), from, count);
        return list(handles_of(ends), to, &room);
    });
}

#if CUDART_VERSION >= 13000
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t handle, cudaGraphNode_t* dependencies,
                                         cudaGraphEdgeData*, std::size_t* count) {
#else
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t handle, cudaGraphNode_t* dependencies,
                                         std::size_t* count) {
#endif
    return host_call([&](Call&) {
        const GraphNode* node = node_behind(handle);
        return graph_of(node) ? list(handles_of(node->after), dependencies, count)
                              : cudaErrorInvalidValue;
    });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t handle, cudaGraphNodeType* type) {
    return host_call([&](Call&) {
        const GraphNode* node = node_behind(handle);
        if (!type || !graph_of(node)) return cudaErrorInvalidValue;
        *type = type_of(*node);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* what) {
    return change_node(node, launching(what));
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* what) {
    return change_node(node, copying(what));
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* destination,
                                           const void* source, std::size_t bytes,
                                           cudaMemcpyKind kind) {
    return change_node(node, copying(destination, source, bytes, kind));
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* what) {
    return change_node(node, filling(what));
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* what) {
    return change_node(node, calling(what));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t handle,
                                 unsigned long long flags) {
    return with_graph(handle, [&](Call&, const std::shared_ptr<Graph>& graph) {
        if (!executable || graph->in_order().size() != graph->nodes.size())
            return cudaErrorInvalidValue;
        auto made = std::make_unique<Executable>();
        made->graph = graph->copy();
        made->originals = pointers(*graph);
        made->flags = flags;
        *executable = reinterpret_cast<cudaGraphExec_t>(made.get());
        executables[made.get()] = std::move(made);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {
    return cudaGraphInstantiate(executable, graph, flags);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t handle, unsigned long long* flags) {
    return with_executable(handle, [&](Call&, Executable& executable) {
        if (!flags) return cudaErrorInvalidValue;
        *flags = executable.flags;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
    return with_executable(handle, [&](Call&, Executable&) {
        executables.erase(handle);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t handle, cudaStream_t stream) {
    return with_executable(handle, [&](Call& call, Executable&) {
        return find_stream(call, stream) ? cudaSuccess : cudaErrorInvalidResourceHandle;
    });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
    return with_executable(handle, [&](Call& call, Executable& executable) {
        Stream* stream = find_stream(call, stream_handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (cudaError_t error = ready_for_work(call, *stream)) return error;
        call.thread.spend(call.node.file.api.launch.of(0));
        executable.last =
            call.node.submit(*stream, *executable.graph, call.thread, executable.last);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t handle, cudaGraph_t graph_handle,
                                cudaGraphExecUpdateResultInfo* info) {
    return with_executable(handle, [&](Call&, Executable& executable) {
        const std::shared_ptr<Graph> graph = find_graph(graph_handle);
        if (!graph || !info) return cudaErrorInvalidValue;
        *info = {};
        info->result = cudaGraphExecUpdateSuccess;
        if (!same_shape(*executable.graph, *graph)) {
            info->result = cudaGraphExecUpdateErrorTopologyChanged;
            return cudaErrorGraphExecUpdateFailure;
        }
        for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
            if (type_of(*graph->nodes[i]) == type_of(*executable.graph->nodes[i])) continue;
            info->result = cudaGraphExecUpdateErrorNodeTypeChanged;
            info->errorNode = handle_of(graph->nodes[i].get());
            return cudaErrorGraphExecUpdateFailure;
        }
        for (std::size_t i = 0; i < graph->nodes.size(); ++i)
            executable.graph->nodes[i]->make = graph->nodes[i]->make;
        executable.originals = pointers(*graph);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* what) {
    return change_node(executable, node, launching(what));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* what) {
    return change_node(executable, node, copying(what));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node,
                                               void* destination, const void* source,
                                               std::size_t bytes, cudaMemcpyKind kind) {
    return change_node(executable, node, copying(destination, source, bytes, kind));
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemsetParams* what) {
    return change_node(executable, node, filling(what));
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const cudaHostNodeParams* what) {
    return change_node(executable, node, calling(what));
}
