// The graphs of the program, by their handles. Guarded by the node's lock.
#pragma once

#include "api/call.hpp"
#include "node/graph.hpp"

#include <memory>

namespace sim::api {

/// Keeps a graph until the program destroys it.
cudaGraph_t keep_graph(std::shared_ptr<Graph> graph);

/// The graph behind a handle, or nullptr.
std::shared_ptr<Graph> find_graph(cudaGraph_t handle);

inline cudaGraphNode_t handle_of(GraphNode* node) {
    return reinterpret_cast<cudaGraphNode_t>(node);
}
inline GraphNode* node_behind(cudaGraphNode_t handle) {
    return reinterpret_cast<GraphNode*>(handle);
}

} // namespace sim::api
