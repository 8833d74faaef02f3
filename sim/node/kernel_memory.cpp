#include "node/kernel_memory.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace sim {

ptx::Window KernelMemory::window(const Device& owner, std::uint64_t begin,
                                 std::uint64_t end) const {
    const auto kind = &owner == &device_ ? ptx::MemoryKind::device : ptx::MemoryKind::peer;
    return {begin, end, owner.memory.range().shadow, kind};
}

bool KernelMemory::reaches(const Device& owner, const Extent& extent) const {
    if (&owner == &device_) return true;
    if (extent.pool) return extent.pool->access.contains(device_.index);
    return device_.peers.contains(owner.index);
}

void KernelMemory::warn(std::uint64_t place, const std::string& text) {
    if (!warned_.insert(place).second) return;
    std::fprintf(stderr, "sim: warning: kernel %s on GPU %d %s\n", kernel_.c_str(), device_.index,
                 text.c_str());
}

std::optional<ptx::Window> KernelMemory::in_pool(Device& owner, const Pool& pool,
                                                 std::uint64_t address) {
    const PoolBlock& block = *pool.find(address);
    const bool freed =
        !block.live && (!block.freed_by || block.freed_by->state == Operation::State::done);
    if (freed) {
        warn(block.begin, "touches pool memory that is not allocated: " + node_.describe(address) +
                              "; a real GPU notices only after the pool has given it back");
        return window(owner, block.begin, block.begin + block.room);
    }
    if (address < block.end()) return window(owner, block.begin, block.end());
    warn(block.end(), "runs past the end of pool memory: " + std::to_string(address - block.end()) +
                          " bytes behind a block of " + readable_bytes(block.bytes) +
                          "; a real GPU does not notice");
    return window(owner, block.end(), block.begin + block.room);
}

std::optional<ptx::Window> KernelMemory::in_device(Device& owner, std::uint64_t address) {
    const Extent* extent = owner.memory.find_extent(address);
    if (!extent || !reaches(owner, *extent)) return std::nullopt;
    if (extent->pool) return in_pool(owner, *extent->pool, address);
    if (const Allocation* allocation = owner.memory.find(address))
        return window(owner, allocation->begin, allocation->end());
    const auto [begin, end] = owner.memory.gap(*extent, address);
    warn(
        begin, "touches memory outside of every allocation, at 0x" +
                   [&] {
                       std::ostringstream hex;
                       hex << std::hex << address;
                       return hex.str();
                   }() +
                   ": " + node_.describe(address) + "; a real GPU does not notice");
    return window(owner, begin, end);
}

std::optional<ptx::Window> KernelMemory::find(std::uint64_t address) {
    if (Device* owner = node_.owner(address)) return in_device(*owner, address);
    const HostRange* range = node_.host.find(address);
    if (!range) return std::nullopt;
    const auto kind = range->kept_in_host ? ptx::MemoryKind::host : ptx::MemoryKind::device;
    return ptx::Window{range->begin, range->end(), 0, kind};
}

std::string KernelMemory::why_not(std::uint64_t address) {
    const std::string found = node_.describe(address);
    const Device* owner = node_.owner(address);
    const Extent* extent = owner ? owner->memory.find_extent(address) : nullptr;
    if (!owner) {
        if (node_.host.find(address) || address < 4096) return found;
        return found + "; a GPU reaches host memory only when it is pinned (cudaMallocHost, "
                       "cudaHostAlloc, cudaHostRegister)";
    }
    if (!extent || owner == &device_) return found;
    const std::string here = std::to_string(device_.index);
    const std::string there = std::to_string(owner->index);
    if (!node_.can_access(device_, *owner))
        return found + "; GPU " + here + " cannot reach the memory of GPU " + there +
               " on this node (cudaDeviceCanAccessPeer says 0)";
    if (extent->pool)
        return found + "; its pool does not let GPU " + here +
               " in: cudaMemPoolSetAccess was not called for it (peer access does not count for "
               "pools)";
    return found + "; GPU " + here + " has no peer access to GPU " + there +
           ": cudaDeviceEnablePeerAccess(" + there + ", 0) was not called with GPU " + here +
           " current";
}

} // namespace sim
