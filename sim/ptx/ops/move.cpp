// Copies, selections, packing, and the 8-byte pieces in which calls hand over arguments.
#include "ptx/ops/each.hpp"

#include <type_traits>

namespace sim::ptx::SIM_PTX_SET {
namespace {

struct Move {
    template <class T> static T apply(T a) { return a; }
};
struct Select {
    template <class T> static T apply(T a, T b, u8 p) { return p != 0 ? a : b; }
};
struct SelectSign {
    template <class T, class C> static T apply(T a, T b, C c) { return c >= 0 ? a : b; }
};
struct Pack2 {
    static u32 apply(u16 a, u16 b) { return a | u32{b} << 16; }
    static u64 apply(u32 a, u32 b) { return a | u64{b} << 32; }
};
struct Pack4 {
    static u64 apply(u16 a, u16 b, u16 c, u16 d) {
        return a | u64{b} << 16 | u64{c} << 32 | u64{d} << 48;
    }
};

template <class Part, class Whole, u32 parts> void unpack(const Instruction& in, Lanes& lanes) {
    const Whole* whole = array_of<Whole>(lanes, in.operand[parts]);
    Whole copy[group_lanes]; // a part may share the place of the whole
    for (u32 i = lanes.low; i < lanes.high; ++i)
        copy[i] = whole[i];
    for (u32 k = 0; k < parts; ++k) {
        Part* d = array_of<Part>(lanes, in.operand[k]);
        for (u32 i = lanes.low; i < lanes.high; ++i)
            d[i] = static_cast<Part>(copy[i] >> (k * sizeof(Part) * 8));
    }
}

constexpr u32 piece = 8;

template <class T>
using Register =
    std::conditional_t<sizeof(T) <= 2, u16, std::conditional_t<sizeof(T) == 4, u32, u64>>;

template <class T> void piece_store(const Instruction& in, Lanes& lanes) {
    std::byte* d = array_of<std::byte>(lanes, in.operand[0]) + in.immediate;
    const Register<T>* s = array_of<Register<T>>(lanes, in.operand[1]);
    for (u32 i = lanes.low; i < lanes.high; ++i) {
        const T value = static_cast<T>(s[i]);
        std::memcpy(d + std::size_t{i} * piece, &value, sizeof value);
    }
}

template <class T> void piece_load(const Instruction& in, Lanes& lanes) {
    Register<T>* d = array_of<Register<T>>(lanes, in.operand[0]);
    const std::byte* s = array_of<std::byte>(lanes, in.operand[1]) + in.immediate;
    for (u32 i = lanes.low; i < lanes.high; ++i) {
        T value;
        std::memcpy(&value, s + std::size_t{i} * piece, sizeof value);
        d[i] = static_cast<Register<T>>(value);
    }
}

Handler moving(Type type) {
    switch (size_of(type)) {
    case 1:
        return each1<Move, u8>;
    case 2:
        return each1<Move, u16>;
    case 4:
        return each1<Move, u32>;
    case 8:
        return each1<Move, u64>;
    default:
        return nullptr;
    }
}

Handler selecting(Type type) {
    switch (size_of(type)) {
    case 1:
        return each<Select, u8, u8, u8, u8>;
    case 2:
        return each<Select, u16, u16, u16, u8>;
    case 4:
        return each<Select, u32, u32, u32, u8>;
    case 8:
        return each<Select, u64, u64, u64, u8>;
    default:
        return nullptr;
    }
}

template <class C> Handler selecting_by_sign(Type type) {
    switch (size_of(type)) {
    case 2:
        return each<SelectSign, u16, u16, u16, C>;
    case 4:
        return each<SelectSign, u32, u32, u32, C>;
    case 8:
        return each<SelectSign, u64, u64, u64, C>;
    default:
        return nullptr;
    }
}

Handler storing(Type type) {
    switch (size_of(type)) {
    case 1:
        return piece_store<u8>;
    case 2:
        return piece_store<u16>;
    case 4:
        return piece_store<u32>;
    case 8:
        return piece_store<u64>;
    default:
        return nullptr;
    }
}

Handler loading(Type type) {
    switch (type) {
    case Type::s8:
        return piece_load<s8>;
    case Type::s16:
        return piece_load<s16>;
    default:
        break;
    }
    switch (size_of(type)) {
    case 1:
        return piece_load<u8>;
    case 2:
        return piece_load<u16>;
    case 4:
        return piece_load<u32>;
    case 8:
        return piece_load<u64>;
    default:
        return nullptr;
    }
}

} // namespace

Handler move_handler(Op op, Type type) {
    switch (op) {
    case Op::move:
        return moving(type);
    case Op::select:
        return selecting(type);
    case Op::select_sign:
        return selecting_by_sign<s32>(type);
    case Op::select_sign_float:
        return selecting_by_sign<f32>(type);
    case Op::pack2:
        return size_of(type) == 8 ? each<Pack2, u64, u32, u32> : each<Pack2, u32, u16, u16>;
    case Op::pack4:
        return each<Pack4, u64, u16, u16, u16, u16>;
    case Op::unpack2:
        return size_of(type) == 8 ? unpack<u32, u64, 2> : unpack<u16, u32, 2>;
    case Op::unpack4:
        return unpack<u16, u64, 4>;
    case Op::piece_store:
        return storing(type);
    case Op::piece_load:
        return loading(type);
    default:
        return nullptr;
    }
}

} // namespace sim::ptx::SIM_PTX_SET
