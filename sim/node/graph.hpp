// Graphs: work that is described once and launched many times. A graph is filled node by node, or
// by capturing what is put into streams.
#pragma once

#include "node/engine.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace sim {

struct Stream;

/// Makes the same piece of work anew each time.
using OperationMaker = std::function<OperationPtr()>;

struct GraphNode {
    Device* device;
    OperationMaker make; // null: nothing to do, it only orders others
    std::vector<GraphNode*> after;
};

class Graph {
public:
    GraphNode& add(Device& device, OperationMaker make, std::vector<GraphNode*> after);
    void remove(const GraphNode& node);
    bool holds(const GraphNode* node) const;

    /// Every node behind those that it waits for; fewer than all when they wait in a circle.
    std::vector<GraphNode*> in_order() const;
    /// The nodes that no other node waits for.
    std::vector<GraphNode*> last_nodes() const;
    /// A graph like this one, its nodes in the same places.
    std::unique_ptr<Graph> copy() const;

    std::vector<std::unique_ptr<GraphNode>> nodes;
};

/// Whether `node` is one of `nodes` or something that they wait for, at any distance.
bool is_behind(const std::vector<GraphNode*>& nodes, const GraphNode& node);

/// A graph that streams are filling.
struct Capture {
    std::shared_ptr<Graph> graph;
    std::vector<Stream*> streams; // the first one began it
    bool strict = true;           // calls that might wait for streams are not allowed meanwhile
    bool by_program = true;       // else it serves to add one node
    bool valid = true;            // no call has broken it
    bool over = false;
    std::uint64_t id = 0;
};

} // namespace sim
