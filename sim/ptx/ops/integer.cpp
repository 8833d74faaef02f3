#include "ptx/ops/each.hpp"

#include <type_traits>

namespace sim::ptx::SIM_PTX_SET {
namespace {

/// Twice as wide, same signedness.
template <class T>
using Wide = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, s32, u32>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, s64, u64>,
                       std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;
template <class T> using Bits = std::make_unsigned_t<T>;

// Sums and products are taken without sign, where overflow is defined; 16-bit ones as u32, since
// C++ would promote them to int.
template <class T> using Modular = std::conditional_t<sizeof(T) == 2, u32, Bits<T>>;

struct Add {
    template <class T> static T apply(T a, T b) {
        return static_cast<T>(static_cast<Modular<T>>(a) + static_cast<Modular<T>>(b));
    }
};
struct Sub {
    template <class T> static T apply(T a, T b) {
        return static_cast<T>(static_cast<Modular<T>>(a) - static_cast<Modular<T>>(b));
    }
};
struct Mul {
    template <class T> static T apply(T a, T b) {
        return static_cast<T>(static_cast<Modular<T>>(a) * static_cast<Modular<T>>(b));
    }
};
struct Mad {
    template <class T> static T apply(T a, T b, T c) {
        return static_cast<T>(static_cast<Modular<T>>(a) * static_cast<Modular<T>>(b) +
                              static_cast<Modular<T>>(c));
    }
};
template <class T> T high_product(T a, T b) {
    return static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> (sizeof(T) * 8));
}
struct MulHigh {
    template <class T> static T apply(T a, T b) { return high_product(a, b); }
};
struct MadHigh {
    template <class T> static T apply(T a, T b, T c) { return Add::apply(high_product(a, b), c); }
};
struct MulWide {
    template <class T> static Wide<T> apply(T a, T b) {
        return static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b);
    }
};
template <class T> struct MadWide {
    static Wide<T> apply(T a, T b, Wide<T> c) {
        return Add::apply(static_cast<Wide<T>>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)),
                          c);
    }
};

template <class T> s64 product24(T a, T b) {
    if constexpr (std::is_signed_v<T>)
        return s64{static_cast<s32>(static_cast<u32>(a) << 8) >> 8} *
               (static_cast<s32>(static_cast<u32>(b) << 8) >> 8);
    else
        return static_cast<s64>(u64{a & 0xffffffu} * (b & 0xffffffu));
}
struct Mul24Low {
    template <class T> static T apply(T a, T b) { return static_cast<T>(product24(a, b)); }
};
struct Mul24High {
    template <class T> static T apply(T a, T b) { return static_cast<T>(product24(a, b) >> 16); }
};
struct Mad24Low {
    template <class T> static T apply(T a, T b, T c) {
        return Add::apply(Mul24Low::apply(a, b), c);
    }
};
struct Mad24High {
    template <class T> static T apply(T a, T b, T c) {
        return Add::apply(Mul24High::apply(a, b), c);
    }
};

s32 clamp_s32(s64 value) {
    return static_cast<s32>(value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value);
}
struct AddSaturate {
    static s32 apply(s32 a, s32 b) { return clamp_s32(s64{a} + b); }
};
struct SubSaturate {
    static s32 apply(s32 a, s32 b) { return clamp_s32(s64{a} - b); }
};
struct MadHighSaturate {
    static s32 apply(s32 a, s32 b, s32 c) { return clamp_s32(s64{high_product(a, b)} + c); }
};
struct Sad {
    template <class T> static T apply(T a, T b, T c) {
        return Add::apply(a > b ? Sub::apply(a, b) : Sub::apply(b, a), c);
    }
};

// Division by zero is unspecified in PTX; GPUs give all ones.
struct Div {
    template <class T> static T apply(T a, T b) {
        if (b == 0) return static_cast<T>(-1);
        if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Sub::apply(T{0}, a);
        return static_cast<T>(a / b);
    }
};
struct Rem {
    template <class T> static T apply(T a, T b) {
        if (b == 0) return a;
        if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
        return static_cast<T>(a % b);
    }
};
struct Neg {
    template <class T> static T apply(T a) { return Sub::apply(T{0}, a); }
};
struct Abs {
    template <class T> static T apply(T a) { return a < 0 ? Sub::apply(T{0}, a) : a; }
};
struct Min {
    template <class T> static T apply(T a, T b) { return a < b ? a : b; }
};
struct Max {
    template <class T> static T apply(T a, T b) { return a > b ? a : b; }
};

