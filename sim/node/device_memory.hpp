// The memory of one simulated GPU. Device pointers lie in a range of addresses that the host
// cannot touch; the bytes lie at a constant distance from it, where only the simulator looks.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace sim {

class Pool;

inline constexpr std::uint64_t granule = 2ull << 20; // what the driver maps at once

enum class Purpose { allocation, variable };

/// One live piece of device memory, outside of pools, as the program knows it.
struct Allocation {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0; // as asked for
    Purpose purpose = Purpose::allocation;
    std::string label; // name of a variable
    std::uint64_t end() const { return begin + bytes; }
};

/// A run of mapped granules.
struct Extent {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    Pool* pool = nullptr; // whose chunk it is
    bool shared = false;  // holds several small allocations
    std::uint64_t end() const { return begin + bytes; }
};

/// Memory that was given back, remembered for messages.
struct Freed {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    std::string how;
};

/// Two address ranges of equal size: one for device pointers, without any access, and one with
/// the bytes.
struct AddressRange {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    std::intptr_t shadow = 0; // added to a device address gives the address of its byte
    bool holds(std::uint64_t address) const { return address - begin < bytes; }
};

/// Reserves address space for `bytes` of device pointers. Throws std::runtime_error when the
/// process has not got it (a limit on virtual memory).
AddressRange reserve_addresses(std::uint64_t bytes);
void release_addresses(const AddressRange& range);

class DeviceMemory {
public:
    /// `range` is this device's part of the reserved addresses.
    DeviceMemory(AddressRange range, std::uint64_t total_bytes);

    /// Memory for cudaMalloc or a variable; nothing when the device is full.
    std::optional<std::uint64_t> allocate(std::uint64_t bytes, Purpose purpose, std::string label);
    /// Gives back what `allocate` gave, in the way `how` names; granules without allocations are
    /// unmapped.
    void free(std::uint64_t begin, const std::string& how);

    /// Maps a pool's chunk of `bytes` (a multiple of the granule).
    std::optional<std::uint64_t> map_chunk(std::uint64_t bytes, Pool* pool);
    void unmap_chunk(std::uint64_t begin);
    /// Keeps in mind, for messages, that the program gave this memory back.
    void remember(Freed freed);
    /// Unmaps everything.
    void clear();

    const AddressRange& range() const { return range_; }
    std::uint64_t total_bytes() const { return total_; }
    std::uint64_t mapped_bytes() const { return mapped_; }
    /// Bytes that the driver itself uses on this device.
    void take_overhead(std::uint64_t bytes) { mapped_ += bytes; }

    const Allocation* find(std::uint64_t address) const;
    const Extent* find_extent(std::uint64_t address) const;
    /// Whether every byte of [begin, begin + bytes) is mapped.
    bool mapped(std::uint64_t begin, std::uint64_t bytes) const;
    /// The unallocated, mapped range around `address`, which must lie in `extent`.
    std::pair<std::uint64_t, std::uint64_t> gap(const Extent& extent, std::uint64_t address) const;
    /// The live allocation that ends last at or before `address`, or nullptr.
    const Allocation* before(std::uint64_t address) const;
    const Freed* find_freed(std::uint64_t address) const;
    const std::map<std::uint64_t, Allocation>& allocations() const { return allocations_; }

    /// Address in this process of the byte at a mapped device address.
    std::byte* bytes_at(std::uint64_t address) const {
        return reinterpret_cast<std::byte*>(address + static_cast<std::uint64_t>(range_.shadow));
    }

private:
    std::optional<std::uint64_t> map(std::uint64_t bytes, Pool* pool, bool shared);
    void unmap(std::uint64_t begin);
    std::optional<std::uint64_t> find_addresses(std::uint64_t bytes);
    std::optional<std::uint64_t> place_small(std::uint64_t bytes) const;
    bool holds_allocations(const Extent& extent) const;
    void remove(std::uint64_t begin, const std::string& how);

    AddressRange range_;
    std::uint64_t total_;
    std::uint64_t mapped_ = 0;
    std::uint64_t next_;
    std::map<std::uint64_t, Extent> extents_;
    std::map<std::uint64_t, Allocation> allocations_;
    std::deque<Freed> freed_; // newest first
};

} // namespace sim
