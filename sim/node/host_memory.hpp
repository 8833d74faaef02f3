// Host memory that the GPUs know of: pinned by allocation, pinned by registration, or managed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace sim {

enum class HostKind { allocated, registered, managed };

struct HostRange {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    HostKind kind = HostKind::allocated;
    unsigned flags = 0;       // as cudaHostGetFlags reports them
    int device = 0;           // current when the memory was pinned
    bool kept_in_host = true; // for kernels it is on the other side of the link
    std::uint64_t end() const { return begin + bytes; }
};

/// All such ranges, by address. Owns the memory of allocated and managed ranges.
class HostMemory {
public:
    explicit HostMemory(std::uint64_t pinnable_bytes) : pinnable_(pinnable_bytes) {}

    /// Pinned or managed memory of `bytes`, page-aligned; nothing when the limit is reached.
    std::optional<std::uint64_t> allocate(std::uint64_t bytes, HostKind kind, unsigned flags,
                                          int device);
    /// Gives allocated memory back. `begin` must be the start of an allocated or managed range.
    void release(std::uint64_t begin);

    /// Records memory of the caller as pinned; false when the limit is reached.
    bool add_registered(std::uint64_t begin, std::uint64_t bytes, unsigned flags, int device);
    void remove_registered(std::uint64_t begin);

    /// Whether the managed range that holds `address` stays in the host when kernels use it.
    void keep_in_host(std::uint64_t address, bool keep);

    /// The range that holds `address`, or nullptr.
    const HostRange* find(std::uint64_t address) const;
    /// Any range that shares a byte with [begin, begin + bytes), or nullptr.
    const HostRange* overlap(std::uint64_t begin, std::uint64_t bytes) const;
    /// The range whose memory was given back last and that held `address`, or nullptr.
    const HostRange* find_released(std::uint64_t address) const;

    const std::map<std::uint64_t, HostRange>& ranges() const { return ranges_; }

private:
    std::map<std::uint64_t, HostRange> ranges_;
    std::map<std::uint64_t, HostRange> released_;
    std::uint64_t pinnable_;
    std::uint64_t pinned_ = 0;
};

} // namespace sim
