#include "ptx/ops/each.hpp"

namespace sim::ptx::SIM_PTX_SET {
namespace {

// Every comparison with a NaN is false, unless its name ends with u: then it is true.
template <Comparison comparison> struct Compare {
    template <class T> static u8 apply(T a, T b) {
        switch (comparison) {
        case Comparison::eq:
            return a == b;
        case Comparison::ne:
            return (a < b) | (a > b);
        case Comparison::lt:
            return a < b;
        case Comparison::le:
            return a <= b;
        case Comparison::gt:
            return a > b;
        case Comparison::ge:
            return a >= b;
        case Comparison::equ:
            return !((a < b) | (a > b));
        case Comparison::neu:
            return !(a == b);
        case Comparison::ltu:
            return !(a >= b);
        case Comparison::leu:
            return !(a > b);
        case Comparison::gtu:
            return !(a <= b);
        case Comparison::geu:
            return !(a < b);
        case Comparison::num:
            return (a == a) & (b == b);
        case Comparison::nan:
            return (a != a) | (b != b);
        }
        return 0;
    }
};

template <Comparison comparison> struct CompareHalf {
    static u8 apply(u16 a, u16 b) { return Compare<comparison>::apply(from_half(a), from_half(b)); }
};
template <Comparison comparison> struct CompareBfloat {
    static u8 apply(u16 a, u16 b) {
        return Compare<comparison>::apply(from_bfloat(a), from_bfloat(b));
    }
};

template <Comparison c> Handler floats(Type type) {
    switch (type) {
    case Type::f32:
        return each<Compare<c>, u8, f32, f32>;
    case Type::f64:
        return each<Compare<c>, u8, f64, f64>;
    case Type::f16:
        return each<CompareHalf<c>, u8, u16, u16>;
    case Type::bf16:
        return each<CompareBfloat<c>, u8, u16, u16>;
    default:
        return nullptr;
    }
}

template <Comparison c> Handler all(Type type) {
    switch (type) {
    case Type::s16:
        return each<Compare<c>, u8, s16, s16>;
    case Type::s32:
        return each<Compare<c>, u8, s32, s32>;
    case Type::s64:
        return each<Compare<c>, u8, s64, s64>;
    case Type::b16:
    case Type::u16:
        return each<Compare<c>, u8, u16, u16>;
    case Type::b32:
    case Type::u32:
        return each<Compare<c>, u8, u32, u32>;
    case Type::b64:
    case Type::u64:
        return each<Compare<c>, u8, u64, u64>;
    default:
        return floats<c>(type);
    }
}

} // namespace

Handler compare_handler(Comparison comparison, Type type) {
    switch (comparison) {
    case Comparison::eq:
        return all<Comparison::eq>(type);
    case Comparison::ne:
        return all<Comparison::ne>(type);
    case Comparison::lt:
        return all<Comparison::lt>(type);
    case Comparison::le:
        return all<Comparison::le>(type);
    case Comparison::gt:
        return all<Comparison::gt>(type);
    case Comparison::ge:
        return all<Comparison::ge>(type);
    case Comparison::equ:
        return floats<Comparison::equ>(type);
    case Comparison::neu:
        return floats<Comparison::neu>(type);
    case Comparison::ltu:
        return floats<Comparison::ltu>(type);
    case Comparison::leu:
        return floats<Comparison::leu>(type);
    case Comparison::gtu:
        return floats<Comparison::gtu>(type);
    case Comparison::geu:
        return floats<Comparison::geu>(type);
    case Comparison::num:
        return floats<Comparison::num>(type);
    case Comparison::nan:
        return floats<Comparison::nan>(type);
    }
    return nullptr;
}

} // namespace sim::ptx::SIM_PTX_SET
