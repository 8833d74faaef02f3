// What the lanes of a warp do together.
#include "ptx/group.hpp"
#include "ptx/handlers.hpp"

#include <bit>

namespace sim::ptx {
namespace {

/// Active lanes of a warp, one bit each.
std::uint32_t active_in(const Lanes& lanes, std::uint32_t warp) {
    std::uint32_t bits = 0;
    for (std::uint32_t i = 0; i < warp_lanes; ++i) {
        const std::uint32_t lane = warp * warp_lanes + i;
        if (lane >= lanes.low && lane < lanes.high && lanes.has(lane))
            bits |= std::uint32_t{1} << i;
    }
    return bits;
}

template <class F> void for_each_warp(const Lanes& lanes, F f) {
    for (std::uint32_t warp = lanes.low / warp_lanes; warp * warp_lanes < lanes.high; ++warp)
        if (const std::uint32_t active = active_in(lanes, warp); active != 0)
            f(warp * warp_lanes, active);
}

template <class F> void for_each_bit(std::uint32_t bits, F f) {
    for (; bits != 0; bits &= bits - 1)
        f(static_cast<std::uint32_t>(std::countr_zero(bits)));
}

} // namespace

void vote(const Instruction& in, Lanes& lanes) {
    const std::uint8_t* p = array_of<std::uint8_t>(lanes, in.operand[1]);
    const std::uint32_t* members = array_of<std::uint32_t>(lanes, in.operand[2]);
    for_each_warp(lanes, [&](std::uint32_t base, std::uint32_t active) {
        std::uint32_t yes = 0;
        for_each_bit(active, [&](std::uint32_t i) { yes |= std::uint32_t{p[base + i]} << i; });
        for_each_bit(active, [&](std::uint32_t i) {
            const std::uint32_t asked = active & members[base + i];
            const std::uint32_t ballot = yes & asked;
            if (in.immediate == 3) {
                array_of<std::uint32_t>(lanes, in.operand[0])[base + i] = ballot;
                return;
            }
            const bool all = ballot == asked;
            const bool any = ballot != 0;
            const bool result = in.immediate == 0 ? all : in.immediate == 1 ? any : all || !any;
            array_of<std::uint8_t>(lanes, in.operand[0])[base + i] = result;
        });
    });
}

void match(const Instruction& in, Lanes& lanes) {
    std::uint32_t* d = array_of<std::uint32_t>(lanes, in.operand[0]);
    const bool all = in.writes == 2;
    const std::uint32_t source = in.operand[in.writes];
    const bool wide = in.width[in.writes] == 8;
    const std::uint32_t* members = array_of<std::uint32_t>(lanes, in.operand[in.writes + 1]);
    const auto value = [&](std::uint32_t lane) {
        return wide ? array_of<std::uint64_t>(lanes, source)[lane]
                    : std::uint64_t{array_of<std::uint32_t>(lanes, source)[lane]};
    };
    for_each_warp(lanes, [&](std::uint32_t base, std::uint32_t active) {
        for_each_bit(active, [&](std::uint32_t i) {
            const std::uint32_t asked = active & members[base + i];
            std::uint32_t same = 0;
            for_each_bit(asked, [&](std::uint32_t k) {
                if (value(base + k) == value(base + i)) same |= std::uint32_t{1} << k;
            });
            if (!all) {
                d[base + i] = same;
                return;
            }
            d[base + i] = same == asked ? asked : 0;
            array_of<std::uint8_t>(lanes, in.operand[1])[base + i] = same == asked;
        });
    });
}

void active_mask(const Instruction& in, Lanes& lanes) {
    std::uint32_t* d = array_of<std::uint32_t>(lanes, in.operand[0]);
    for_each_warp(lanes, [&](std::uint32_t base, std::uint32_t active) {
        for_each_bit(active, [&](std::uint32_t i) { d[base + i] = active; });
    });
}

namespace {

std::uint32_t combined(Atomic operation, bool is_signed, std::uint32_t a, std::uint32_t b) {
    const auto sa = static_cast<std::int32_t>(a), sb = static_cast<std::int32_t>(b);
    const bool less = is_signed ? sa < sb : a < b;
    switch (operation) {
    case Atomic::add:
        return a + b;
    case Atomic::min:
        return less ? a : b;
    case Atomic::max:
        return less ? b : a;
    case Atomic::and_:
        return a & b;
    case Atomic::or_:
        return a | b;
    default:
        return a ^ b;
    }
}

} // namespace

void reduce(const Instruction& in, Lanes& lanes) {
    std::uint32_t* d = array_of<std::uint32_t>(lanes, in.operand[0]);
    const std::uint32_t* a = array_of<std::uint32_t>(lanes, in.operand[1]);
    const std::uint32_t* members = array_of<std::uint32_t>(lanes, in.operand[2]);
    const auto operation = static_cast<Atomic>(in.immediate);
    for_each_warp(lanes, [&](std::uint32_t base, std::uint32_t active) {
        for_each_bit(active, [&](std::uint32_t i) {
            const std::uint32_t asked = active & members[base + i];
            std::uint32_t result = a[base + i];
            for_each_bit(asked & ~(std::uint32_t{1} << i), [&](std::uint32_t k) {
                result = combined(operation, in.immediate2 != 0, result, a[base + k]);
            });
            d[base + i] = result;
        });
    });
}

void elect(const Instruction& in, Lanes& lanes) {
    std::uint32_t* d = array_of<std::uint32_t>(lanes, in.operand[0]);
    std::uint8_t* p = array_of<std::uint8_t>(lanes, in.operand[1]);
    const std::uint32_t* members = array_of<std::uint32_t>(lanes, in.operand[2]);
    for_each_warp(lanes, [&](std::uint32_t base, std::uint32_t active) {
        for_each_bit(active, [&](std::uint32_t i) {
            const auto leader =
                static_cast<std::uint32_t>(std::countr_zero(active & members[base + i]));
            d[base + i] = leader;
            p[base + i] = leader == i;
        });
    });
}

} // namespace sim::ptx
