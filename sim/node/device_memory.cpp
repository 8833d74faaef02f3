#include "node/device_memory.hpp"

#include <cstring>
#include <stdexcept>
#include <sys/mman.h>

namespace sim {
namespace {

constexpr std::uint64_t alignment = 512;
// Allocations below this share granules.
constexpr std::uint64_t small_bytes = 1ull << 20;
// Small blocks are filled with this at allocation: fresh device memory is not zero, and a program
// that counts on zeros should not work by accident. Larger ones keep what is there, because
// touching every page of a 100 GB allocation would need that much real memory.
constexpr int poison = 0xFF;
constexpr std::size_t remembered_frees = 4096;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

void* map_nothing(std::uint64_t hint, std::uint64_t bytes) {
    return mmap(reinterpret_cast<void*>(hint), bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

} // namespace

AddressRange reserve_addresses(std::uint64_t bytes) {
    // Only a hint: the same addresses in every run make messages comparable.
    constexpr std::uint64_t usual_place = 0x300000000000;
    void* pointers = map_nothing(usual_place, bytes);
    void* shadow = map_nothing(usual_place + bytes, bytes);
    if (pointers == MAP_FAILED || shadow == MAP_FAILED)
        throw std::runtime_error("this process has too little address space for the memory of the "
                                 "simulated GPUs (ulimit -v?)");
    const auto begin = reinterpret_cast<std::uint64_t>(pointers);
    return {begin, bytes,
            static_cast<std::intptr_t>(reinterpret_cast<std::uint64_t>(shadow) - begin)};
}

void release_addresses(const AddressRange& range) {
    munmap(reinterpret_cast<void*>(range.begin), range.bytes);
    munmap(reinterpret_cast<void*>(range.begin + static_cast<std::uint64_t>(range.shadow)),
           range.bytes);
}

DeviceMemory::DeviceMemory(AddressRange range, std::uint64_t total_bytes)
    : range_(range), total_(total_bytes), next_(range.begin) {}

std::optional<std::uint64_t> DeviceMemory::find_addresses(std::uint64_t bytes) {
    // Fresh addresses as long as there are any: a stale pointer then faults instead of hitting
    // somebody else's memory.
    if (bytes > range_.bytes) return std::nullopt;
    if (next_ + bytes <= range_.begin + range_.bytes) {
        const std::uint64_t found = next_;
        // One granule stays unmapped behind each extent, so running off the end is noticed.
        next_ = std::min(found + bytes + granule, range_.begin + range_.bytes);
        return found;
    }
    std::uint64_t candidate = range_.begin;
    for (const auto& [begin, extent] : extents_) {
        if (begin >= candidate && begin - candidate >= bytes + granule) return candidate;
        candidate = extent.end() + granule;
    }
    return std::nullopt;
}

std::optional<std::uint64_t> DeviceMemory::map(std::uint64_t bytes, Pool* pool, bool shared) {
    if (mapped_ > total_ || bytes > total_ - mapped_) return std::nullopt;
    auto begin = find_addresses(bytes);
    if (!begin) return std::nullopt;
    if (mprotect(bytes_at(*begin), bytes, PROT_READ | PROT_WRITE) != 0) return std::nullopt;
    // Large memory is often written once: fewer page faults then count more than anything else.
    madvise(bytes_at(*begin), bytes, MADV_HUGEPAGE);
    extents_[*begin] = {*begin, bytes, pool, shared};
    mapped_ += bytes;
    return begin;
}

void DeviceMemory::unmap(std::uint64_t begin) {
    auto found = extents_.find(begin);
    // A fresh mapping over the old one gives the pages back to the system.
    mmap(bytes_at(begin), found->second.bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    mapped_ -= found->second.bytes;
    extents_.erase(found);
}

std::optional<std::uint64_t> DeviceMemory::place_small(std::uint64_t bytes) const {
    for (const auto& [begin, extent] : extents_) {
        if (!extent.shared) continue;
        std::uint64_t candidate = begin;
        auto next = allocations_.lower_bound(begin);
        for (; next != allocations_.end() && next->first < extent.end(); ++next) {
            if (next->first - candidate >= bytes) return candidate;
            candidate = round_up(next->second.end(), alignment);
        }
        if (extent.end() >= candidate && extent.end() - candidate >= bytes) return candidate;
    }
    return std::nullopt;
}

std::optional<std::uint64_t> DeviceMemory::allocate(std::uint64_t bytes, Purpose purpose,
                                                    std::string label) {
    if (bytes > total_) return std::nullopt;
    const bool small = bytes < small_bytes;
    std::optional<std::uint64_t> begin;
    if (small) begin = place_small(bytes);
    if (!begin) begin = map(round_up(bytes, granule), nullptr, small);
    if (!begin) return std::nullopt;
    if (small) std::memset(bytes_at(*begin), poison, bytes);
    allocations_[*begin] = {*begin, bytes, purpose, std::move(label)};
    return begin;
}

bool DeviceMemory::holds_allocations(const Extent& extent) const {
    auto first = allocations_.lower_bound(extent.begin);
    return first != allocations_.end() && first->first < extent.end();
}

void DeviceMemory::free(std::uint64_t begin, const std::string& how) {
    remove(begin, how);
    const Extent extent = *find_extent(begin);
    if (!holds_allocations(extent)) unmap(extent.begin);
}

std::optional<std::uint64_t> DeviceMemory::map_chunk(std::uint64_t bytes, Pool* pool) {
    return map(bytes, pool, false);
}

void DeviceMemory::unmap_chunk(std::uint64_t begin) {
    unmap(begin);
}

void DeviceMemory::remember(Freed freed) {
    freed_.push_front(std::move(freed));
    if (freed_.size() > remembered_frees) freed_.pop_back();
}

void DeviceMemory::remove(std::uint64_t begin, const std::string& how) {
    auto found = allocations_.find(begin);
    remember({begin, found->second.bytes, how});
    allocations_.erase(found);
}

void DeviceMemory::clear() {
    while (!allocations_.empty())
        remove(allocations_.begin()->first, "cudaDeviceReset");
    while (!extents_.empty())
        unmap(extents_.begin()->first);
}

const Allocation* DeviceMemory::find(std::uint64_t address) const {
    auto after = allocations_.upper_bound(address);
    if (after == allocations_.begin()) return nullptr;
    const Allocation& allocation = std::prev(after)->second;
    return address < allocation.end() ? &allocation : nullptr;
}

const Extent* DeviceMemory::find_extent(std::uint64_t address) const {
    auto after = extents_.upper_bound(address);
    if (after == extents_.begin()) return nullptr;
    const Extent& extent = std::prev(after)->second;
    return address < extent.end() ? &extent : nullptr;
}

bool DeviceMemory::mapped(std::uint64_t begin, std::uint64_t bytes) const {
    const Extent* extent = find_extent(begin);
    return extent && bytes <= extent->end() - begin;
}

std::pair<std::uint64_t, std::uint64_t> DeviceMemory::gap(const Extent& extent,
                                                          std::uint64_t address) const {
    std::uint64_t begin = extent.begin;
    std::uint64_t end = extent.end();
    auto after = allocations_.upper_bound(address);
    if (after != allocations_.end()) end = std::min(end, after->first);
    if (after != allocations_.begin()) begin = std::max(begin, std::prev(after)->second.end());
    return {begin, end};
}

const Allocation* DeviceMemory::before(std::uint64_t address) const {
    auto after = allocations_.upper_bound(address);
    return after == allocations_.begin() ? nullptr : &std::prev(after)->second;
}

const Freed* DeviceMemory::find_freed(std::uint64_t address) const {
    for (const Freed& freed : freed_) {
        if (address - freed.begin < freed.bytes) return &freed;
    }
    return nullptr;
}

} // namespace sim
