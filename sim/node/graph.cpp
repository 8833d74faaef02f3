#include "node/graph.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace sim {

GraphNode& Graph::add(Device& device, OperationMaker make, std::vector<GraphNode*> after) {
    nodes.push_back(
        std::make_unique<GraphNode>(GraphNode{&device, std::move(make), std::move(after)}));
    return *nodes.back();
}

void Graph::remove(const GraphNode& node) {
    for (const auto& other : nodes)
        std::erase(other->after, &node);
    std::erase_if(nodes, [&](const auto& one) { return one.get() == &node; });
}

bool Graph::holds(const GraphNode* node) const {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](const auto& one) { return one.get() == node; });
}

std::vector<GraphNode*> Graph::in_order() const {
    std::unordered_map<GraphNode*, std::vector<GraphNode*>> followers;
    std::unordered_map<GraphNode*, std::size_t> open;
    std::vector<GraphNode*> order;
    for (const auto& node : nodes) {
        open[node.get()] = node->after.size();
        for (GraphNode* earlier : node->after)
            followers[earlier].push_back(node.get());
        if (node->after.empty()) order.push_back(node.get());
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
        for (GraphNode* follower : followers[order[i]]) {
            if (--open[follower] == 0) order.push_back(follower);
        }
    }
    return order;
}

std::vector<GraphNode*> Graph::last_nodes() const {
    std::unordered_set<GraphNode*> awaited;
    for (const auto& node : nodes)
        awaited.insert(node->after.begin(), node->after.end());
    std::vector<GraphNode*> last;
    for (const auto& node : nodes) {
        if (!awaited.count(node.get())) last.push_back(node.get());
    }
    return last;
}

std::unique_ptr<Graph> Graph::copy() const {
    auto result = std::make_unique<Graph>();
    std::unordered_map<GraphNode*, GraphNode*> copies;
    for (const auto& node : nodes)
        copies[node.get()] = &result->add(*node->device, node->make, {});
    for (const auto& node : nodes) {
        for (GraphNode* earlier : node->after)
            copies[node.get()]->after.push_back(copies.at(earlier));
    }
    return result;
}

bool is_behind(const std::vector<GraphNode*>& nodes, const GraphNode& node) {
    std::vector<GraphNode*> open = nodes;
    std::unordered_set<GraphNode*> seen(open.begin(), open.end());
    while (!open.empty()) {
        GraphNode* next = open.back();
        open.pop_back();
        if (next == &node) return true;
        for (GraphNode* earlier : next->after) {
            if (seen.insert(earlier).second) open.push_back(earlier);
        }
    }
    return false;
}

} // namespace sim
