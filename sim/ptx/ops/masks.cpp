#include "ptx/ops/each.hpp"

namespace sim::ptx::SIM_PTX_SET {
namespace {

template <class T>
void keep(std::byte* array, const std::byte* before, const std::uint8_t* mask, u32 low, u32 high) {
    T* now = reinterpret_cast<T*>(array);
    const T* old = reinterpret_cast<const T*>(before);
#pragma GCC ivdep
    for (u32 i = low; i < high; ++i) {
        // a choice would become a store that happens or not, which does not vectorise
        const T keep_new = static_cast<T>(T{0} - T{mask[i]});
        now[i] = static_cast<T>((now[i] & keep_new) | (old[i] & ~keep_new));
    }
}

} // namespace

void summarise(Mask& mask) {
    u32 count = 0;
    u32 warps = 0;
    u32 low = group_lanes, high = 0;
    for (u32 warp = 0; warp < group_warps; ++warp) {
        const std::uint8_t* lane = mask.lane + warp * warp_lanes;
        u32 members = 0;
        for (u32 i = 0; i < warp_lanes; ++i)
            members += lane[i];

        if (members == 0) continue;
        count += members;
        ++warps;
        if (low == group_lanes) {
            low = warp * warp_lanes;
            while (mask.lane[low] == 0)
                ++low;
        }
        high = (warp + 1) * warp_lanes;
    }
    while (high > 0 && mask.lane[high - 1] == 0)
        --high;
    mask.count = count;
    mask.warps = warps;
    mask.low = count == 0 ? 0 : low;
    mask.high = high;
}

void split(const Mask& active, const std::uint8_t* predicate, bool negated, Mask& taken) {
    const u8 flip = negated ? 1 : 0;
    // beyond the lanes of the group the predicate holds anything, but nothing is active there
#pragma GCC ivdep
    for (u32 i = 0; i < group_lanes; ++i)
        taken.lane[i] = static_cast<u8>(active.lane[i] & (predicate[i] ^ flip));
    summarise(taken);
}

void keep_inactive(std::byte* array, const std::byte* before, unsigned width,
                   const std::uint8_t* mask, std::uint32_t low, std::uint32_t high) {
    switch (width) {
    case 1:
        return keep<u8>(array, before, mask, low, high);
    case 2:
        return keep<u16>(array, before, mask, low, high);
    case 4:
        return keep<u32>(array, before, mask, low, high);
    default:
        return keep<u64>(array, before, mask, low, high);
    }
}

} // namespace sim::ptx::SIM_PTX_SET
