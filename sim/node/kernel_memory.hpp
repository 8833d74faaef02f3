// What a kernel on one device can reach, and why it cannot reach the rest.
#pragma once

#include "node/node.hpp"
#include "ptx/ptx.hpp"

#include <set>
#include <string>

namespace sim {

/// The view of memory of one kernel. Accesses beside an allocation that hardware lets pass are
/// reported once for each place.
class KernelMemory : public ptx::Memory {
public:
    KernelMemory(Node& node, Device& device, std::string kernel)
        : node_(node), device_(device), kernel_(std::move(kernel)) {}

    std::optional<ptx::Window> find(std::uint64_t address) override;

    /// Why `find` had nothing: owner of the address and what was missing.
    std::string why_not(std::uint64_t address);

private:
    std::optional<ptx::Window> in_device(Device& owner, std::uint64_t address);
    std::optional<ptx::Window> in_pool(Device& owner, const Pool& pool, std::uint64_t address);
    bool reaches(const Device& owner, const Extent& extent) const;
    ptx::Window window(const Device& owner, std::uint64_t begin, std::uint64_t end) const;
    void warn(std::uint64_t place, const std::string& text);

    Node& node_;
    Device& device_;
    std::string kernel_;
    std::set<std::uint64_t> warned_;
};

} // namespace sim
