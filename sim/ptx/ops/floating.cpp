// Single and double precision. Files here are compiled without contraction, so every operation
// rounds once, as PTX says.
#include "ptx/ops/each.hpp"

namespace sim::ptx::SIM_PTX_SET {
namespace {

template <class T> inline constexpr T smallest_normal = static_cast<T>(0x1p-1022);
template <> inline constexpr f32 smallest_normal<f32> = 0x1p-126f;

struct Add {
    template <class T> static T apply(T a, T b) { return canonical(a + b); }
};
struct Sub {
    template <class T> static T apply(T a, T b) { return canonical(a - b); }
};
struct Mul {
    template <class T> static T apply(T a, T b) { return canonical(a * b); }
};
struct Div {
    template <class T> static T apply(T a, T b) { return canonical(a / b); }
};
struct Fma {
    static f32 apply(f32 a, f32 b, f32 c) { return canonical(__builtin_fmaf(a, b, c)); }
    static f64 apply(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
};
struct Rcp {
    template <class T> static T apply(T a) { return canonical(T{1} / a); }
};
struct Sqrt {
    static f32 apply(f32 a) { return canonical(__builtin_sqrtf(a)); }
    static f64 apply(f64 a) { return __builtin_sqrt(a); }
};
struct Rsqrt {
    static f32 apply(f32 a) { return canonical(static_cast<f32>(1.0 / __builtin_sqrt(f64{a}))); }
    static f64 apply(f64 a) { return 1.0 / __builtin_sqrt(a); }
};
struct Ex2 {
    static f32 apply(f32 a) { return canonical(__builtin_exp2f(a)); }
};
struct Lg2 {
    static f32 apply(f32 a) { return canonical(__builtin_log2f(a)); }
};
struct Sin {
    static f32 apply(f32 a) { return canonical(__builtin_sinf(a)); }
};
struct Cos {
    static f32 apply(f32 a) { return canonical(__builtin_cosf(a)); }
};
struct Tanh {
    static f32 apply(f32 a) { return canonical(__builtin_tanhf(a)); }
};

struct Abs {
    static f32 apply(f32 a) { return bits_as<f32>(bits_as<u32>(a) & 0x7fffffffu); }
    static f64 apply(f64 a) { return bits_as<f64>(bits_as<u64>(a) & ~(u64{1} << 63)); }
};
struct Neg {
    static f32 apply(f32 a) { return bits_as<f32>(bits_as<u32>(a) ^ 0x80000000u); }
    static f64 apply(f64 a) { return bits_as<f64>(bits_as<u64>(a) ^ u64{1} << 63); }
};
/// The magnitude of b with the sign of a, in this order.
struct Copysign {
    static f32 apply(f32 a, f32 b) {
        return bits_as<f32>((bits_as<u32>(b) & 0x7fffffffu) | (bits_as<u32>(a) & 0x80000000u));
    }
    static f64 apply(f64 a, f64 b) {
        constexpr u64 sign = u64{1} << 63;
        return bits_as<f64>((bits_as<u64>(b) & ~sign) | (bits_as<u64>(a) & sign));
    }
};

// A number wins over NaN, and -0 counts as less than +0.
struct Min {
    static f32 apply(f32 a, f32 b) {
        const f32 zero = bits_as<f32>(bits_as<u32>(a) | bits_as<u32>(b));
        const f32 less = a < b || b != b ? a : b;
        return canonical(a == b ? zero : less);
    }
    static f64 apply(f64 a, f64 b) {
        const f64 zero = bits_as<f64>(bits_as<u64>(a) | bits_as<u64>(b));
        const f64 less = a < b || b != b ? a : b;
        return a == b ? zero : less;
    }
};
struct Max {
    static f32 apply(f32 a, f32 b) {
        const f32 zero = bits_as<f32>(bits_as<u32>(a) & bits_as<u32>(b));
        const f32 more = a > b || b != b ? a : b;
        return canonical(a == b ? zero : more);
    }
    static f64 apply(f64 a, f64 b) {
        const f64 zero = bits_as<f64>(bits_as<u64>(a) & bits_as<u64>(b));
        const f64 more = a > b || b != b ? a : b;
        return a == b ? zero : more;
    }
};
template <class F> struct OrNan {
    template <class T> static T apply(T a, T b) {
        return canonical(a != a ? a : b != b ? b : F::apply(a, b));
    }
};

struct Saturate {
    template <class T> static T apply(T a) {
        const T above = a > T{0} ? a : T{0}; // NaN becomes +0
        return above < T{1} ? above : T{1};
    }
};
struct Flush {
    template <class T> static T apply(T a) {
        const T zero = Copysign::apply(a, T{0});
        return Abs::apply(a) < smallest_normal<T> ? zero : a;
    }
};

enum class Property : u8 { finite, infinite, number, not_a_number, normal, subnormal };

template <Property property> struct Testp {
    template <class T> static u8 apply(T a) {
        const T size = Abs::apply(a);
        constexpr T infinity = static_cast<T>(__builtin_inf());
        switch (property) {
        case Property::finite:
            return size < infinity;
        case Property::infinite:
            return size == infinity;
        case Property::number:
            return a == a;
        case Property::not_a_number:
            return a != a;
        case Property::normal:
            return size >= smallest_normal<T> && size < infinity;
        case Property::subnormal:
            return size < smallest_normal<T> && size > T{0};
        }
        return 0;
    }
};

template <class F> Handler one(Type type) {
    return type == Type::f32 ? each1<F, f32> : type == Type::f64 ? each1<F, f64> : nullptr;
}
template <class F> Handler two(Type type) {
    return type == Type::f32 ? each2<F, f32> : type == Type::f64 ? each2<F, f64> : nullptr;
}
template <class F> Handler three(Type type) {
    return type == Type::f32 ? each3<F, f32> : type == Type::f64 ? each3<F, f64> : nullptr;
}
template <class F> Handler single(Type type) {
    return type == Type::f32 ? each1<F, f32> : nullptr;
}
template <Property property> Handler test(Type type) {
    return type == Type::f32   ? each<Testp<property>, u8, f32>
           : type == Type::f64 ? each<Testp<property>, u8, f64>
                               : nullptr;
}

} // namespace

Handler float_handler(Op op, Type type) {
    switch (op) {
    case Op::add:
        return two<Add>(type);
    case Op::sub:
        return two<Sub>(type);
    case Op::mul:
        return two<Mul>(type);
    case Op::div:
        return two<Div>(type);
    case Op::fma:
        return three<Fma>(type);
    case Op::rcp:
        return one<Rcp>(type);
    case Op::sqrt:
        return one<Sqrt>(type);
    case Op::rsqrt:
        return one<Rsqrt>(type);
    case Op::ex2:
        return single<Ex2>(type);
    case Op::lg2:
        return single<Lg2>(type);
    case Op::sin:
        return single<Sin>(type);
    case Op::cos:
        return single<Cos>(type);
    case Op::tanh:
        return single<Tanh>(type);
    case Op::abs:
        return one<Abs>(type);
    case Op::neg:
        return one<Neg>(type);
    case Op::copysign:
        return two<Copysign>(type);
    case Op::min:
        return two<Min>(type);
    case Op::max:
        return two<Max>(type);
    case Op::min_nan:
        return two<OrNan<Min>>(type);
    case Op::max_nan:
        return two<OrNan<Max>>(type);
    case Op::saturate:
        return one<Saturate>(type);
    case Op::flush:
        return one<Flush>(type);
    case Op::testp_finite:
        return test<Property::finite>(type);
    case Op::testp_infinite:
        return test<Property::infinite>(type);
    case Op::testp_number:
        return test<Property::number>(type);
    case Op::testp_not_a_number:
        return test<Property::not_a_number>(type);
    case Op::testp_normal:
        return test<Property::normal>(type);
    case Op::testp_subnormal:
        return test<Property::subnormal>(type);
    default:
        return nullptr;
    }
}

} // namespace sim::ptx::SIM_PTX_SET
