// One decoded instruction and the lanes that it works on.
//
// Threads of a block run in groups of at most `group_lanes`. A register is an array over the lanes
// of a group; an instruction is a loop over lanes. This header is included by code that is compiled
// for several instruction sets, so it holds plain data only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sim::ptx {

inline constexpr std::uint32_t group_lanes = 256;
inline constexpr std::uint32_t warp_lanes = 32;
inline constexpr std::uint32_t group_warps = group_lanes / warp_lanes;
inline constexpr std::uint32_t most_operands = 12;
inline constexpr std::uint32_t no_operand = 0xffffffff;
/// Set in an operand that lies in the constants of the launch and not in the registers.
inline constexpr std::uint32_t operand_is_constant = 0x80000000;

struct Lanes;
struct Instruction;
struct Group;
struct Frame;

using Handler = void (*)(const Instruction&, Lanes&);

enum class Space : std::uint8_t { generic, global, shared, local, parameter };

struct Instruction {
    Handler run = nullptr;
    /// What a wrapper calls once it has changed the floating-point mode.
    Handler inner = nullptr;
    /// First what is written, then what is read: byte offsets of arrays.
    std::uint32_t operand[most_operands] = {};
    std::uint8_t width[most_operands] = {}; // bytes a lane
    std::uint8_t writes = 0;
    std::uint8_t reads = 0;
    /// Lanes that are not active may be computed too, when what they held is put back.
    bool elementwise = true;
    bool predicate_negated = false;
    std::uint32_t predicate = no_operand;
    std::uint32_t statement = 0;
    std::uint64_t immediate = 0; // addend of an address, kind of special register…
    std::uint32_t immediate2 = 0;
    std::uint32_t mode = 0; // of a wrapper: value of MXCSR
    std::uint32_t slot = 0; // memory instructions: index of the remembered window
    // memory instructions
    Space space = Space::generic;
    std::uint8_t access_bytes = 0;
    bool write = false;
};

/// Lanes [low, high) of the running group that take part.
struct Lanes {
    std::byte* base[2] = {}; // registers of the frame, constants
    std::uint32_t low = 0, high = 0;
    /// nullptr when all lanes of the range take part; else one byte a lane, 0 or 1.
    const std::uint8_t* mask = nullptr;
    Group* group = nullptr;
    Frame* frame = nullptr;

    [[gnu::always_inline]] bool has(std::uint32_t lane) const {
        return mask == nullptr || mask[lane] != 0;
    }
};

template <class T>
[[gnu::always_inline]] inline T* array_of(const Lanes& lanes, std::uint32_t operand) {
    return reinterpret_cast<T*>(lanes.base[operand >> 31] + (operand & ~operand_is_constant));
}

/// Where the lanes of a memory access find their bytes in this process.
struct Access {
    std::byte* base = nullptr; // of lane 0 of the group, when `pointers` is not used
    std::ptrdiff_t stride = 0;
    std::byte* const* pointers = nullptr; // by lane
};

/// A set of lanes.
struct Mask {
    alignas(64) std::uint8_t lane[group_lanes];
    std::uint32_t low, high; // all members are in [low, high)
    std::uint32_t count;
    std::uint32_t warps; // that have a member

    bool dense() const { return count == high - low; }
    bool has(std::uint32_t index) const { return lane[index] != 0; }
};

} // namespace sim::ptx
