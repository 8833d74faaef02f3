// Lesson 1, device memory: what device-memory.cu implements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace lesson {

/// The part of a vector that lies on one GPU.
struct Shard {
    std::uint64_t* keys; ///< device memory of that GPU; anything if the shard is empty
    std::size_t offset;  ///< place of its first key in the vector
    std::size_t size;    ///< in keys
};

/// The most keys by which a shard may exceed an even share, size / number of shards, rounded down:
/// room for the remainder, and for shards that begin at a round place.
inline constexpr std::size_t max_excess = 1024;

/// A vector of keys, split over several GPUs. Any current device may be set when these are called,
/// and it is the same afterwards, also when they throw. Used by one thread at a time, not always
/// the one that made it. Every function throws CudaError when a CUDA call fails.
class ShardedKeys {
public:
    /// Frees the shards.
    virtual ~ShardedKeys() = default;

    /// One shard for each device that the vector was made for, in that order. Together they hold
    /// the vector: each begins where the one before it ends. Owned by the vector, valid as long as
    /// it.
    virtual const std::vector<Shard>& shards() const = 0;

    /// Key i of the vector becomes first + i * step (modulo 2^64), for every i. All GPUs work on
    /// their shards at the same time. Once this returns, the keys are there.
    virtual void fill(std::uint64_t first, std::uint64_t step) = 0;
};

/// Makes a vector of `size` keys, which may be 0 or fewer than there are devices. Shard k lies on
/// GPU `devices[k]`, in device memory (not managed). There is at least one device; they come in any
/// order, and a device that comes twice gets two shards. When this throws, nothing is left
/// allocated.
std::unique_ptr<ShardedKeys> make_sharded_keys(const std::vector<int>& devices, std::size_t size);

} // namespace lesson
