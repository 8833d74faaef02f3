// A memory pool: chunks of device memory, mapped once and handed out in stream order.
#pragma once

#include "node/engine.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace sim {

class DeviceMemory;
struct Stream;

/// A part of a chunk: handed out or free.
struct PoolBlock {
    std::uint64_t begin = 0;
    std::uint64_t room = 0;     // bytes until the next block
    std::uint64_t bytes = 0;    // as asked for
    bool live = false;          // until it is given back, as the host program sees it
    OperationPtr freed_by;      // the operation after which it is free; null: at once
    std::uint64_t freed_in = 0; // id of the stream of that operation
    std::uint64_t end() const { return begin + bytes; }
};

class Pool {
public:
    Pool(DeviceMemory& memory, int device, std::uint64_t max_bytes)
        : memory_(memory), device_(device), max_bytes_(max_bytes) {}
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    /// Memory that work in `stream` may use from its current end on; `clock` is the caller's.
    /// Nothing when the device is full. `grown` receives the bytes newly mapped.
    std::optional<std::uint64_t> allocate(std::uint64_t bytes, const Stream& stream, double clock,
                                          std::uint64_t& grown);
    /// Gives a live block back once `operation`, issued to the stream `stream_id`, is done; null
    /// means at once.
    void free(std::uint64_t begin, OperationPtr operation, std::uint64_t stream_id,
              const std::string& how);
    /// Unmaps free chunks until at most `keep` bytes are reserved. Returns the bytes unmapped.
    std::uint64_t release(std::uint64_t keep, double now);

    /// The block around `address`, live or not; nullptr outside of the chunks.
    const PoolBlock* find(std::uint64_t address) const;
    std::uint64_t live_blocks() const;

    int device() const { return device_; }
    std::uint64_t used() const { return used_; }
    std::uint64_t reserved() const { return reserved_; }

    // What the program sets and reads.
    std::uint64_t threshold = 0;
    std::uint64_t used_high = 0;
    std::uint64_t reserved_high = 0;
    bool follow_events = true;
    bool opportunistic = true;
    bool internal_dependencies = true;
    std::set<int> access; // other devices that may touch its memory

private:
    using Blocks = std::map<std::uint64_t, PoolBlock>;

    bool usable(const PoolBlock& block, const Stream& stream, double clock) const;
    Blocks::iterator best_block(std::uint64_t room, const Stream& stream, double clock);
    Blocks::iterator grow(std::uint64_t room, std::uint64_t& grown);
    bool chunk_is_free(std::uint64_t begin, std::uint64_t bytes, double now) const;
    void join_with_next(Blocks::iterator block);
    bool starts_chunk(std::uint64_t address) const { return chunks_.contains(address); }

    DeviceMemory& memory_;
    int device_;
    std::uint64_t max_bytes_;
    std::map<std::uint64_t, std::uint64_t> chunks_; // begin -> bytes
    Blocks blocks_;                                 // cover the chunks without holes
    std::uint64_t used_ = 0;
    std::uint64_t reserved_ = 0;
};

} // namespace sim
