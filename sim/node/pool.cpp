#include "node/pool.hpp"

#include "node/device_memory.hpp"
#include "node/stream.hpp"
#include "node/timeline.hpp"

#include <algorithm>

namespace sim {
namespace {

constexpr std::uint64_t chunk_unit = 32ull << 20; // what one byte more reserves on an H200
constexpr std::uint64_t block_unit = 512;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

bool is_over(const PoolBlock& block, double clock) {
    if (!block.freed_by) return true;
    return block.freed_by->state == Operation::State::done && block.freed_by->end <= clock;
}

/// Whether `a` becomes free after `b`. Both are over or were freed in the same stream.
bool is_later(const PoolBlock& a, const PoolBlock& b) {
    if (!a.freed_by || !b.freed_by) return a.freed_by != nullptr;
    if (is_over(a, never) && is_over(b, never)) return a.freed_by->end > b.freed_by->end;
    return is_over(b, never) || depends_on(*a.freed_by, *b.freed_by);
}

} // namespace

Pool::~Pool() {
    for (const auto& [begin, bytes] : chunks_)
        memory_.unmap_chunk(begin);
}

bool Pool::usable(const PoolBlock& block, const Stream& stream, double clock) const {
    if (block.live) return false;
    if (!block.freed_by || block.freed_in == stream.id) return true;
    if (opportunistic && is_over(block, clock)) return true;
    return follow_events && stream.tail && depends_on(*stream.tail, *block.freed_by);
}

Pool::Blocks::iterator Pool::best_block(std::uint64_t room, const Stream& stream, double clock) {
    auto best = blocks_.end();
    for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
        if (block->second.room < room || !usable(block->second, stream, clock)) continue;
        if (best == blocks_.end() || block->second.room < best->second.room) best = block;
    }
    return best;
}

Pool::Blocks::iterator Pool::grow(std::uint64_t room, std::uint64_t& grown) {
    const std::uint64_t bytes = round_up(room, chunk_unit);
    if (max_bytes_ != 0 && reserved_ + bytes > max_bytes_) return blocks_.end();
    auto begin = memory_.map_chunk(bytes, this);
    if (!begin) return blocks_.end();
    chunks_[*begin] = bytes;
    reserved_ += bytes;
    reserved_high = std::max(reserved_high, reserved_);
    grown = bytes;
    return blocks_.emplace(*begin, PoolBlock{*begin, bytes, 0, false, nullptr, 0}).first;
}

std::optional<std::uint64_t> Pool::allocate(std::uint64_t bytes, const Stream& stream, double clock,
                                            std::uint64_t& grown) {
    if (bytes > memory_.total_bytes()) return std::nullopt;
    const std::uint64_t room = round_up(bytes, block_unit);
    auto block = best_block(room, stream, clock);
    if (block == blocks_.end()) block = grow(room, grown);
    if (block == blocks_.end()) return std::nullopt;
    PoolBlock& taken = block->second;
    if (taken.room > room) {
        PoolBlock rest = taken;
        rest.begin += room;
        rest.room -= room;
        blocks_[rest.begin] = rest;
        taken.room = room;
    }
    taken.bytes = bytes;
    taken.live = true;
    taken.freed_by = nullptr;
    used_ += bytes;
    used_high = std::max(used_high, used_);
    return taken.begin;
}

void Pool::join_with_next(Blocks::iterator block) {
    auto next = std::next(block);
    if (next == blocks_.end() || starts_chunk(next->first)) return;
    PoolBlock& a = block->second;
    const PoolBlock& b = next->second;
    if (a.live || b.live) return;
    const bool same_stream = a.freed_by && b.freed_by && a.freed_in == b.freed_in;
    if (!same_stream && !(is_over(a, never) && is_over(b, never))) return;
    if (is_later(b, a)) {
        a.freed_by = b.freed_by;
        a.freed_in = b.freed_in;
    }
    a.bytes = a.room + b.bytes; // work that was issued before may still use both
    a.room += b.room;
    blocks_.erase(next);
}

void Pool::free(std::uint64_t begin, OperationPtr operation, std::uint64_t stream_id,
                const std::string& how) {
    auto block = blocks_.find(begin);
    PoolBlock& freed = block->second;
    memory_.remember({begin, freed.bytes, how});
    used_ -= freed.bytes;
    freed.live = false;
    freed.freed_by = std::move(operation);
    freed.freed_in = stream_id;
    join_with_next(block);
    if (block != blocks_.begin() && !starts_chunk(block->first)) join_with_next(std::prev(block));
}

bool Pool::chunk_is_free(std::uint64_t begin, std::uint64_t bytes, double now) const {
    for (auto block = blocks_.find(begin); block != blocks_.end(); ++block) {
        if (block->first >= begin + bytes) break;
        if (block->second.live || !is_over(block->second, now)) return false;
    }
    return true;
}

std::uint64_t Pool::release(std::uint64_t keep, double now) {
    std::uint64_t released = 0;
    for (auto chunk = chunks_.begin(); chunk != chunks_.end() && reserved_ > keep;) {
        const auto [begin, bytes] = *chunk;
        if (!chunk_is_free(begin, bytes, now)) {
            ++chunk;
            continue;
        }
        blocks_.erase(blocks_.find(begin), blocks_.lower_bound(begin + bytes));
        memory_.unmap_chunk(begin);
        reserved_ -= bytes;
        released += bytes;
        chunk = chunks_.erase(chunk);
    }
    return released;
}

std::uint64_t Pool::live_blocks() const {
    std::uint64_t count = 0;
    for (const auto& [begin, block] : blocks_)
        count += block.live;
    return count;
}

const PoolBlock* Pool::find(std::uint64_t address) const {
    auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) return nullptr;
    const PoolBlock& block = std::prev(after)->second;
    return address - block.begin < block.room ? &block : nullptr;
}

} // namespace sim
