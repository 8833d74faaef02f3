// Arithmetic with a carry, of which multi-word integers are made.
//
// Operands: d, [carry written], a, b, [c], [carry read].
#include "ptx/ops/each.hpp"

namespace sim::ptx::SIM_PTX_SET {
namespace {

enum class Part : u8 { sum, difference, low, high };

template <class T, Part part, bool in_carry, bool out_carry>
void with_carry(const Instruction& in, Lanes& lanes) {
    u32 next = 0;
    T* d = array_of<T>(lanes, in.operand[next++]);
    u8* out = out_carry ? array_of<u8>(lanes, in.operand[next++]) : nullptr;
    const T* a = array_of<T>(lanes, in.operand[next++]);
    const T* b = array_of<T>(lanes, in.operand[next++]);
    constexpr bool product = part == Part::low || part == Part::high;
    const T* c = product ? array_of<T>(lanes, in.operand[next++]) : nullptr;
    const u8* carry = in_carry ? array_of<u8>(lanes, in.operand[next]) : nullptr;
    using Wide = unsigned __int128;
    for (u32 i = lanes.low; i < lanes.high; ++i) {
        Wide left = a[i];
        Wide right = b[i];
        if constexpr (product) {
            const Wide whole = left * right;
            left = static_cast<T>(part == Part::low ? whole : whole >> (sizeof(T) * 8));
            right = c[i];
        }
        const Wide extra = in_carry ? carry[i] : 0;
        const Wide result = part == Part::difference ? left - right - extra : left + right + extra;
        d[i] = static_cast<T>(result);
        if constexpr (out_carry) out[i] = static_cast<u8>(result >> (sizeof(T) * 8) & 1);
    }
}

template <Part part, bool in_carry, bool out_carry> Handler sized(Type type) {
    return size_of(type) == 8 ? with_carry<u64, part, in_carry, out_carry>
                              : with_carry<u32, part, in_carry, out_carry>;
}

} // namespace

Handler carry_handler(Op op, Type type) {
    switch (op) {
    case Op::add_carry_out:
        return sized<Part::sum, false, true>(type);
    case Op::add_carry:
        return sized<Part::sum, true, false>(type);
    case Op::add_carry_both:
        return sized<Part::sum, true, true>(type);
    case Op::sub_carry_out:
        return sized<Part::difference, false, true>(type);
    case Op::sub_carry:
        return sized<Part::difference, true, false>(type);
    case Op::sub_carry_both:
        return sized<Part::difference, true, true>(type);
    case Op::mad_carry_out:
        return sized<Part::low, false, true>(type);
    case Op::mad_carry:
        return sized<Part::low, true, false>(type);
    case Op::mad_carry_both:
        return sized<Part::low, true, true>(type);
    case Op::mad_high_carry_out:
        return sized<Part::high, false, true>(type);
    case Op::mad_high_carry:
        return sized<Part::high, true, false>(type);
    case Op::mad_high_carry_both:
        return sized<Part::high, true, true>(type);
    default:
        return nullptr;
    }
}

} // namespace sim::ptx::SIM_PTX_SET
