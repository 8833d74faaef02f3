#include "ptx/handlers.hpp"

#include "ptx/group.hpp"
#include "ptx/ops/operations.hpp"

#include <algorithm>
#include <cstring>

#include <xmmintrin.h>

namespace sim::ptx {
namespace {

/// What looking at a clock costs the warp. The first is about what it costs a GPU; the second
/// keeps a kernel that does nothing but wait for the timer from looking at it a million times.
constexpr std::uint64_t clock_ticks = 40;
constexpr double timer_nanoseconds = 250;

/// A kernel that looks at a clock again and again waits for it: what passes in between counts.
void look_at_clock(WarpTime& time, double now) {
    time.waited += time.last_look >= 0 ? now - time.last_look : time.slept_since_look;
    time.slept_since_look = 0;
    time.last_look = now;
}

template <class F> void for_each_warp(const Lanes& lanes, F f) {
    for (std::uint32_t warp = lanes.low / warp_lanes; warp * warp_lanes < lanes.high; ++warp)
        for (std::uint32_t i = 0; i < warp_lanes; ++i) {
            const std::uint32_t lane = warp * warp_lanes + i;
            if (lane >= lanes.low && lane < lanes.high && lanes.has(lane)) {
                f(warp, lane);
                break;
            }
        }
}

template <class F> void for_each_lane(const Lanes& lanes, F f) {
    const std::uint32_t high = lanes.high;
    if (lanes.mask == nullptr) {
        for (std::uint32_t i = lanes.low; i < high; ++i)
            f(i);
        return;
    }
    for (std::uint32_t i = lanes.low; i < high; ++i)
        if (lanes.mask[i] != 0) f(i);
}

std::uint64_t clock_of(Group& group, std::uint32_t warp) {
    const double nanoseconds = group.block->started + group.now(warp);
    return static_cast<std::uint64_t>(
        (static_cast<double>(group.around->launch->start_ns) + nanoseconds) /
        group.around->nanoseconds_per_tick);
}

std::uint64_t timer_of(Group& group, std::uint32_t warp) {
    return group.around->launch->start_ns +
           static_cast<std::uint64_t>(group.block->started + group.now(warp));
}

void look(Special special, const Lanes& lanes) {
    Group& group = *lanes.group;
    const bool timer = special == Special::globaltimer || special == Special::globaltimer_hi;
    if (!timer) group.ticks += clock_ticks;
    for_each_warp(lanes, [&](std::uint32_t warp, std::uint32_t) {
        WarpTime& time = group.time[warp];
        if (timer) time.slept += timer_nanoseconds;
        look_at_clock(time, group.now(warp));
    });
}

std::uint64_t value_of(Special special, const Lanes& lanes, std::uint32_t lane) {
    Group& group = *lanes.group;
    const Launch& launch = *group.around->launch;
    const std::uint32_t in_warp = lane % warp_lanes;
    const std::uint32_t warp = lane / warp_lanes;
    const std::uint32_t own = std::uint32_t{1} << in_warp;
    switch (special) {
    case Special::tid_x:
        return thread_index(group, lane).x;
    case Special::tid_y:
        return thread_index(group, lane).y;
    case Special::tid_z:
        return thread_index(group, lane).z;
    case Special::ntid_x:
        return launch.block.x;
    case Special::ntid_y:
        return launch.block.y;
    case Special::ntid_z:
        return launch.block.z;
    case Special::ctaid_x:
        return group.block->index.x;
    case Special::ctaid_y:
        return group.block->index.y;
    case Special::ctaid_z:
        return group.block->index.z;
    case Special::nctaid_x:
        return launch.grid.x;
    case Special::nctaid_y:
        return launch.grid.y;
    case Special::nctaid_z:
        return launch.grid.z;
    case Special::laneid:
        return in_warp;
    case Special::warpid:
        return (group.first_thread + lane) / warp_lanes;
    case Special::nwarpid:
        return (launch.block.count() + warp_lanes - 1) / warp_lanes;
    case Special::smid:
        return group.block->number % std::max(1u, launch.multiprocessors);
    case Special::nsmid:
        return launch.multiprocessors;
    case Special::gridid:
        return 1;
    case Special::lanemask_eq:
        return own;
    case Special::lanemask_lt:
        return own - 1;
    case Special::lanemask_le:
        return own - 1 + own;
    case Special::lanemask_gt:
        return std::uint32_t(~(own - 1 + own));
    case Special::lanemask_ge:
        return std::uint32_t(~(own - 1));
    case Special::clock:
        return clock_of(group, warp);
    case Special::clock_hi:
        return clock_of(group, warp) >> 32;
    case Special::globaltimer:
        return timer_of(group, warp);
    case Special::globaltimer_hi:
        return timer_of(group, warp) >> 32;
    case Special::dynamic_smem_size:
        return launch.dynamic_shared_bytes;
    case Special::total_smem_size:
        return group.shared_bytes;
    case Special::workspace_low:
        return launch.cooperative ? workspace_window & 0xffffffff : 0;
    case Special::workspace_high:
        return launch.cooperative ? workspace_window >> 32 : 0;
    case Special::zero:
        return 0;
    case Special::one:
        return 1;
    }
    return 0;
}

bool same_for_all(Special special) {
    return (special >= Special::ntid_x && special <= Special::nctaid_z) ||
           (special >= Special::nwarpid && special <= Special::gridid) ||
           special >= Special::dynamic_smem_size;
}

bool is_clock(Special special) {
    return special >= Special::clock && special <= Special::globaltimer_hi;
}

template <class T> void fill_special(const Instruction& in, Lanes& lanes) {
    const auto special = static_cast<Special>(in.immediate);
    T* d = array_of<T>(lanes, in.operand[0]);
    if (same_for_all(special)) {
        const T value = static_cast<T>(value_of(special, lanes, lanes.low));
        return for_each_lane(lanes, [&](std::uint32_t i) { d[i] = value; });
    }
    const Dim3 block = lanes.group->around->launch->block;
    const std::uint32_t first = lanes.group->first_thread;
    if (special == Special::tid_x && block.y == 1 && block.z == 1)
        return for_each_lane(lanes, [&](std::uint32_t i) { d[i] = first + i; });
    if (is_clock(special)) {
        look(special, lanes);
        for_each_warp(lanes, [&](std::uint32_t warp, std::uint32_t first) {
            const T value = static_cast<T>(value_of(special, lanes, first));
            const std::uint32_t end = std::min(lanes.high, (warp + 1) * warp_lanes);
            for (std::uint32_t i = first; i < end; ++i)
                if (lanes.has(i)) d[i] = value;
        });
        return;
    }
    for_each_lane(lanes,
                  [&](std::uint32_t i) { d[i] = static_cast<T>(value_of(special, lanes, i)); });
}

} // namespace

void run_with_mode(const Instruction& in, Lanes& lanes) {
    const unsigned before = _mm_getcsr();
    _mm_setcsr(in.mode);
    // memory is what the loop works on, so the loop stays between the two barriers
    asm volatile("" ::: "memory");
    in.inner(in, lanes);
    asm volatile("" ::: "memory");
    _mm_setcsr(before);
}

void read_special(const Instruction& in, Lanes& lanes) {
    if (in.width[0] == 8)
        fill_special<std::uint64_t>(in, lanes);
    else
        fill_special<std::uint32_t>(in, lanes);
}

void local_address(const Instruction& in, Lanes& lanes) {
    std::uint64_t* d = array_of<std::uint64_t>(lanes, in.operand[0]);
    for (std::uint32_t i = lanes.low; i < lanes.high; ++i)
        d[i] = lanes.frame->local_base + in.immediate;
}

void is_in_space(const Instruction& in, Lanes& lanes) {
    std::uint8_t* d = array_of<std::uint8_t>(lanes, in.operand[0]);
    const std::uint64_t* a = array_of<std::uint64_t>(lanes, in.operand[1]);
    for (std::uint32_t i = lanes.low; i < lanes.high; ++i) {
        const std::uint64_t address = a[i];
        switch (in.space) {
        case Space::shared:
            d[i] = address - shared_window < window_bytes;
            break;
        case Space::local:
            d[i] = address - local_window < window_bytes;
            break;
        case Space::parameter:
            d[i] = address - parameter_window < window_bytes;
            break;
        default:
            d[i] = address < shared_window;
            break;
        }
    }
}

void sleep(const Instruction& in, Lanes& lanes) {
    const std::uint32_t* ns = array_of<std::uint32_t>(lanes, in.operand[0]);
    Group& group = *lanes.group;
    for_each_warp(lanes, [&](std::uint32_t warp, std::uint32_t first) {
        std::uint32_t longest = 0;
        const std::uint32_t end = std::min(lanes.high, (warp + 1) * warp_lanes);
        for (std::uint32_t i = first; i < end; ++i)
            if (lanes.has(i)) longest = std::max(longest, ns[i]);
        group.time[warp].slept += longest;
        group.time[warp].slept_since_look += longest;
    });
}

void trap(const Instruction& in, Lanes& lanes) {
    constexpr int launch_failure = 719;
    std::uint32_t lane = lanes.low;
    while (!lanes.has(lane))
        ++lane;
    stop(in, lanes, lane, launch_failure, "The kernel stopped itself with a trap.");
}

void copy_to_shared(const Instruction& in, Lanes& lanes) {
    std::byte* pointers[group_lanes];
    const Access from = operations().resolve(in, lanes, pointers);
    Instruction to = in;
    to.space = Space::shared;
    to.write = true;
    for (std::uint32_t i = lanes.low; i < lanes.high; ++i) {
        if (!lanes.has(i)) continue;
        const std::uint64_t base = in.width[1] == 8
                                       ? array_of<std::uint64_t>(lanes, in.operand[1])[i]
                                       : array_of<std::uint32_t>(lanes, in.operand[1])[i];
        std::uint8_t kind = 0;
        std::byte* place = find_place(to, lanes, i, base + in.immediate2, kind);
        const std::size_t taken = std::min<std::size_t>(
            array_of<std::uint32_t>(lanes, in.operand[2])[i], in.access_bytes);
        const std::byte* source =
            from.pointers != nullptr ? from.pointers[i] : from.base + i * from.stride;
        std::memcpy(place, source, taken);
        std::memset(place + taken, 0, in.access_bytes - taken);
    }
}

} // namespace sim::ptx
