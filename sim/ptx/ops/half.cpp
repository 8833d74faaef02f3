// 16-bit floating point, alone and in pairs. Sums, products and quotients are exact enough in
// single precision that rounding twice gives what rounding once would; a fused multiply-add needs
// double precision.
#include "ptx/ops/each.hpp"

namespace sim::ptx::SIM_PTX_SET {
namespace {

struct Half {
    static f32 load(u16 a) { return from_half(a); }
    static u16 store(f32 a) { return to_half(a); }
    static constexpr u16 not_a_number = 0x7fff;
};
struct Bfloat {
    static f32 load(u16 a) { return from_bfloat(a); }
    static u16 store(f32 a) { return to_bfloat(a); }
    static constexpr u16 not_a_number = 0x7fff;
};

/// a*b + c, with what a double loses kept in its last bit.
inline f64 fused(f32 a, f32 b, f32 c) {
    const f64 product = f64{a} * b;
    const f64 sum = product + c;
    const f64 part = sum - product;
    const f64 lost = (product - (sum - part)) + (c - part);
    const u64 bits = bits_as<u64>(sum);
    if (lost == 0 || lost != lost || (bits & 1) != 0) return sum;
    const bool away = (lost > 0) == (sum > 0);
    return bits_as<f64>(away ? bits | 1 : bits - 1);
}

struct Add {
    static f32 apply(f32 a, f32 b) { return a + b; }
};
struct Sub {
    static f32 apply(f32 a, f32 b) { return a - b; }
};
struct Mul {
    static f32 apply(f32 a, f32 b) { return a * b; }
};
struct Fma {
    static f32 apply(f32 a, f32 b, f32 c) { return round_to_odd(fused(a, b, c)); }
};
struct FmaRelu {
    static f32 apply(f32 a, f32 b, f32 c) {
        const f32 value = Fma::apply(a, b, c);
        return value > 0 ? value : 0;
    }
};
struct Abs {
    static f32 apply(f32 a) { return __builtin_fabsf(a); }
};
struct Neg {
    static f32 apply(f32 a) { return -a; }
};
struct Min {
    static f32 apply(f32 a, f32 b) {
        if (a == b) return __builtin_signbit(a) ? a : b;
        return a < b || b != b ? a : b;
    }
};
struct Max {
    static f32 apply(f32 a, f32 b) {
        if (a == b) return __builtin_signbit(a) ? b : a;
        return a > b || b != b ? a : b;
    }
};
struct MinNan {
    static f32 apply(f32 a, f32 b) { return a != a ? a : b != b ? b : Min::apply(a, b); }
};
struct MaxNan {
    static f32 apply(f32 a, f32 b) { return a != a ? a : b != b ? b : Max::apply(a, b); }
};
struct Ex2 {
    static f32 apply(f32 a) { return __builtin_exp2f(a); }
};
struct Tanh {
    static f32 apply(f32 a) { return __builtin_tanhf(a); }
};
struct Saturate {
    static f32 apply(f32 a) { return a > 0 ? (a < 1 ? a : 1) : 0; }
};

template <class Format, class F> struct Alone {
    template <class... T> static u16 apply(T... value) {
        return Format::store(F::apply(Format::load(value)...));
    }
};
template <class Format, class F> struct Pair {
    template <class... T> static u32 apply(T... value) {
        const u16 low = Format::store(F::apply(Format::load(static_cast<u16>(value))...));
        const u16 high = Format::store(F::apply(Format::load(static_cast<u16>(value >> 16))...));
        return low | u32{high} << 16;
    }
};

template <class Format, class F, int sources> Handler alone() {
    if constexpr (sources == 1)
        return each1<Alone<Format, F>, u16>;
    else if constexpr (sources == 2)
        return each2<Alone<Format, F>, u16>;
    else
        return each3<Alone<Format, F>, u16>;
}
template <class Format, class F, int sources> Handler pair() {
    if constexpr (sources == 1)
        return each1<Pair<Format, F>, u32>;
    else if constexpr (sources == 2)
        return each2<Pair<Format, F>, u32>;
    else
        return each3<Pair<Format, F>, u32>;
}
template <class F, int sources> Handler pick(Type type) {
    switch (type) {
    case Type::f16:
        return alone<Half, F, sources>();
    case Type::bf16:
        return alone<Bfloat, F, sources>();
    case Type::f16x2:
        return pair<Half, F, sources>();
    case Type::bf16x2:
        return pair<Bfloat, F, sources>();
    default:
        return nullptr;
    }
}

} // namespace

Handler half_handler(Op op, Type type) {
    switch (op) {
    case Op::add:
        return pick<Add, 2>(type);
    case Op::sub:
        return pick<Sub, 2>(type);
    case Op::mul:
        return pick<Mul, 2>(type);
    case Op::fma:
        return pick<Fma, 3>(type);
    case Op::fma_relu:
        return pick<FmaRelu, 3>(type);
    case Op::abs:
        return pick<Abs, 1>(type);
    case Op::neg:
        return pick<Neg, 1>(type);
    case Op::min:
        return pick<Min, 2>(type);
    case Op::max:
        return pick<Max, 2>(type);
    case Op::min_nan:
        return pick<MinNan, 2>(type);
    case Op::max_nan:
        return pick<MaxNan, 2>(type);
    case Op::ex2:
        return pick<Ex2, 1>(type);
    case Op::tanh:
        return pick<Tanh, 1>(type);
    case Op::saturate:
        return pick<Saturate, 1>(type);
    default:
        return nullptr;
    }
}

} // namespace sim::ptx::SIM_PTX_SET
