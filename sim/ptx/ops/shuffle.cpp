// Exchange of values between the lanes of a warp.
//
// Operands: destination, predicate, source, lane operand, clamp and segment, member mask.
#include "ptx/ops/each.hpp"

namespace sim::ptx::SIM_PTX_SET {
namespace {

struct Source {
    u32 lane;
    bool in_range;
};

/// `clamp` bounds the segment, and the upper bits of c divide the warp into segments.
template <Shuffle mode> Source source_of(u32 lane, u32 b, u32 c) {
    const u32 by = b & 31;
    const u32 segment = c >> 8 & 31;
    const u32 highest = (lane & segment) | (c & 31 & ~segment);
    if constexpr (mode == Shuffle::up)
        return {lane - by, static_cast<s32>(lane - by) >= static_cast<s32>(highest)};
    if constexpr (mode == Shuffle::down) return {lane + by, lane + by <= highest};
    if constexpr (mode == Shuffle::bfly) return {lane ^ by, (lane ^ by) <= highest};
    const u32 from = (lane & segment) | (by & ~segment);
    return {from, from <= highest};
}

template <Shuffle mode> void shuffle(const Instruction& in, Lanes& lanes) {
    u32* d = array_of<u32>(lanes, in.operand[0]);
    u8* p = array_of<u8>(lanes, in.operand[1]);
    const u32* a = array_of<u32>(lanes, in.operand[2]);
    const u32* b = array_of<u32>(lanes, in.operand[3]);
    const u32* c = array_of<u32>(lanes, in.operand[4]);
    for (u32 base = lanes.low & ~(warp_lanes - 1); base < lanes.high; base += warp_lanes) {
        u32 value[warp_lanes], from[warp_lanes];
        u8 in_range[warp_lanes];
        for (u32 i = 0; i < warp_lanes; ++i) {
            const Source source = source_of<mode>(i, b[base + i], c[base + i]);
            value[i] = a[base + i];
            from[i] = source.in_range ? source.lane & 31 : i;
            in_range[i] = source.in_range;
        }
        const bool whole =
            lanes.mask == nullptr && base >= lanes.low && base + warp_lanes <= lanes.high;
        if (whole) {
            for (u32 i = 0; i < warp_lanes; ++i)
                d[base + i] = value[from[i]];
            std::memcpy(p + base, in_range, sizeof in_range);
            continue;
        }
        for (u32 i = 0; i < warp_lanes; ++i) {
            const u32 lane = base + i;
            if (lane < lanes.low || lane >= lanes.high || !lanes.has(lane)) continue;
            d[lane] = value[from[i]];
            p[lane] = in_range[i];
        }
    }
}

} // namespace

Handler shuffle_handler(Shuffle mode) {
    switch (mode) {
    case Shuffle::up:
        return shuffle<Shuffle::up>;
    case Shuffle::down:
        return shuffle<Shuffle::down>;
    case Shuffle::bfly:
        return shuffle<Shuffle::bfly>;
    case Shuffle::idx:
        return shuffle<Shuffle::idx>;
    }
    return nullptr;
}

} // namespace sim::ptx::SIM_PTX_SET
