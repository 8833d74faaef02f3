// The state of running threads. A block's threads run in groups; lanes of a group that are at the
// same place form a fragment. Everything that a thread needs to go on later is in here, none of it
// on the host's stack, so a group can stop at the end of any basic block.
#pragma once

#include "ptx/lanes.hpp"
#include "ptx/program.hpp"

#include <memory>

namespace sim::ptx {

/// Windows of the generic address space that are no memory of the node: above what x86-64 gives to
/// a user's process, so they never meet a host or device address.
inline constexpr std::uint64_t shared_window = std::uint64_t{1} << 48;
inline constexpr std::uint64_t local_window = shared_window | std::uint64_t{1} << 40;
inline constexpr std::uint64_t parameter_window = shared_window | std::uint64_t{2} << 40;
/// Words that the blocks of a cooperative launch share.
inline constexpr std::uint64_t workspace_window = shared_window | std::uint64_t{4} << 40;
inline constexpr std::uint64_t workspace_bytes = 64;
inline constexpr std::uint64_t window_bytes = std::uint64_t{1} << 32;
inline constexpr std::uint64_t first_non_canonical = std::uint64_t{1} << 49;

/// Bytes that begin a cache line, zero at first.
class Buffer {
public:
    Buffer() = default;
    explicit Buffer(std::size_t bytes)
        : lines_(std::make_unique<Line[]>(bytes / sizeof(Line) + 1)) {}
    std::byte* data() const { return lines_ ? lines_[0].bytes : nullptr; }

private:
    struct Line {
        alignas(64) std::byte bytes[64];
    };
    std::unique_ptr<Line[]> lines_;
};

/// A window that an instruction used last.
struct Slot {
    std::uint64_t begin = 0, end = 0;
    std::intptr_t shadow = 0;
    MemoryKind kind = MemoryKind::device;
};

struct BlockState;

/// What all groups of a launch share.
struct Surroundings {
    const Launch* launch = nullptr;
    const ModuleText* module = nullptr;
    const Program* program = nullptr;
    std::byte* constants = nullptr;
    const std::byte* parameters = nullptr;
    std::uint64_t parameter_bytes = 0;
    std::vector<Slot> slots;
    Work work;
    double nanoseconds_per_tick = 1;
    alignas(64) std::byte workspace[workspace_bytes] = {};
};

struct Frame {
    Frame* parent = nullptr;
    const Code* code = nullptr;
    const Call* call = nullptr; // in the parent
    std::uint32_t return_block = 0;
    std::uint32_t depth = 0;
    std::uint32_t local_base = 0; // of the function's own variables in its thread's local memory
    std::uint32_t users = 0;      // fragments and frames that need it
    Buffer registers;
};

struct Fragment {
    enum class State : std::uint8_t {
        ready,
        parked, // until the other lanes of its warps arrive
        waiting // at a barrier
    };
    Frame* frame = nullptr;
    std::uint32_t block = 0;
    State state = State::ready;
    bool forced = false; // goes on although lanes are missing: nobody else can arrive
    std::uint32_t barrier = 0;
    std::uint32_t expected = 0; // threads; 0: all
    const Barrier* waits_at = nullptr;
    Mask mask;
};

/// Time of one warp, in ns since the block started.
struct WarpTime {
    double slept = 0;
    double waited = 0; // in sleep, or between two looks at a clock
    double last_look = -1;
    double slept_since_look = 0;
};

struct Group {
    Surroundings* around = nullptr;
    BlockState* block = nullptr;
    std::uint32_t first_thread = 0;
    std::uint32_t lanes = 0;

    std::byte* shared = nullptr;
    std::uint64_t shared_bytes = 0;
    std::byte* local = nullptr; // of lane 0; each lane's memory is in one piece
    std::uint64_t local_bytes = 0;

    std::vector<std::unique_ptr<Fragment>> fragments;
    std::vector<std::unique_ptr<Fragment>> spare_fragments;
    std::vector<std::unique_ptr<Frame>> frames;
    std::vector<std::unique_ptr<Frame>> spare_frames;
    std::uint32_t alive[group_warps] = {}; // bit by lane of the warp

    Fragment* favoured = nullptr; // runs out of turn, so that no lane starves
    std::uint32_t favoured_turns = 0;
    std::uint32_t turns_of_one = 0; // that one fragment had while others wanted to run

    WarpTime time[group_warps];
    std::uint64_t ticks = 0; // instructions that a warp had to wait for, in clock ticks

    double now(std::uint32_t warp) const {
        return static_cast<double>(ticks) * around->nanoseconds_per_tick + time[warp].slept;
    }
};

/// Thrown to stop a kernel; the reason is in the group's block.
struct Stopped {};

struct BlockState {
    Dim3 index;
    std::uint64_t number = 0;
    std::vector<std::unique_ptr<Group>> groups;
    std::vector<std::byte> shared;
    std::vector<std::byte> local;
    std::uint32_t arrived[16] = {}; // at barriers, by bar.arrive
    double started = 0;             // ns after the launch
    std::size_t next_group = 0;
    Fault fault;
};

Dim3 thread_index(const Group& group, std::uint32_t lane);

/// Fills the fault with what all faults have and throws Stopped.
[[noreturn]] void stop(const Instruction& in, const Lanes& lanes, std::uint32_t lane, int error,
                       const std::string& message, std::uint64_t address = 0);

/// The slow way to a lane's memory: any space, any window. `kind` becomes 255 when the access is
/// not to the node's memory. Stops the kernel when it may not be.
std::byte* find_place(const Instruction& in, Lanes& lanes, std::uint32_t lane,
                      std::uint64_t address, std::uint8_t& kind);

/// Asks for the window around `address` and remembers it; false when there is none.
bool refill(const Instruction& in, Lanes& lanes, std::uint64_t address);

enum class Progress : std::uint8_t { finished, blocked, paused };

/// Starts a block's threads. Memory that `block` already has is used again.
void start_block(BlockState& block, Surroundings& around, std::uint64_t number);
/// Runs until all groups are finished or about `quantum` instructions were dispatched. Throws
/// Stopped.
Progress run_block(BlockState& block, std::uint64_t quantum);
/// Longest time a warp of the block waited, in ns.
double longest_wait(const BlockState& block);

} // namespace sim::ptx