template <class F, int sources, class T> Handler loop() {
    if constexpr (sources == 1)
        return each1<F, T>;
    else if constexpr (sources == 2)
        return each2<F, T>;
    else
        return each3<F, T>;
}

/// For what does not depend on the sign.
template <class F, int sources> Handler unsigned_loop(Type type) {
    switch (size_of(type)) {
    case 2:
        return loop<F, sources, u16>();
    case 4:
        return loop<F, sources, u32>();
    case 8:
        return loop<F, sources, u64>();
    default:
        return nullptr;
    }
}

template <class F, int sources> Handler signed_loop(Type type) {
    switch (type) {
    case Type::s16:
        return loop<F, sources, s16>();
    case Type::s32:
        return loop<F, sources, s32>();
    case Type::s64:
        return loop<F, sources, s64>();
    default:
        return unsigned_loop<F, sources>(type);
    }
}

template <class F> Handler wide_loop(Type type) {
    switch (type) {
    case Type::s16:
        return each<F, s32, s16, s16>;
    case Type::u16:
        return each<F, u32, u16, u16>;
    case Type::s32:
        return each<F, s64, s32, s32>;
    case Type::u32:
        return each<F, u64, u32, u32>;
    default:
        return nullptr;
    }
}

template <class T> Handler wide_sum() {
    return each<MadWide<T>, Wide<T>, T, T, Wide<T>>;
}

Handler wide_sum_loop(Type type) {
    switch (type) {
    case Type::s16:
        return wide_sum<s16>();
    case Type::u16:
        return wide_sum<u16>();
    case Type::s32:
        return wide_sum<s32>();
    case Type::u32:
        return wide_sum<u32>();
    default:
        return nullptr;
    }
}

template <class F, int sources> Handler loop_24(Type type) {
    return type == Type::s32   ? loop<F, sources, s32>()
           : type == Type::u32 ? loop<F, sources, u32>()
                               : nullptr;
}

} // namespace

Handler integer_handler(Op op, Type type) {
    switch (op) {
    case Op::add:
        return unsigned_loop<Add, 2>(type);
    case Op::sub:
        return unsigned_loop<Sub, 2>(type);
    case Op::mul:
        return unsigned_loop<Mul, 2>(type);
    case Op::mad:
        return unsigned_loop<Mad, 3>(type);
    case Op::mul_high:
        return signed_loop<MulHigh, 2>(type);
    case Op::mad_high:
        return signed_loop<MadHigh, 3>(type);
    case Op::mul_wide:
        return wide_loop<MulWide>(type);
    case Op::mad_wide:
        return wide_sum_loop(type);
    case Op::mul24_low:
        return loop_24<Mul24Low, 2>(type);
    case Op::mul24_high:
        return loop_24<Mul24High, 2>(type);
    case Op::mad24_low:
        return loop_24<Mad24Low, 3>(type);
    case Op::mad24_high:
        return loop_24<Mad24High, 3>(type);
    case Op::add_saturate:
        return type == Type::s32 ? each2<AddSaturate, s32> : nullptr;
    case Op::sub_saturate:
        return type == Type::s32 ? each2<SubSaturate, s32> : nullptr;
    case Op::mad_high_saturate:
        return type == Type::s32 ? each3<MadHighSaturate, s32> : nullptr;
    case Op::sad:
        return signed_loop<Sad, 3>(type);
    case Op::div:
        return signed_loop<Div, 2>(type);
    case Op::rem:
        return signed_loop<Rem, 2>(type);
    case Op::neg:
        return unsigned_loop<Neg, 1>(type);
    case Op::abs:
        return signed_loop<Abs, 1>(type);
    case Op::min:
        return signed_loop<Min, 2>(type);
    case Op::max:
        return signed_loop<Max, 2>(type);
    default:
        return nullptr;
    }
}

} // namespace sim::ptx::SIM_PTX_SET
