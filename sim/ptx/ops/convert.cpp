#include "ptx/ops/each.hpp"

#include <limits>
#include <type_traits>

namespace sim::ptx::SIM_PTX_SET {
namespace {

/// The smallest register that holds a T: there are none of 8 bits.
template <class T>
using Register =
    std::conditional_t<sizeof(T) <= 2, u16, std::conditional_t<sizeof(T) == 4, u32, u64>>;

template <class T> Register<T> widened(T value) {
    using Extended =
        std::conditional_t<std::is_signed_v<T>, std::make_signed_t<Register<T>>, Register<T>>;
    return static_cast<Register<T>>(static_cast<Extended>(value));
}

template <class To, class From> struct IntegerToInteger {
    static Register<To> apply(Register<From> value) {
        return widened(static_cast<To>(static_cast<From>(value)));
    }
};

template <Rounding rounding> f32 integral(f32 value) {
    switch (rounding) {
    case Rounding::down:
        return __builtin_floorf(value);
    case Rounding::up:
        return __builtin_ceilf(value);
    case Rounding::zero:
        return __builtin_truncf(value);
    default:
        return __builtin_rintf(value);
    }
}
template <Rounding rounding> f64 integral(f64 value) {
    switch (rounding) {
    case Rounding::down:
        return __builtin_floor(value);
    case Rounding::up:
        return __builtin_ceil(value);
    case Rounding::zero:
        return __builtin_trunc(value);
    default:
        return __builtin_rint(value);
    }
}

/// Out of range gives the nearest value in range, NaN gives 0.
template <class To, class From, Rounding rounding> struct FloatToInteger {
    static Register<To> apply(From value) {
        // 2^63 and the like are exact where the largest integer is not
        constexpr From limit =
            static_cast<From>(u64{1} << (std::numeric_limits<To>::digits - 1)) * 2;
        constexpr From least = std::is_signed_v<To> ? -limit : From{0};
        const From whole = integral<rounding>(value);
        if (whole != whole) return 0;
        if (whole >= limit) return widened(std::numeric_limits<To>::max());
        if (whole <= least) return widened(std::numeric_limits<To>::min());
        return widened(static_cast<To>(whole));
    }
};

struct HalfSource {
    static f32 load(u16 value) { return from_half(value); }
};
struct BfloatSource {
    static f32 load(u16 value) { return from_bfloat(value); }
};

template <class Source, class F> struct After {
    static auto apply(u16 value) { return F::apply(Source::load(value)); }
};

template <class To, class From> struct IntegerToFloat {
    static To apply(Register<From> value) { return static_cast<To>(static_cast<From>(value)); }
};

struct SingleToDouble {
    static f64 apply(f32 value) { return value; }
};
struct DoubleToSingle {
    static f32 apply(f64 value) { return canonical(static_cast<f32>(value)); }
};
struct Same {
    template <class T> static T apply(T value) { return value; }
};
template <Rounding rounding> struct Integral {
    template <class T> static T apply(T value) { return integral<rounding>(value); }
};

struct HalfFormat {
    static u16 store(f32 value) { return to_half(value); }
    static f32 load(u16 value) { return from_half(value); }
};
struct BfloatFormat {
    static u16 store(f32 value) { return to_bfloat(value); }
    static f32 load(u16 value) { return from_bfloat(value); }
};

/// The neighbour of a 16-bit number, away from or towards zero, is its pattern plus or minus one.
template <class Format, Rounding rounding> u16 directed(f32 value) {
    const u16 near = Format::store(value);
    const f32 back = Format::load(near);
    if (rounding == Rounding::nearest || back == value || value != value) return near;
    const bool too_high = back > value;
    const bool must_fall = rounding == Rounding::down || (rounding == Rounding::zero && value > 0);
    const bool must_rise = rounding == Rounding::up || (rounding == Rounding::zero && value < 0);
    const bool negative = (near & 0x8000) != 0;
    if (too_high && must_fall)
        return static_cast<u16>(near == 0 ? 0x8001 : negative ? near + 1 : near - 1);
    if (!too_high && must_rise)
        return static_cast<u16>(near == 0x8000 ? 0x0001 : negative ? near - 1 : near + 1);
    return near;
}

template <class Format, Rounding rounding> struct ToHalf {
    static u16 apply(f32 value) { return directed<Format, rounding>(value); }
    static u16 apply(f64 value) { return directed<Format, rounding>(round_to_odd(value)); }
};
template <class Format, class From> struct IntegerToHalf {
    static u16 apply(Register<From> value) {
        return Format::store(round_to_odd(static_cast<f64>(static_cast<From>(value))));
    }
};

/// Registers wider than their type, and saturation: rare, so one loop for all of them.
s64 read_as(Type type, u64 bits) {
    switch (type) {
    case Type::s8:
        return static_cast<s8>(bits);
    case Type::s16:
        return static_cast<s16>(bits);
    case Type::s32:
        return static_cast<s32>(bits);
    case Type::u8:
    case Type::b8:
        return static_cast<u8>(bits);
    case Type::u16:
    case Type::b16:
        return static_cast<u16>(bits);
    case Type::u32:
    case Type::b32:
        return static_cast<u32>(bits);
    default:
        return static_cast<s64>(bits);
    }
}

s64 clamped(Type to, Type from, s64 value) {
    const bool huge = from == Type::u64 && value < 0;
    switch (to) {
    case Type::u8:
        return huge || value > 0xff ? 0xff : value < 0 ? 0 : value;
    case Type::u16:
        return huge || value > 0xffff ? 0xffff : value < 0 ? 0 : value;
    case Type::u32:
        return huge || value > 0xffffffff ? 0xffffffff : value < 0 ? 0 : value;
    case Type::u64:
        return value < 0 && !huge ? 0 : value;
    case Type::s8:
        return huge || value > 127 ? 127 : value < -128 ? -128 : value;
    case Type::s16:
        return huge || value > 32767 ? 32767 : value < -32768 ? -32768 : value;
    case Type::s32:
        return huge || value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value;
    default:
        return huge ? INT64_MAX : value;
    }
}

template <class D, class S> void any_integer(const Instruction& in, Lanes& lanes) {
    D* d = array_of<D>(lanes, in.operand[0]);
    const S* s = array_of<S>(lanes, in.operand[1]);
    const auto to = static_cast<Type>(in.immediate2 & 0xff);
    const auto from = static_cast<Type>(in.immediate2 >> 8 & 0xff);
    const bool saturate = (in.immediate2 >> 16) != 0;
    for (u32 i = lanes.low; i < lanes.high; ++i) {
        const s64 value = read_as(from, s[i]);
        d[i] = static_cast<D>(
            read_as(to, static_cast<u64>(saturate ? clamped(to, from, value) : value)));
    }
}

template <class D> Handler any_integer_from(unsigned width) {
    return width == 2   ? any_integer<D, u16>
           : width == 4 ? any_integer<D, u32>
                        : any_integer<D, u64>;
}

Handler any_integer_loop(const Conversion& c) {
    return c.to_width == 2   ? any_integer_from<u16>(c.from_width)
           : c.to_width == 4 ? any_integer_from<u32>(c.from_width)
                             : any_integer_from<u64>(c.from_width);
}

template <class To> Handler integer_from(Type from) {
    const auto loop = []<class From>(From) -> Handler {
        return each<IntegerToInteger<To, From>, Register<To>, Register<From>>;
    };
    switch (from) {
    case Type::u8:
        return loop(u8{});
    case Type::s8:
        return loop(s8{});
    case Type::u16:
        return loop(u16{});
    case Type::s16:
        return loop(s16{});
    case Type::u32:
        return loop(u32{});
    case Type::s32:
        return loop(s32{});
    case Type::u64:
        return loop(u64{});
    case Type::s64:
        return loop(s64{});
    default:
        return nullptr;
    }
}

template <class To, Rounding rounding> Handler integer_from_float(Type from) {
    using Single = FloatToInteger<To, f32, rounding>;
    switch (from) {
    case Type::f32:
        return each<Single, Register<To>, f32>;
    case Type::f64:
        return each<FloatToInteger<To, f64, rounding>, Register<To>, f64>;
    case Type::f16:
        return each<After<HalfSource, Single>, Register<To>, u16>;
    case Type::bf16:
        return each<After<BfloatSource, Single>, Register<To>, u16>;
    default:
        return nullptr;
    }
}

template <class To> Handler to_integer(const Conversion& c) {
    if (is_integer(c.from)) return integer_from<To>(c.from);
    switch (c.rounding) {
    case Rounding::nearest:
        return integer_from_float<To, Rounding::nearest>(c.from);
    case Rounding::zero:
        return integer_from_float<To, Rounding::zero>(c.from);
    case Rounding::down:
        return integer_from_float<To, Rounding::down>(c.from);
    case Rounding::up:
        return integer_from_float<To, Rounding::up>(c.from);
    default:
        return nullptr;
    }
}

/// `Make<From>` is the conversion from an integer of that type.
template <template <class> class Make, class D> Handler from_integer(Type from) {
    switch (from) {
    case Type::u8:
        return each<Make<u8>, D, u16>;
    case Type::s8:
        return each<Make<s8>, D, u16>;
    case Type::u16:
        return each<Make<u16>, D, u16>;
    case Type::s16:
        return each<Make<s16>, D, u16>;
    case Type::u32:
        return each<Make<u32>, D, u32>;
    case Type::s32:
        return each<Make<s32>, D, u32>;
    case Type::u64:
        return each<Make<u64>, D, u64>;
    case Type::s64:
        return each<Make<s64>, D, u64>;
    default:
        return nullptr;
    }
}
template <class From> using ToSingle = IntegerToFloat<f32, From>;
template <class From> using ToDouble = IntegerToFloat<f64, From>;
template <class From> using ToHalfInteger = IntegerToHalf<HalfFormat, From>;
template <class From> using ToBfloatInteger = IntegerToHalf<BfloatFormat, From>;

template <class T> Handler integral_loop(Rounding rounding) {
    switch (rounding) {
    case Rounding::nearest:
        return each1<Integral<Rounding::nearest>, T>;
    case Rounding::zero:
        return each1<Integral<Rounding::zero>, T>;
    case Rounding::down:
        return each1<Integral<Rounding::down>, T>;
    case Rounding::up:
        return each1<Integral<Rounding::up>, T>;
    default:
        return nullptr;
    }
}

Handler to_single(const Conversion& c) {
    switch (c.from) {
    case Type::f32:
        return c.to_integral ? integral_loop<f32>(c.rounding) : each1<Same, f32>;
    case Type::f64:
        return each<DoubleToSingle, f32, f64>;
    case Type::f16:
        return each<After<HalfSource, Same>, f32, u16>;
    case Type::bf16:
        return each<After<BfloatSource, Same>, f32, u16>;
    default:
        return from_integer<ToSingle, f32>(c.from);
    }
}

Handler to_double(const Conversion& c) {
    switch (c.from) {
    case Type::f64:
        return c.to_integral ? integral_loop<f64>(c.rounding) : each1<Same, f64>;
    case Type::f32:
        return each<SingleToDouble, f64, f32>;
    case Type::f16:
        return each<After<HalfSource, SingleToDouble>, f64, u16>;
    case Type::bf16:
        return each<After<BfloatSource, SingleToDouble>, f64, u16>;
    default:
        return from_integer<ToDouble, f64>(c.from);
    }
}

template <class Format, class Source, Rounding rounding> struct HalfIntegral {
    static u16 apply(u16 value) { return Format::store(integral<rounding>(Source::load(value))); }
};

template <class Format, Rounding rounding> Handler to_half_rounded(const Conversion& c) {
    using ToThis = ToHalf<Format, rounding>;
    switch (c.from) {
    case Type::f32:
        return each<ToThis, u16, f32>;
    case Type::f64:
        return each<ToThis, u16, f64>;
    case Type::f16:
        return c.to_integral ? each1<HalfIntegral<Format, HalfSource, rounding>, u16>
                             : each<After<HalfSource, ToThis>, u16, u16>;
    case Type::bf16:
        return c.to_integral ? each1<HalfIntegral<Format, BfloatSource, rounding>, u16>
                             : each<After<BfloatSource, ToThis>, u16, u16>;
    default:
        return nullptr;
    }
}

template <class Format, template <class> class Make> Handler to_half_loop(const Conversion& c) {
    if (is_integer(c.from)) return from_integer<Make, u16>(c.from);
    switch (c.rounding) {
    case Rounding::zero:
        return to_half_rounded<Format, Rounding::zero>(c);
    case Rounding::down:
        return to_half_rounded<Format, Rounding::down>(c);
    case Rounding::up:
        return to_half_rounded<Format, Rounding::up>(c);
    default:
        return to_half_rounded<Format, Rounding::nearest>(c);
    }
}

unsigned natural_width(Type type) {
    return size_of(type) < 2 ? 2 : size_of(type);
}

} // namespace

Handler convert_handler(const Conversion& c) {
    const bool natural = c.to_width == natural_width(c.to) && c.from_width == natural_width(c.from);
    if (is_integer(c.to) && is_integer(c.from) && (!natural || c.saturate))
        return any_integer_loop(c);
    if (!natural) return nullptr;
    switch (c.to) {
    case Type::u8:
        return to_integer<u8>(c);
    case Type::s8:
        return to_integer<s8>(c);
    case Type::u16:
        return to_integer<u16>(c);
    case Type::s16:
        return to_integer<s16>(c);
    case Type::u32:
        return to_integer<u32>(c);
    case Type::s32:
        return to_integer<s32>(c);
    case Type::u64:
        return to_integer<u64>(c);
    case Type::s64:
        return to_integer<s64>(c);
    case Type::f32:
        return to_single(c);
    case Type::f64:
        return to_double(c);
    case Type::f16:
        return to_half_loop<HalfFormat, ToHalfInteger>(c);
    case Type::bf16:
        return to_half_loop<BfloatFormat, ToBfloatInteger>(c);
    default:
        return nullptr;
    }
}

} // namespace sim::ptx::SIM_PTX_SET
