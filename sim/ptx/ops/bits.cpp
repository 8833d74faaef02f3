// Logic, shifts and bit fields.
#include "ptx/ops/each.hpp"

#include <type_traits>

namespace sim::ptx::SIM_PTX_SET {
namespace {

struct And {
    template <class T> static T apply(T a, T b) { return a & b; }
};
struct Or {
    template <class T> static T apply(T a, T b) { return a | b; }
};
struct Xor {
    template <class T> static T apply(T a, T b) { return a ^ b; }
};
struct Not {
    template <class T> static T apply(T a) { return static_cast<T>(~a); }
};
struct NotPredicate {
    static u8 apply(u8 a) { return a ^ 1; }
};
struct Cnot {
    template <class T> static T apply(T a) { return a == 0; }
};

template <class T> inline constexpr u32 width = sizeof(T) * 8;

struct Shl {
    template <class T> static T apply(T a, u32 by) {
        return static_cast<T>(by >= width<T> ? T{0} : a << (by & (width<T> - 1)));
    }
};
struct Shr {
    template <class T> static T apply(T a, u32 by) {
        if constexpr (std::is_signed_v<T>)
            return static_cast<T>(a >> (by >= width<T> ? width<T> - 1 : by));
        else
            return static_cast<T>(by >= width<T> ? T{0} : a >> (by & (width<T> - 1)));
    }
};

inline u64 joined(u32 low, u32 high) {
    return u64{high} << 32 | low;
}
inline u32 clamped(u32 by) {
    return by > 32 ? 32 : by;
}
struct FunnelLeftWrap {
    static u32 apply(u32 a, u32 b, u32 by) {
        return static_cast<u32>(joined(a, b) << (by & 31) >> 32);
    }
};
struct FunnelLeftClamp {
    static u32 apply(u32 a, u32 b, u32 by) {
        return static_cast<u32>(joined(a, b) << clamped(by) >> 32);
    }
};
struct FunnelRightWrap {
    static u32 apply(u32 a, u32 b, u32 by) { return static_cast<u32>(joined(a, b) >> (by & 31)); }
};
struct FunnelRightClamp {
    static u32 apply(u32 a, u32 b, u32 by) { return static_cast<u32>(joined(a, b) >> clamped(by)); }
};

struct Popc {
    template <class T> static u32 apply(T a) { return static_cast<u32>(__builtin_popcountll(a)); }
};
struct Clz {
    template <class T> static u32 apply(T a) {
        return a == 0 ? width<T> : static_cast<u32>(__builtin_clzll(a)) - (64 - width<T>);
    }
};
struct Brev {
    static u32 apply(u32 a) {
        a = (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
        a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
        a = (a >> 4 & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
        return __builtin_bswap32(a);
    }
    static u64 apply(u64 a) {
        return u64{apply(static_cast<u32>(a))} << 32 | apply(static_cast<u32>(a >> 32));
    }
};
template <class T> u32 leading_bit(T a) {
    using Bits = std::make_unsigned_t<T>;
    const Bits bits = static_cast<Bits>(a < 0 ? ~a : a);
    return bits == 0 ? ~u32{0} : 63 - static_cast<u32>(__builtin_clzll(bits));
}
struct Bfind {
    template <class T> static u32 apply(T a) { return leading_bit(a); }
};
struct BfindShift {
    template <class T> static u32 apply(T a) {
        const u32 bit = leading_bit(a);
        return bit == ~u32{0} ? bit : width<T> - 1 - bit;
    }
};

struct Bfe {
    template <class T> static T apply(T a, u32 position, u32 length) {
        using Bits = std::make_unsigned_t<T>;
        position &= 0xff;
        length &= 0xff;
        const Bits bits = static_cast<Bits>(a);
        const Bits field = position >= width<T> ? Bits{0} : bits >> position;
        const Bits keep = length >= width<T> ? ~Bits{0} : (Bits{1} << length) - 1;
        if constexpr (!std::is_signed_v<T>) return field & keep;
        if (length == 0) return 0;
        const u32 last =
            position + length - 1 < width<T> - 1 ? position + length - 1 : width<T> - 1;
        const Bits sign = (bits >> last & 1) != 0 ? ~Bits{0} : Bits{0};
        // bits of the field that lie beyond the word are copies of the sign as well
        const u32 present = position >= width<T> ? 0 : width<T> - position;
        const Bits real = present >= width<T> ? ~Bits{0} : (Bits{1} << present) - 1;
        const Bits mask = keep & real;
        return static_cast<T>((field & mask) | (sign & ~mask));
    }
};
struct Bfi {
    template <class T> static T apply(T a, T b, u32 position, u32 length) {
        position &= 0xff;
        length &= 0xff;
        if (position >= width<T>) return b;
        const T keep = (length >= width<T> ? ~T{0} : (T{1} << length) - 1) << position;
        return (b & ~keep) | (a << position & keep);
    }
};

inline u32 bit_mask(u32 position, u32 length) {
    if (position >= 32) return 0;
    const u32 ones = length >= 32 ? ~u32{0} : (u32{1} << length) - 1;
    return ones << position;
}
struct BmskClamp {
    static u32 apply(u32 a, u32 b) { return bit_mask(a, b); }
};
struct BmskWrap {
    static u32 apply(u32 a, u32 b) { return bit_mask(a & 31, b & 31); }
};
template <bool wrap> struct Szext {
    static u32 apply(u32 a, u32 n) {
        if (!wrap && n >= 32) return a;
        n &= 31;
        return n == 0 ? 0 : a << (32 - n) >> (32 - n);
    }
    static s32 apply(s32 a, u32 n) {
        if (!wrap && n >= 32) return a;
        n &= 31;
        return n == 0 ? 0 : static_cast<s32>(static_cast<u32>(a) << (32 - n)) >> (32 - n);
    }
};

/// Each of the eight bits of the table says whether one combination of a, b and c gives a one.
void lop3(const Instruction& in, Lanes& lanes) {
    u32* d = array_of<u32>(lanes, in.operand[0]);
    const u32* a = array_of<u32>(lanes, in.operand[1]);
    const u32* b = array_of<u32>(lanes, in.operand[2]);
    const u32* c = array_of<u32>(lanes, in.operand[3]);
    u32 term[8];
    for (u32 i = 0; i < 8; ++i)
        term[i] = (in.immediate2 >> i & 1) != 0 ? ~u32{0} : 0;
    const u32 high = lanes.high;
#pragma GCC ivdep
    for (u32 i = lanes.low; i < high; ++i) {
        const u32 x = a[i], y = b[i], z = c[i];
        d[i] = (term[0] & ~x & ~y & ~z) | (term[1] & ~x & ~y & z) | (term[2] & ~x & y & ~z) |
               (term[3] & ~x & y & z) | (term[4] & x & ~y & ~z) | (term[5] & x & ~y & z) |
               (term[6] & x & y & ~z) | (term[7] & x & y & z);
    }
}

inline u32 byte_of(u64 pair, u32 selector) {
    const u32 byte = static_cast<u32>(pair >> (selector & 7) * 8) & 0xff;
    if ((selector & 8) == 0) return byte;
    return (byte & 0x80) != 0 ? 0xff : 0;
}

/// Selectors of the four result bytes for the modes that compute them from c.
inline u32 selectors(u32 mode, u32 c) {
    const u32 k = c & 3;
    switch (mode) {
    case 1:
        return 0x3210u + 0x1111u * k; // f4e
    case 2:
        return ((0 - k) & 7u) << 0 | ((7 + 8 - k) & 7u) << 4 | // b4e
               ((6 + 8 - k) & 7u) << 8 | ((5 + 8 - k) & 7u) << 12;
    case 3:
        return 0x1111u * k; // rc8
    case 4:
        return (k > 0 ? k : 0) | (k > 1 ? k : 1) << 4 | (k > 2 ? k : 2) << 8 | 3u << 12; // ecl
    case 5:
        return 0 | (k < 1 ? k : 1) << 4 | (k < 2 ? k : 2) << 8 | k << 12; // ecr
    case 6:
        return (k & 2) == 0 ? 0x1010u : 0x3232u; // rc16
    default:
        return c;
    }
}

void permute(const Instruction& in, Lanes& lanes) {
    u32* d = array_of<u32>(lanes, in.operand[0]);
    const u32* a = array_of<u32>(lanes, in.operand[1]);
    const u32* b = array_of<u32>(lanes, in.operand[2]);
    const u32* c = array_of<u32>(lanes, in.operand[3]);
    for (u32 i = lanes.low; i < lanes.high; ++i) {
        const u64 pair = joined(a[i], b[i]);
        const u32 s = selectors(in.immediate2, c[i]);
        d[i] = byte_of(pair, s & 15) | byte_of(pair, s >> 4 & 15) << 8 |
               byte_of(pair, s >> 8 & 15) << 16 | byte_of(pair, s >> 12 & 15) << 24;
    }
}

inline s64 part(u32 word, u32 bit, u32 length, bool is_signed) {
    const u32 left = word << (32 - bit - length);
    return is_signed ? s64{static_cast<s32>(left) >> (32 - length)} : s64{left >> (32 - length)};
}

void dot4(const Instruction& in, Lanes& lanes) {
    u32* d = array_of<u32>(lanes, in.operand[0]);
    const u32* a = array_of<u32>(lanes, in.operand[1]);
    const u32* b = array_of<u32>(lanes, in.operand[2]);
    const u32* c = array_of<u32>(lanes, in.operand[3]);
    for (u32 i = lanes.low; i < lanes.high; ++i) {
        s64 sum = c[i];
        for (u32 k = 0; k < 4; ++k)
            sum +=
                part(a[i], k * 8, 8, in.immediate2 & 1) * part(b[i], k * 8, 8, in.immediate2 & 2);
        d[i] = static_cast<u32>(sum);
    }
}

void dot2(const Instruction& in, Lanes& lanes) {
    u32* d = array_of<u32>(lanes, in.operand[0]);
    const u32* a = array_of<u32>(lanes, in.operand[1]);
    const u32* b = array_of<u32>(lanes, in.operand[2]);
    const u32* c = array_of<u32>(lanes, in.operand[3]);
    const u32 from = (in.immediate2 & 4) != 0 ? 16 : 0;
    for (u32 i = lanes.low; i < lanes.high; ++i) {
        s64 sum = c[i];
        for (u32 k = 0; k < 2; ++k)
            sum += part(a[i], k * 16, 16, in.immediate2 & 1) *
                   part(b[i], from + k * 8, 8, in.immediate2 & 2);
        d[i] = static_cast<u32>(sum);
    }
}

template <class F> Handler two(Type type) {
    switch (size_of(type)) {
    case 1:
        return each2<F, u8>;
    case 2:
        return each2<F, u16>;
    case 4:
        return each2<F, u32>;
    case 8:
        return each2<F, u64>;
    default:
        return nullptr;
    }
}

template <class F> Handler one(Type type) {
    switch (size_of(type)) {
    case 2:
        return each1<F, u16>;
    case 4:
        return each1<F, u32>;
    case 8:
        return each1<F, u64>;
    default:
        return nullptr;
    }
}

template <class F> Handler counting(Type type) {
    switch (size_of(type)) {
    case 4:
        return each<F, u32, u32>;
    case 8:
        return each<F, u32, u64>;
    default:
        return nullptr;
    }
}

template <class F> Handler shift(Type type) {
    switch (type) {
    case Type::s16:
        return each<F, s16, s16, u32>;
    case Type::s32:
        return each<F, s32, s32, u32>;
    case Type::s64:
        return each<F, s64, s64, u32>;
    default:
        break;
    }
    switch (size_of(type)) {
    case 2:
        return each<F, u16, u16, u32>;
    case 4:
        return each<F, u32, u32, u32>;
    case 8:
        return each<F, u64, u64, u32>;
    default:
        return nullptr;
    }
}

template <class F> Handler leading(Type type) {
    switch (type) {
    case Type::s32:
        return each<F, u32, s32>;
    case Type::s64:
        return each<F, u32, s64>;
    case Type::u32:
        return each<F, u32, u32>;
    case Type::u64:
        return each<F, u32, u64>;
    default:
        return nullptr;
    }
}

Handler field(Type type) {
    switch (type) {
    case Type::s32:
        return each<Bfe, s32, s32, u32, u32>;
    case Type::s64:
        return each<Bfe, s64, s64, u32, u32>;
    case Type::u32:
        return each<Bfe, u32, u32, u32, u32>;
    case Type::u64:
        return each<Bfe, u64, u64, u32, u32>;
    default:
        return nullptr;
    }
}

template <class F> Handler extension(Type type) {
    return type == Type::s32 ? each<F, s32, s32, u32> : each<F, u32, u32, u32>;
}

} // namespace

Handler bit_handler(Op op, Type type) {
    switch (op) {
    case Op::and_:
        return two<And>(type);
    case Op::or_:
        return two<Or>(type);
    case Op::xor_:
        return two<Xor>(type);
    case Op::not_:
        return type == Type::pred ? each1<NotPredicate, u8> : one<Not>(type);
    case Op::cnot:
        return one<Cnot>(type);
    case Op::shl:
        return shift<Shl>(type);
    case Op::shr:
        return shift<Shr>(type);
    case Op::funnel_left_wrap:
        return each3<FunnelLeftWrap, u32>;
    case Op::funnel_left_clamp:
        return each3<FunnelLeftClamp, u32>;
    case Op::funnel_right_wrap:
        return each3<FunnelRightWrap, u32>;
    case Op::funnel_right_clamp:
        return each3<FunnelRightClamp, u32>;
    case Op::popc:
        return counting<Popc>(type);
    case Op::clz:
        return counting<Clz>(type);
    case Op::brev:
        return size_of(type) == 8 ? each1<Brev, u64> : each1<Brev, u32>;
    case Op::bfind:
        return leading<Bfind>(type);
    case Op::bfind_shift:
        return leading<BfindShift>(type);
    case Op::bfe:
        return field(type);
    case Op::bfi:
        return size_of(type) == 8 ? each<Bfi, u64, u64, u64, u32, u32>
                                  : each<Bfi, u32, u32, u32, u32, u32>;
    case Op::bmsk_clamp:
        return each2<BmskClamp, u32>;
    case Op::bmsk_wrap:
        return each2<BmskWrap, u32>;
    case Op::szext_clamp:
        return extension<Szext<false>>(type);
    case Op::szext_wrap:
        return extension<Szext<true>>(type);
    case Op::permute:
        return permute;
    case Op::lop3:
        return lop3;
    case Op::dp4a:
        return dot4;
    case Op::dp2a:
        return dot2;
    default:
        return nullptr;
    }
}

} // namespace sim::ptx::SIM_PTX_SET
