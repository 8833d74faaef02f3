// The vectorised loops behind instructions, compiled once for every instruction set.
#pragma once

#include "ptx/lanes.hpp"
#include "ptx/syntax.hpp"

namespace sim::ptx {

enum class Op : std::uint16_t {
    add,
    sub,
    mul, // floating-point, or the low half of an integer product
    mul_high,
    mul_wide, // the type is that of the factors
    mad,
    mad_high,
    mad_wide,
    mul24_low,
    mul24_high,
    mad24_low,
    mad24_high,
    add_saturate,
    sub_saturate,
    mad_high_saturate,
    sad,
    div,
    rem,
    abs,
    neg,
    min,
    max,
    min_nan,
    max_nan,
    and_,
    or_,
    xor_,
    not_,
    cnot,
    shl,
    shr,
    funnel_left_wrap,
    funnel_left_clamp,
    funnel_right_wrap,
    funnel_right_clamp,
    popc,
    clz,
    brev,
    bfind,
    bfind_shift,
    bfe,
    bfi,
    bmsk_clamp,
    bmsk_wrap,
    szext_clamp,
    szext_wrap,
    permute,        // prmt; immediate2: 0 or the character code of the mode: see move.cpp
    lop3,           // immediate2: table
    dp4a,           // immediate2: bit 0: a is signed, bit 1: b is signed
    dp2a,           // the same, bit 2: upper half of b
    add_carry_out,  // d, carry = a + b
    add_carry,      // d = a + b + carry
    add_carry_both, // d, carry = a + b + carry
    sub_carry_out,  // the carry of a subtraction is a borrow
    sub_carry,
    sub_carry_both,
    mad_carry_out,
    mad_carry,
    mad_carry_both,
    mad_high_carry_out,
    mad_high_carry,
    mad_high_carry_both,
    select,            // selp: d = p ? a : b
    select_sign,       // slct.type.s32
    select_sign_float, // slct.type.f32
    fma,
    fma_relu,
    rcp,
    sqrt,
    rsqrt,
    ex2,
    lg2,
    sin,
    cos,
    tanh,
    copysign,
    saturate, // into [0, 1]
    flush,    // subnormal numbers to zero
    testp_finite,
    testp_infinite,
    testp_number,
    testp_not_a_number,
    testp_normal,
    testp_subnormal,
    move,
    pack2,       // operand: d, low, high
    pack4,       // d 64, 4 x 16
    unpack2,     // low, high, source
    unpack4,     // 4 x 16, source 64
    piece_store, // into an 8-byte piece of a call's argument; type is that in memory
    piece_load
};

enum class Comparison : std::uint8_t {
    eq,
    ne,
    lt,
    le,
    gt,
    ge,
    equ,
    neu,
    ltu,
    leu,
    gtu,
    geu,
    num,
    nan
};

enum class Shuffle : std::uint8_t { up, down, bfly, idx };

enum class Rounding : std::uint8_t { none, nearest, zero, down, up, nearest_away };

struct Conversion {
    Type to = Type::none, from = Type::none;
    std::uint8_t to_width = 0, from_width = 0; // bytes of the registers
    Rounding rounding = Rounding::none;
    bool to_integral = false; // .rni… between floating-point types
    bool saturate = false;
};

struct Operations {
    /// nullptr when there is no such instruction, here as below. Operands: destination, sources.
    Handler (*arithmetic)(Op, Type);
    /// Destination: a predicate.
    Handler (*compare)(Comparison, Type);
    Handler (*convert)(const Conversion&);
    /// `type` in memory, registers of `width` bytes, `count` of them.
    Handler (*load)(Type type, unsigned width, unsigned count);
    Handler (*store)(Type type, unsigned width, unsigned count);
    Handler (*shuffle)(Shuffle mode);
    /// Checks and counts a memory access whose address is operand `in.writes`, or stops the kernel.
    /// `pointers` has room for all lanes of a group.
    Access (*resolve)(const Instruction& in, Lanes& lanes, std::byte** pointers);
    /// Sets all but `lane`.
    void (*summarise)(Mask&);
    /// taken = active lanes where the predicate is as wanted.
    void (*split)(const Mask& active, const std::uint8_t* predicate, bool negated, Mask& taken);
    /// Puts back into an array of elements of `width` bytes what inactive lanes held.
    void (*keep_inactive)(std::byte* array, const std::byte* before, unsigned width,
                          const std::uint8_t* mask, std::uint32_t low, std::uint32_t high);
};

/// The best that this processor can run, or with SIM_PTX_SET=baseline in the environment the
/// plainest: for tests of it on a better one.
const Operations& operations();

/// Runs `inner` with the MXCSR of `mode`.
void run_with_mode(const Instruction& instruction, Lanes& lanes);

} // namespace sim::ptx
