// Loops over lanes. Included by files that are compiled once for every instruction set, each time
// with another SIM_PTX_SET; everything here lives in that namespace, so that the linker never
// takes a function compiled for one set in place of another's.
#pragma once

#include "ptx/ops/operations.hpp"

#include <cmath>
#include <cstring>

#ifndef SIM_PTX_SET
#error "compile with -DSIM_PTX_SET=<name of the instruction set>"
#endif

namespace sim::ptx::SIM_PTX_SET {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using f32 = float;
using f64 = double;

template <class To, class From> inline To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

/// `operand[0]` is written, the following ones are read. An array is either the same as another or
/// apart from it, so lanes never depend on one another.
template <class F, class D, class... S, std::size_t... I>
inline void each_lane(const Instruction& in, Lanes& lanes, std::index_sequence<I...>) {
    D* d = array_of<D>(lanes, in.operand[0]);
    [[maybe_unused]] const auto sources = [&]<class... P>(P*... p) {
        const u32 high = lanes.high;
#pragma GCC ivdep
        for (u32 i = lanes.low; i < high; ++i)
            d[i] = F::apply(p[i]...);
    };
    sources(static_cast<const S*>(array_of<S>(lanes, in.operand[1 + I]))...);
}

template <class F, class D, class... S> void each(const Instruction& in, Lanes& lanes) {
    each_lane<F, D, S...>(in, lanes, std::make_index_sequence<sizeof...(S)>());
}

template <class F, class T> void each1(const Instruction& in, Lanes& lanes) {
    each<F, T, T>(in, lanes);
}
template <class F, class T> void each2(const Instruction& in, Lanes& lanes) {
    each<F, T, T, T>(in, lanes);
}
template <class F, class T> void each3(const Instruction& in, Lanes& lanes) {
    each<F, T, T, T, T>(in, lanes);
}

/// 16-bit floating point as integers: conversions that vectorise everywhere.
inline f32 from_half(u16 half) {
    const u32 sign = u32{half & 0x8000u} << 16;
    const u32 rest = half & 0x7fffu;
    const u32 normal = (rest << 13) + ((127u - 15u) << 23);
    const u32 special = (rest << 13) | 0x7f800000u;
    const u32 small = bits_as<u32>(static_cast<f32>(static_cast<s32>(rest)) * 0x1p-24f);
    const u32 magnitude = rest >= 0x7c00u ? special : rest < 0x0400u ? small : normal;
    return bits_as<f32>(sign | magnitude);
}

/// Rounds to nearest even. NaN becomes 0x7fff, as PTX has it.
inline u16 to_half(f32 value) {
    const u32 bits = bits_as<u32>(value);
    const u32 sign = (bits >> 16) & 0x8000u;
    const u32 magnitude = bits & 0x7fffffffu;
    // subnormal: adding 0.5 puts the last bit of a half at the last bit of the sum
    const u32 small = bits_as<u32>(bits_as<f32>(magnitude) + 0.5f) - bits_as<u32>(0.5f);
    const u32 odd = (magnitude >> 13) & 1;
    const u32 normal = (magnitude - ((127u - 15u) << 23) + 0xfffu + odd) >> 13;
    const u32 rounded = magnitude < 0x38800000u ? small : normal;
    const u32 finite = magnitude >= 0x477ff000u ? 0x7c00u : rounded;
    return static_cast<u16>(magnitude > 0x7f800000u ? 0x7fffu : (finite | sign));
}

inline f32 from_bfloat(u16 value) {
    return bits_as<f32>(u32{value} << 16);
}

inline u16 to_bfloat(f32 value) {
    const u32 bits = bits_as<u32>(value);
    const u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    return static_cast<u16>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
}

/// A double rounded to a float so that rounding that once more is as good as rounding once: what is
/// cut off leaves an odd last bit.
inline f32 round_to_odd(f64 value) {
    const f32 near = static_cast<f32>(value);
    const f64 back = near;
    if (back == value || near != near) return near;
    const u32 bits = bits_as<u32>(near);
    if ((bits & 1) != 0) return near;
    const bool too_large = __builtin_fabs(back) > __builtin_fabs(value);
    return bits_as<f32>(too_large ? bits - 1 : bits | 1);
}

/// The NaN that single-precision instructions give.
inline f32 canonical(f32 value) {
    return value != value ? bits_as<f32>(0x7fffffffu) : value;
}
inline f64 canonical(f64 value) {
    return value;
}

Handler integer_handler(Op, Type);
Handler carry_handler(Op, Type);
Handler bit_handler(Op, Type);
Handler float_handler(Op, Type);
Handler half_handler(Op, Type);
Handler move_handler(Op, Type);
Handler compare_handler(Comparison, Type);
Handler convert_handler(const Conversion&);
Handler load_handler(Type, unsigned, unsigned);
Handler store_handler(Type, unsigned, unsigned);
Handler shuffle_handler(Shuffle);
Access resolve(const Instruction&, Lanes&, std::byte**);
void summarise(Mask&);
void split(const Mask&, const std::uint8_t*, bool, Mask&);
void keep_inactive(std::byte*, const std::byte*, unsigned, const std::uint8_t*, std::uint32_t,
                   std::uint32_t);

} // namespace sim::ptx::SIM_PTX_SET
