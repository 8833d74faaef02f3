// Which engines and links a copy uses, and how fast it is.
#pragma once

#include "node/node.hpp"

#include <string>
#include <vector>

namespace sim {

struct CopyPath {
    double ns = 0; // alone on the node
    std::vector<Demand> demands;
};

/// The way of `bytes` from `source` to `destination`.
CopyPath copy_path(const Node& node, const Place& destination, const Place& source,
                   std::uint64_t bytes);

/// The way of a fill of `bytes`.
CopyPath fill_path(const Node& node, const Place& destination, Device& device, std::uint64_t bytes);

/// "upload", "download", "copy from GPU 0 to GPU 1", ...
std::string copy_name(const Place& destination, const Place& source, std::uint64_t bytes);

} // namespace sim
