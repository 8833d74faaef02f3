// Loads and stores. First the addresses of all lanes are turned into places in this process, then
// the data moves. Addresses that grow by the same step from lane to lane, the usual case, need one
// check and no list of places.
#include "ptx/group.hpp"
#include "ptx/ops/each.hpp"

#include <type_traits>

namespace sim::ptx::SIM_PTX_SET {
namespace {

struct Range {
    u64 first; // of the lowest lane
    s64 step;
    u64 low, high; // all bytes
    bool ordered;  // the range does not wrap around
};

Range range_of(const Instruction& in, const Lanes& lanes, u64 first, s64 step) {
    const u32 last_lane = lanes.high - lanes.low - 1;
    const u64 last = first + static_cast<u64>(step) * last_lane;
    const u64 low = step < 0 ? last : first;
    const u64 high = (step < 0 ? first : last) + in.access_bytes;
    return {first, step, low, high, low < high};
}

Access from_base(const Lanes& lanes, const Range& range, u64 place_of_first, s64 extra_step) {
    const s64 step = range.step + extra_step;
    const u64 base = place_of_first - static_cast<u64>(step) * lanes.low;
    return {reinterpret_cast<std::byte*>(base), step, nullptr};
}

u64 sectors_of_warp(u64 first, s64 step, u32 count) {
    if (step == 0) return 1;
    const u64 last = first + static_cast<u64>(step) * (count - 1);
    const u64 size = static_cast<u64>(step < 0 ? -step : step);
    // natural alignment keeps an access within one sector
    if (size >= 32) return count;
    return (step < 0 ? (first >> 5) - (last >> 5) : (last >> 5) - (first >> 5)) + 1;
}

void add_sectors(const Instruction& in, Group& group, u8 kind, u64 sectors) {
    Work& work = group.around->work;
    if (in.write) work.sectors_written[kind] += sectors;
    if (!in.write || in.writes != 0) // an atomic operation that returns the old value does both
        work.sectors_read[kind] += sectors;
}

void count_range(const Instruction& in, const Lanes& lanes, const Range& range, u8 kind) {
    u64 sectors = 0;
    for (u32 lane = lanes.low; lane < lanes.high;) {
        const u32 end_of_warp = (lane | (warp_lanes - 1)) + 1;
        const u32 end = end_of_warp < lanes.high ? end_of_warp : lanes.high;
        const u64 first = range.first + static_cast<u64>(range.step) * (lane - lanes.low);
        sectors += sectors_of_warp(first, range.step, end - lane);
        lane = end;
    }
    add_sectors(in, *lanes.group, kind, sectors);
}

bool covers(const Slot& slot, const Range& range) {
    return range.low >= slot.begin && range.high <= slot.end;
}

bool resolve_range(const Instruction& in, Lanes& lanes, const Range& range, Access& access) {
    const u64 alignment = in.access_bytes - 1u;
    if (!range.ordered || ((range.first | static_cast<u64>(range.step)) & alignment) != 0)
        return false;
    Group& group = *lanes.group;
    const auto inside = [&](u64 begin, u64 bytes) {
        return range.low >= begin && range.high <= begin + bytes;
    };
    const auto shared = reinterpret_cast<u64>(group.shared);
    switch (in.space) {
    case Space::shared:
        if (!inside(0, group.shared_bytes)) return false;
        access = from_base(lanes, range, shared + range.first, 0);
        return true;
    case Space::local:
        if (!inside(0, group.local_bytes)) return false;
        access = from_base(lanes, range,
                           reinterpret_cast<u64>(group.local) + group.local_bytes * lanes.low +
                               range.first,
                           static_cast<s64>(group.local_bytes));
        return true;
    case Space::parameter:
        return false;
    case Space::generic:
        if (inside(shared_window, group.shared_bytes)) {
            access = from_base(lanes, range, shared + range.first - shared_window, 0);
            return true;
        }
        break;
    case Space::global:
        break;
    }
    const Slot& slot = group.around->slots[in.slot];
    if (!covers(slot, range) && !(refill(in, lanes, range.low) && covers(slot, range)))
        return false;
    count_range(in, lanes, range, static_cast<u8>(slot.kind));
    access = from_base(lanes, range, range.first + static_cast<u64>(slot.shadow), 0);
    return true;
}

/// How many different values there are.
u32 distinct(const u64* sector, u32 count) {
    u32 changes = 0;
    u32 falls = 0, rises = 0;
    for (u32 i = 1; i < count; ++i) {
        changes += sector[i] != sector[i - 1];
        falls += sector[i] < sector[i - 1];
        rises += sector[i] > sector[i - 1];
    }
    if (falls == 0 || rises == 0) return changes + 1;
    // Every lane looks at all lanes in front of it: more comparisons than a hash table needs, but
    // they vectorise. Nothing equals the ones in front of the first lane.
    u64 padded[2 * warp_lanes];
    u64 repeated[warp_lanes] = {};
    std::fill_n(padded, warp_lanes, ~u64{0});
    std::copy_n(sector, count, padded + warp_lanes);
    std::fill_n(padded + warp_lanes + count, warp_lanes - count, u64{0});
    for (u32 distance = 1; distance < warp_lanes; ++distance)
        for (u32 i = 0; i < warp_lanes; ++i)
            repeated[i] |= padded[warp_lanes + i] == padded[warp_lanes + i - distance] ? 1u : 0u;
    u32 found = 0;
    for (u32 i = 0; i < count; ++i)
        found += repeated[i] == 0;
    return found;
}

void count_warp(const Instruction& in, Group& group, const u64* address, const u8* kind,
                const u32* lane, u32 count) {
    for (u8 wanted = 0; wanted < memory_kinds; ++wanted) {
        u64 sector[warp_lanes];
        u32 found = 0;
        for (u32 i = 0; i < count; ++i)
            if (kind[lane[i]] == wanted) sector[found++] = address[lane[i]] >> 5;
        if (found != 0) add_sectors(in, group, wanted, distinct(sector, found));
        if (found == count) return;
    }
}

void count_lanes(const Instruction& in, const Lanes& lanes, const u64* address, const u8* kind) {
    u32 lane = lanes.low;
    while (lane < lanes.high) {
        const u32 end_of_warp = (lane | (warp_lanes - 1)) + 1;
        u32 members[warp_lanes];
        u32 count = 0;
        for (; lane < lanes.high && lane < end_of_warp; ++lane)
            if (lanes.has(lane)) members[count++] = lane;
        if (count != 0) count_warp(in, *lanes.group, address, kind, members, count);
    }
}

Access resolve_lanes(const Instruction& in, Lanes& lanes, const u64* address,
                     std::byte** pointers) {
    u8 kind[group_lanes];
    const Slot* slot = lanes.group->around->slots.data() + in.slot;
    const bool windowed = in.space == Space::global || in.space == Space::generic;
    const u64 alignment = in.access_bytes - 1u;
    for (u32 i = lanes.low; i < lanes.high; ++i) {
        if (!lanes.has(i)) continue;
        const u64 a = address[i];
        const bool known = windowed && a >= slot->begin && a < slot->end &&
                           slot->end - a >= in.access_bytes && (a & alignment) == 0;
        if (known) {
            pointers[i] = reinterpret_cast<std::byte*>(a + static_cast<u64>(slot->shadow));
            kind[i] = static_cast<u8>(slot->kind);
        } else {
            pointers[i] = find_place(in, lanes, i, a, kind[i]);
        }
    }
    if (windowed) count_lanes(in, lanes, address, kind);
    return {nullptr, 0, pointers};
}

template <class A> Access resolve_as(const Instruction& in, Lanes& lanes, std::byte** pointers) {
    const A* a = array_of<A>(lanes, in.operand[in.writes]);
    const A offset = static_cast<A>(in.immediate);
    if (lanes.mask == nullptr) {
        const u32 low = lanes.low, high = lanes.high;
        const A step = high - low > 1 ? static_cast<A>(a[low + 1] - a[low]) : A{0};
        A wrong = static_cast<A>(a[high - 1] - a[low]) ^ static_cast<A>(step * (high - low - 1));
        if (wrong == 0)
            for (u32 i = low + 1; i < high; ++i)
                wrong |= static_cast<A>(a[i] - a[i - 1]) ^ step;
        Access access;
        const Range range = range_of(in, lanes, static_cast<A>(a[low] + offset),
                                     static_cast<std::make_signed_t<A>>(step));
        if (wrong == 0 && resolve_range(in, lanes, range, access)) return access;
    }
    u64 address[group_lanes];
    for (u32 i = lanes.low; i < lanes.high; ++i)
        address[i] = static_cast<A>(a[i] + offset);
    return resolve_lanes(in, lanes, address, pointers);
}

template <class T> T read(const std::byte* from) {
    T value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}

template <class T> void write(std::byte* to, T value) {
    __builtin_memcpy(to, &value, sizeof value);
}

template <class T, class D, u32 count> void load(const Instruction& in, Lanes& lanes) {
    std::byte* pointers[group_lanes];
    const Access access = resolve(in, lanes, pointers);
    for (u32 k = 0; k < count; ++k) {
        D* d = array_of<D>(lanes, in.operand[k]);
        const u32 high = lanes.high;
        if (access.pointers != nullptr) {
            for (u32 i = lanes.low; i < high; ++i)
                if (lanes.has(i))
                    d[i] = static_cast<D>(read<T>(access.pointers[i] + k * sizeof(T)));
            continue;
        }
        const std::byte* base = access.base + k * sizeof(T);
        if (access.stride == 0) {
            const D value = static_cast<D>(read<T>(base));
            for (u32 i = lanes.low; i < high; ++i)
                d[i] = value;
        } else if (access.stride == s64{sizeof(T) * count}) {
#pragma GCC ivdep
            for (u32 i = lanes.low; i < high; ++i)
                d[i] = static_cast<D>(read<T>(base + std::size_t{i} * (sizeof(T) * count)));
        } else {
            for (u32 i = lanes.low; i < high; ++i)
                d[i] = static_cast<D>(read<T>(base + i * access.stride));
        }
    }
}

template <class T, class S, u32 count> void store(const Instruction& in, Lanes& lanes) {
    std::byte* pointers[group_lanes];
    const Access access = resolve(in, lanes, pointers);
    for (u32 k = 0; k < count; ++k) {
        const S* s = array_of<S>(lanes, in.operand[1 + k]);
        const u32 high = lanes.high;
        if (access.pointers != nullptr) {
            for (u32 i = lanes.low; i < high; ++i)
                if (lanes.has(i)) write(access.pointers[i] + k * sizeof(T), static_cast<T>(s[i]));
            continue;
        }
        std::byte* base = access.base + k * sizeof(T);
        if (access.stride == s64{sizeof(T) * count}) {
#pragma GCC ivdep
            for (u32 i = lanes.low; i < high; ++i)
                write(base + std::size_t{i} * (sizeof(T) * count), static_cast<T>(s[i]));
        } else {
            for (u32 i = lanes.low; i < high; ++i)
                write(base + i * access.stride, static_cast<T>(s[i]));
        }
    }
}

template <class T, class D> Handler loads(unsigned count) {
    switch (count) {
    case 1:
        return load<T, D, 1>;
    case 2:
        return load<T, D, 2>;
    case 4:
        return load<T, D, 4>;
    case 8:
        return load<T, D, 8>;
    default:
        return nullptr;
    }
}
template <class T, class S> Handler stores(unsigned count) {
    switch (count) {
    case 1:
        return store<T, S, 1>;
    case 2:
        return store<T, S, 2>;
    case 4:
        return store<T, S, 4>;
    case 8:
        return store<T, S, 8>;
    default:
        return nullptr;
    }
}

template <class T> Handler load_into(unsigned width, unsigned count) {
    if constexpr (sizeof(T) <= 2)
        if (width == 2) return loads<T, u16>(count);
    if constexpr (sizeof(T) <= 4)
        if (width == 4) return loads<T, u32>(count);
    return width == 8 ? loads<T, u64>(count) : nullptr;
}
template <class T> Handler store_from(unsigned width, unsigned count) {
    if constexpr (sizeof(T) <= 2)
        if (width == 2) return stores<T, u16>(count);
    if constexpr (sizeof(T) <= 4)
        if (width == 4) return stores<T, u32>(count);
    return width == 8 ? stores<T, u64>(count) : nullptr;
}

} // namespace

Access resolve(const Instruction& in, Lanes& lanes, std::byte** pointers) {
    return in.width[in.writes] == 8 ? resolve_as<u64>(in, lanes, pointers)
                                    : resolve_as<u32>(in, lanes, pointers);
}

Handler load_handler(Type type, unsigned width, unsigned count) {
    switch (type) {
    case Type::s8:
        return load_into<s8>(width, count);
    case Type::s16:
        return load_into<s16>(width, count);
    case Type::s32:
        return load_into<s32>(width, count);
    default:
        break;
    }
    switch (size_of(type)) {
    case 1:
        return load_into<u8>(width, count);
    case 2:
        return load_into<u16>(width, count);
    case 4:
        return load_into<u32>(width, count);
    case 8:
        return load_into<u64>(width, count);
    default:
        return nullptr;
    }
}

Handler store_handler(Type type, unsigned width, unsigned count) {
    switch (size_of(type)) {
    case 1:
        return store_from<u8>(width, count);
    case 2:
        return store_from<u16>(width, count);
    case 4:
        return store_from<u32>(width, count);
    case 8:
        return store_from<u64>(width, count);
    default:
        return nullptr;
    }
}

} // namespace sim::ptx::SIM_PTX_SET
