// Arithmetic, logic, comparison, conversion and moves.
#include "ptx/function_decoder.hpp"

#include <xmmintrin.h>

namespace sim::ptx {
namespace {

constexpr std::uint32_t flush_bits = 0x8040; // DAZ and FTZ of MXCSR
constexpr std::uint32_t all_masked = 0x1f80;

std::uint32_t mxcsr_of(Rounding rounding, bool flush) {
    const std::uint32_t direction = rounding == Rounding::down   ? _MM_ROUND_DOWN
                                    : rounding == Rounding::up   ? _MM_ROUND_UP
                                    : rounding == Rounding::zero ? _MM_ROUND_TOWARD_ZERO
                                                                 : _MM_ROUND_NEAREST;
    return all_masked | direction | (flush ? flush_bits : 0);
}

constexpr std::uint32_t default_mode = all_masked;

bool is_float(Type type) {
    return type == Type::f32 || type == Type::f64;
}

unsigned natural_width(Type type) {
    return type == Type::pred ? 1 : size_of(type) < 2 ? 2 : size_of(type);
}

} // namespace

FunctionDecoder::FloatMode FunctionDecoder::float_mode() {
    static constexpr Rounding roundings[] = {Rounding::nearest, Rounding::zero, Rounding::down,
                                             Rounding::up, Rounding::nearest};
    FloatMode mode;
    const int rounding = modifiers_.take_one_of({".rn", ".rz", ".rm", ".rp", ".rna"});
    if (rounding >= 0) mode.rounding = roundings[rounding];
    mode.flush = modifiers_.take(".ftz");
    mode.saturate = modifiers_.take(".sat");
    return mode;
}

void FunctionDecoder::wrap(Instruction& instruction, const FloatMode& mode) const {
    const std::uint32_t bits = mxcsr_of(mode.rounding, mode.flush);
    if (bits == default_mode) return;
    instruction.inner = instruction.run;
    instruction.run = run_with_mode;
    instruction.mode = bits;
}

void FunctionDecoder::finish_float(Type type, std::uint32_t destination, const FloatMode& mode) {
    if (mode.saturate) emit(Op::saturate, type, {destination}, {destination});
}

void FunctionDecoder::float_operation(Op op, Type type, const FloatMode& mode,
                                      std::size_t sources) {
    const std::uint32_t d = write(0, type);
    std::uint32_t s[3] = {};
    for (std::size_t i = 0; i < sources; ++i)
        s[i] = read(i + 1, type);
    Instruction& instruction = sources == 1   ? emit(op, type, {d}, {s[0]})
                               : sources == 2 ? emit(op, type, {d}, {s[0], s[1]})
                                              : emit(op, type, {d}, {s[0], s[1], s[2]});
    if (is_float(type)) wrap(instruction, mode);
    finish_float(type, d, mode);
}

void FunctionDecoder::simple_to(Op op, Type type, unsigned destination_width, std::size_t sources) {
    const std::uint32_t d = write(operand(0), destination_width);
    std::uint32_t s[3] = {};
    for (std::size_t i = 0; i < sources; ++i)
        s[i] = read(i + 1, type);
    if (sources == 1)
        emit(op, type, {d}, {s[0]});
    else if (sources == 2)
        emit(op, type, {d}, {s[0], s[1]});
    else
        emit(op, type, {d}, {s[0], s[1], s[2]});
}

void FunctionDecoder::simple(Op op, Type type, std::size_t sources) {
    simple_to(op, type, natural_width(type), sources);
}

void FunctionDecoder::add_or_sub() {
    const bool add = statement_->root == "add";
    const bool carry_out = modifiers_.take(".cc");
    const FloatMode mode = float_mode();
    const Type type = modifiers_.take_type();
    if (carry_out) {
        const std::uint32_t d = write(0, type);
        const std::uint32_t a = read(1, type), b = read(2, type);
        emit(add ? Op::add_carry_out : Op::sub_carry_out, type, {d, carry()}, {a, b});
        return;
    }
    if (is_float(type) || is_half(type))
        return float_operation(add ? Op::add : Op::sub, type, mode, 2);
    if (mode.saturate) return simple(add ? Op::add_saturate : Op::sub_saturate, type, 2);
    simple(add ? Op::add : Op::sub, type, 2);
}

void FunctionDecoder::carried_add_or_sub() {
    const bool add = statement_->root == "addc";
    const bool carry_out = modifiers_.take(".cc");
    const Type type = modifiers_.take_type();
    const std::uint32_t d = write(0, type);
    const std::uint32_t a = read(1, type), b = read(2, type);
    if (carry_out)
        emit(add ? Op::add_carry_both : Op::sub_carry_both, type, {d, carry()}, {a, b, carry()});
    else
        emit(add ? Op::add_carry : Op::sub_carry, type, {d}, {a, b, carry()});
}

void FunctionDecoder::multiply() {
    const int part = modifiers_.take_one_of({".lo", ".hi", ".wide"});
    const FloatMode mode = float_mode();
    const Type type = modifiers_.take_type();
    if (is_float(type) || is_half(type)) return float_operation(Op::mul, type, mode, 2);
    if (part == 2) return simple_to(Op::mul_wide, type, size_of(type) * 2, 2);
    simple(part == 1 ? Op::mul_high : Op::mul, type, 2);
}

void FunctionDecoder::multiply_add() {
    const int part = modifiers_.take_one_of({".lo", ".hi", ".wide"});
    const bool carry_out = modifiers_.take(".cc");
    const FloatMode mode = float_mode();
    const Type type = modifiers_.take_type();
    if (is_float(type)) return float_operation(Op::fma, type, mode, 3);
    if (part == 2) {
        const unsigned wide = size_of(type) * 2;
        const std::uint32_t d = write(operand(0), wide);
        const std::uint32_t a = read(1, type), b = read(2, type);
        emit(Op::mad_wide, type, {d}, {a, b, read(operand(3), wide, Type::none)});
        return;
    }
    if (carry_out) {
        const std::uint32_t d = write(0, type);
        const std::uint32_t a = read(1, type), b = read(2, type), c = read(3, type);
        emit(part == 1 ? Op::mad_high_carry_out : Op::mad_carry_out, type, {d, carry()}, {a, b, c});
        return;
    }
    simple(part != 1 ? Op::mad : mode.saturate ? Op::mad_high_saturate : Op::mad_high, type, 3);
}

void FunctionDecoder::carried_multiply_add() {
    const bool high = modifiers_.take_one_of({".lo", ".hi"}) == 1;
    const bool carry_out = modifiers_.take(".cc");
    const Type type = modifiers_.take_type();
    const std::uint32_t d = write(0, type);
    const std::uint32_t a = read(1, type), b = read(2, type), c = read(3, type);
    if (carry_out)
        emit(high ? Op::mad_high_carry_both : Op::mad_carry_both, type, {d, carry()},
             {a, b, c, carry()});
    else
        emit(high ? Op::mad_high_carry : Op::mad_carry, type, {d}, {a, b, c, carry()});
}

void FunctionDecoder::fused() {
    const bool relu = modifiers_.take(".relu");
    const FloatMode mode = float_mode();
    float_operation(relu ? Op::fma_relu : Op::fma, modifiers_.take_type(), mode, 3);
}

void FunctionDecoder::divide() {
    modifiers_.drop({".approx", ".full"});
    const FloatMode mode = float_mode();
    const Type type = modifiers_.take_type();
    if (is_float(type)) return float_operation(Op::div, type, mode, 2);
    simple(Op::div, type, 2);
}

void FunctionDecoder::remainder() {
    simple(Op::rem, modifiers_.take_type(), 2);
}

void FunctionDecoder::absolute() {
    const bool flush = modifiers_.take(".ftz");
    const Type type = modifiers_.take_type();
    simple(Op::abs, type, 1);
    if (flush && is_float(type)) emit(Op::flush, type, {write(0, type)}, {write(0, type)});
}

void FunctionDecoder::negate() {
    const bool flush = modifiers_.take(".ftz");
    const Type type = modifiers_.take_type();
    simple(Op::neg, type, 1);
    if (flush && is_float(type)) emit(Op::flush, type, {write(0, type)}, {write(0, type)});
}

void FunctionDecoder::minimum_or_maximum() {
    const bool least = statement_->root == "min";
    const bool flush = modifiers_.take(".ftz");
    const bool keeps_nan = modifiers_.take(".NaN");
    const Type type = modifiers_.take_type();
    const Op op = keeps_nan ? (least ? Op::min_nan : Op::max_nan) : (least ? Op::min : Op::max);
    simple(op, type, 2);
    const std::uint32_t d = write(0, type);
    if (statement_->operands.size() == 4) emit(op, type, {d}, {d, read(3, type)});
    if (flush && is_float(type)) emit(Op::flush, type, {d}, {d});
}

void FunctionDecoder::unary_float() {
    static const std::unordered_map<std::string_view, Op> ops = {
        {"rcp", Op::rcp}, {"sqrt", Op::sqrt}, {"rsqrt", Op::rsqrt}, {"ex2", Op::ex2},
        {"lg2", Op::lg2}, {"sin", Op::sin},   {"cos", Op::cos},     {"tanh", Op::tanh}};
    modifiers_.drop({".approx"});
    FloatMode mode = float_mode();
    const Type type = modifiers_.take_type();
    const Op op = ops.at(statement_->root);
    const bool by_library = op != Op::rcp && op != Op::sqrt && op != Op::rsqrt;
    if (!by_library || is_half(type)) return float_operation(op, type, mode, 1);
    // the mathematical library wants the usual floating-point mode
    const std::uint32_t d = write(0, type);
    std::uint32_t source = read(1, type);
    if (mode.flush) {
        const std::uint32_t flushed = temporary(natural_width(type));
        emit(Op::flush, type, {flushed}, {source});
        source = flushed;
    }
    emit(op, type, {d}, {source});
    if (mode.flush) emit(Op::flush, type, {d}, {d});
    finish_float(type, d, mode);
}

void FunctionDecoder::copy_sign() {
    simple(Op::copysign, modifiers_.take_type(), 2);
}

void FunctionDecoder::test_property() {
    static constexpr Op ops[] = {Op::testp_finite,       Op::testp_infinite, Op::testp_number,
                                 Op::testp_not_a_number, Op::testp_normal,   Op::testp_subnormal};
    const int property = modifiers_.take_one_of(
        {".finite", ".infinite", ".number", ".notanumber", ".normal", ".subnormal"});
    require(property >= 0, "tests an unknown property");
    simple_to(ops[property], modifiers_.take_type(), 1, 1);
}

void FunctionDecoder::multiply_24() {
    const bool high = modifiers_.take_one_of({".lo", ".hi"}) == 1;
    const Type type = modifiers_.take_type();
    if (statement_->root == "mul24") return simple(high ? Op::mul24_high : Op::mul24_low, type, 2);
    simple(high ? Op::mad24_high : Op::mad24_low, type, 3);
}

void FunctionDecoder::sum_of_differences() {
    simple(Op::sad, modifiers_.take_type(), 3);
}

void FunctionDecoder::logic() {
    static const std::unordered_map<std::string_view, Op> ops = {{"and", Op::and_},
                                                                 {"or", Op::or_},
                                                                 {"xor", Op::xor_},
                                                                 {"not", Op::not_},
                                                                 {"cnot", Op::cnot}};
    const Op op = ops.at(statement_->root);
    simple(op, modifiers_.take_type(), op == Op::not_ || op == Op::cnot ? 1 : 2);
}

void FunctionDecoder::shift() {
    const Type type = modifiers_.take_type();
    const std::uint32_t d = write(0, type);
    const std::uint32_t a = read(1, type);
    emit(statement_->root == "shl" ? Op::shl : Op::shr, type, {d}, {a, read(2, Type::u32)});
}

void FunctionDecoder::funnel_shift() {
    const bool right = modifiers_.take_one_of({".l", ".r"}) == 1;
    const bool clamp = modifiers_.take_one_of({".wrap", ".clamp"}) == 1;
    const Type type = modifiers_.take_type();
    const Op op = right ? (clamp ? Op::funnel_right_clamp : Op::funnel_right_wrap)
                        : (clamp ? Op::funnel_left_clamp : Op::funnel_left_wrap);
    simple(op, type, 3);
}

void FunctionDecoder::bit_count() {
    const Type type = modifiers_.take_type();
    if (statement_->root == "brev") return simple(Op::brev, type, 1);
    simple_to(statement_->root == "popc" ? Op::popc : Op::clz, type, 4, 1);
}

void FunctionDecoder::bit_find() {
    const bool shift = modifiers_.take(".shiftamt");
    simple_to(shift ? Op::bfind_shift : Op::bfind, modifiers_.take_type(), 4, 1);
}

void FunctionDecoder::bit_field() {
    const Type type = modifiers_.take_type();
    const std::uint32_t d = write(0, type);
    const std::uint32_t a = read(1, type);
    if (statement_->root == "bfe") {
        const std::uint32_t position = read(2, Type::u32);
        emit(Op::bfe, type, {d}, {a, position, read(3, Type::u32)});
        return;
    }
    const std::uint32_t b = read(2, type);
    const std::uint32_t position = read(3, Type::u32);
    emit(Op::bfi, type, {d}, {a, b, position, read(4, Type::u32)});
}

void FunctionDecoder::bit_mask() {
    const bool wrap_around = modifiers_.take_one_of({".clamp", ".wrap"}) == 1;
    simple(wrap_around ? Op::bmsk_wrap : Op::bmsk_clamp, modifiers_.take_type(), 2);
}

void FunctionDecoder::sign_extend() {
    const bool wrap_around = modifiers_.take_one_of({".clamp", ".wrap"}) == 1;
    const Type type = modifiers_.take_type();
    const std::uint32_t d = write(0, type);
    const std::uint32_t a = read(1, type);
    emit(wrap_around ? Op::szext_wrap : Op::szext_clamp, type, {d}, {a, read(2, Type::u32)});
}

void FunctionDecoder::permute_bytes() {
    const Type type = modifiers_.take_type();
    const int mode = modifiers_.take_one_of({".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"});
    simple(Op::permute, type, 3);
    code_.instructions.back().immediate2 = static_cast<std::uint32_t>(mode + 1);
}

void FunctionDecoder::logic3() {
    const Type type = modifiers_.take_type();
    require(operand(4).kind == Operand::Kind::integer, "needs a literal table");
    simple(Op::lop3, type, 3);
    code_.instructions.back().immediate2 = static_cast<std::uint32_t>(operand(4).bits);
}

void FunctionDecoder::dot_product() {
    const bool upper = modifiers_.take_one_of({".lo", ".hi"}) == 1;
    const Type a = modifiers_.take_type();
    const Type b = modifiers_.take_type();
    simple(statement_->root == "dp4a" ? Op::dp4a : Op::dp2a, Type::u32, 3);
    code_.instructions.back().immediate2 =
        (is_signed(a) ? 1u : 0) | (is_signed(b) ? 2u : 0) | (upper ? 4u : 0);
}

void FunctionDecoder::select() {
    const Type type = modifiers_.take_type();
    const std::uint32_t d = write(0, type);
    const std::uint32_t a = read(1, type), b = read(2, type);
    emit(Op::select, type, {d}, {a, b, read(3, Type::pred)});
}

void FunctionDecoder::select_by_sign() {
    modifiers_.drop({".ftz"});
    const Type type = modifiers_.take_type();
    const Type sign = modifiers_.take_type();
    const std::uint32_t d = write(0, type);
    const std::uint32_t a = read(1, type), b = read(2, type);
    emit(sign == Type::f32 ? Op::select_sign_float : Op::select_sign, type, {d},
         {a, b, read(3, sign)});
}

/// A predicate that says how operands 1 and 2 compare.
std::uint32_t FunctionDecoder::comparison(Comparison comparison, Type type, bool flush) {
    const std::uint32_t a = read(1, type), b = read(2, type);
    const std::uint32_t result = temporary(1);
    Instruction& instruction = emit(operations().compare(comparison, type), {result}, {a, b});
    if (is_float(type)) {
        FloatMode mode;
        mode.flush = flush;
        wrap(instruction, mode);
    }
    return result;
}

/// Operands 1 and 2 are pairs of 16-bit numbers.
FunctionDecoder::Halves FunctionDecoder::compare_halves(Comparison comparison, Type type) {
    std::uint32_t half[2][2];
    for (std::size_t i = 0; i < 2; ++i) {
        half[i][0] = temporary(2);
        half[i][1] = temporary(2);
        emit(Op::unpack2, Type::b32, {half[i][0], half[i][1]}, {read(i + 1, Type::b32)});
    }
    const Halves result{temporary(1), temporary(1)};
    const Handler compare =
        operations().compare(comparison, type == Type::f16x2 ? Type::f16 : Type::bf16);
    emit(compare, {result.low}, {half[0][0], half[1][0]});
    emit(compare, {result.high}, {half[0][1], half[1][1]});
    return result;
}

namespace {

Comparison take_comparison(Modifiers& modifiers, bool& found) {
    static constexpr Comparison comparisons[] = {
        Comparison::eq,  Comparison::ne,  Comparison::lt,  Comparison::le,  Comparison::gt,
        Comparison::ge,  Comparison::lt,  Comparison::le,  Comparison::gt,  Comparison::ge,
        Comparison::equ, Comparison::neu, Comparison::ltu, Comparison::leu, Comparison::gtu,
        Comparison::geu, Comparison::num, Comparison::nan};
    const int index =
        modifiers.take_one_of({".eq", ".ne", ".lt", ".le", ".gt", ".ge", ".lo", ".ls", ".hi", ".hs",
                               ".equ", ".neu", ".ltu", ".leu", ".gtu", ".geu", ".num", ".nan"});
    found = index >= 0;
    return comparisons[found ? index : 0];
}

std::optional<Op> take_combination(Modifiers& modifiers) {
    static constexpr Op ops[] = {Op::and_, Op::or_, Op::xor_};
    const int index = modifiers.take_one_of({".and", ".or", ".xor"});
    return index < 0 ? std::nullopt : std::optional(ops[index]);
}

} // namespace

void FunctionDecoder::set_predicate() {
    bool found = false;
    const Comparison wanted = take_comparison(modifiers_, found);
    require(found, "has an unknown comparison");
    const std::optional<Op> combination = take_combination(modifiers_);
    const bool flush = modifiers_.take(".ftz");
    const Type type = modifiers_.take_type();
    const Operand& to = operand(0);
    const std::uint32_t p = write(to, 1);
    if (type == Type::f16x2 || type == Type::bf16x2) {
        require(!combination && !to.parts.empty(), "is not supported");
        const Halves halves = compare_halves(wanted, type);
        emit(Op::move, Type::pred, {p}, {halves.low});
        emit(Op::move, Type::pred, {write(to.parts[0], 1)}, {halves.high});
        return;
    }
    const std::uint32_t result = comparison(wanted, type, flush);
    if (!combination && to.parts.empty()) {
        code_.instructions.back().operand[0] = p;
        return;
    }
    std::uint32_t opposite = no_operand;
    if (!to.parts.empty()) {
        opposite = temporary(1);
        emit(Op::not_, Type::pred, {opposite}, {result});
    }
    const std::uint32_t c = combination ? read(3, Type::pred) : no_operand;
    const auto assign = [&](std::uint32_t destination, std::uint32_t value) {
        if (combination)
            emit(*combination, Type::pred, {destination}, {value, c});
        else
            emit(Op::move, Type::pred, {destination}, {value});
    };
    if (to.parts.empty()) return assign(p, result);
    // c may be p itself, so both results are computed before either is assigned
    const std::uint32_t first = temporary(1);
    assign(first, result);
    assign(write(to.parts[0], 1), opposite);
    emit(Op::move, Type::pred, {p}, {first});
}

void FunctionDecoder::set_value() {
    bool found = false;
    const Comparison wanted = take_comparison(modifiers_, found);
    require(found, "has an unknown comparison");
    const std::optional<Op> combination = take_combination(modifiers_);
    const bool flush = modifiers_.take(".ftz");
    const Type to = modifiers_.take_type();
    const Type type = modifiers_.take_type();
    if (type == Type::f16x2 || type == Type::bf16x2) {
        require(!combination, "is not supported");
        const Halves halves = compare_halves(wanted, type);
        const std::uint64_t one = to == Type::f16x2 ? 0x3c00 : to == Type::bf16x2 ? 0x3f80 : 0xffff;
        const std::uint32_t low = temporary(2), high = temporary(2);
        emit(Op::select, Type::b16, {low}, {literal(one, 2), literal(0, 2), halves.low});
        emit(Op::select, Type::b16, {high}, {literal(one, 2), literal(0, 2), halves.high});
        emit(Op::pack2, Type::b32, {write(0, Type::b32)}, {low, high});
        return;
    }
    std::uint32_t result = comparison(wanted, type, flush);
    if (combination) {
        const std::uint32_t combined = temporary(1);
        emit(*combination, Type::pred, {combined}, {result, read(3, Type::pred)});
        result = combined;
    }
    std::uint64_t yes = ~std::uint64_t{0};
    if (to == Type::f32)
        yes = 0x3f800000;
    else if (to == Type::f16)
        yes = 0x3c00;
    else if (to == Type::bf16)
        yes = 0x3f80;
    const unsigned width = natural_width(to);
    emit(Op::select, to, {write(0, to)}, {literal(yes, width), literal(0, width), result});
}

void FunctionDecoder::convert_register(std::uint32_t to, std::uint32_t from,
                                       const Conversion& conversion, const FloatMode& mode) {
    Instruction& instruction = emit(operations().convert(conversion), {to}, {from});
    instruction.immediate2 = static_cast<std::uint32_t>(conversion.to) |
                             static_cast<std::uint32_t>(conversion.from) << 8 |
                             (conversion.saturate ? 1u << 16 : 0);
    // only these look at the processor's rounding mode
    const bool narrows = conversion.to == Type::f32 && conversion.from == Type::f64;
    const bool from_integer = is_integer(conversion.from) && is_float(conversion.to);
    FloatMode actual = mode;
    if (!narrows && !from_integer) actual.rounding = Rounding::nearest;
    if (is_float(conversion.to) || is_float(conversion.from)) wrap(instruction, actual);
}

void FunctionDecoder::convert() {
    static constexpr Rounding roundings[] = {Rounding::nearest, Rounding::zero, Rounding::down,
                                             Rounding::up};
    const int to_integral = modifiers_.take_one_of({".rni", ".rzi", ".rmi", ".rpi"});
    FloatMode mode = float_mode();
    const Type to = modifiers_.take_type();
    if (to == Type::f16x2 || to == Type::bf16x2)
        return convert_pair(to == Type::f16x2 ? Type::f16 : Type::bf16, mode);
    const Type from = modifiers_.take_type();
    require(to != Type::none && from != Type::none, "converts an unsupported type");

    const Operand& destination = operand(0);
    const Operand& source = operand(1);
    const unsigned from_natural = natural_width(from);
    unsigned from_width = from_natural;
    std::uint32_t s = 0;
    if (source.kind == Operand::Kind::reg) {
        s = read_register(source);
        from_width = width_of(s);
    } else {
        s = read(source, from_width, from);
    }
    require(destination.kind == Operand::Kind::reg, "writes to what is no register");
    const unsigned to_width = widths_[destination.index];
    const std::uint32_t d = write(destination, to_width);
    require(to_width >= natural_width(to) && from_width >= from_natural,
            "has a register narrower than its type");

    Conversion conversion{to, from, static_cast<std::uint8_t>(to_width),
                          static_cast<std::uint8_t>(from_width)};
    if (is_integer(to) && is_integer(from)) {
        conversion.saturate = mode.saturate;
        return convert_register(d, s, conversion, mode);
    }
    conversion.rounding = to_integral >= 0 ? roundings[to_integral] : mode.rounding;
    conversion.to_integral = to_integral >= 0;
    if (from_width != from_natural) {
        require(is_integer(from), "reads a number from a register that is too wide");
        const std::uint32_t narrow = temporary(from_natural);
        convert_register(narrow, s,
                         {from, from, static_cast<std::uint8_t>(from_natural),
                          static_cast<std::uint8_t>(from_width)},
                         {});
        s = narrow;
        conversion.from_width = static_cast<std::uint8_t>(from_natural);
    }
    if (to_width == natural_width(to)) {
        convert_register(d, s, conversion, mode);
        if (mode.saturate && !is_integer(to)) emit(Op::saturate, to, {d}, {d});
        return;
    }
    require(is_integer(to), "writes a number to a register that is too wide");
    conversion.to_width = static_cast<std::uint8_t>(natural_width(to));
    const std::uint32_t narrow = temporary(natural_width(to));
    convert_register(narrow, s, conversion, mode);
    convert_register(d, narrow, {to, to, static_cast<std::uint8_t>(to_width), conversion.to_width},
                     {});
}

/// Two single-precision numbers into the halves of a register, the first into the upper one.
void FunctionDecoder::convert_pair(Type to, const FloatMode& mode) {
    const Type from = modifiers_.take_type();
    require(from == Type::f32 && statement_->operands.size() == 3, "is not supported");
    const std::uint32_t d = write(0, Type::b32);
    std::uint32_t half[2];
    for (std::size_t i = 0; i < 2; ++i) {
        half[i] = temporary(2);
        Conversion conversion{to, from, 2, 4};
        conversion.rounding = mode.rounding;
        convert_register(half[i], read(i + 1, from), conversion, mode);
    }
    emit(Op::pack2, Type::b32, {d}, {half[1], half[0]});
}

void FunctionDecoder::move() {
    const Type type = modifiers_.take_type();
    const Operand& to = operand(0);
    const Operand& from = operand(1);
    if (to.kind == Operand::Kind::vector) return unpack(to, type);
    if (from.kind == Operand::Kind::vector) return pack(from, type);
    if (to.kind == Operand::Kind::reg &&
        alias_of_[to.index] == static_cast<std::int32_t>(statement_index_))
        return;
    const std::uint32_t d = write(0, type);
    if (from.kind == Operand::Kind::special)
        read_special_register(from.text, natural_width(type), d);
    else
        emit(Op::move, type, {d}, {read(1, type)});
}

void FunctionDecoder::pack(const Operand& parts, Type type) {
    const auto count = static_cast<unsigned>(parts.parts.size());
    require(count == 2 || (count == 4 && size_of(type) == 8), "packs an unsupported vector");
    const unsigned width = size_of(type) / count;
    require(width >= 2, "packs an unsupported vector");
    std::uint32_t s[4];
    for (unsigned i = 0; i < count; ++i)
        s[i] = read(parts.parts[i], width, Type::none);
    if (count == 2)
        emit(Op::pack2, type, {write(0, type)}, {s[0], s[1]});
    else
        emit(Op::pack4, type, {write(0, type)}, {s[0], s[1], s[2], s[3]});
}

void FunctionDecoder::unpack(const Operand& parts, Type type) {
    const auto count = static_cast<unsigned>(parts.parts.size());
    require(count == 2 || (count == 4 && size_of(type) == 8), "unpacks an unsupported vector");
    const unsigned width = size_of(type) / count;
    require(width >= 2, "unpacks an unsupported vector");
    std::uint32_t d[4];
    for (unsigned i = 0; i < count; ++i)
        d[i] = write(parts.parts[i], width);
    if (count == 2)
        emit(Op::unpack2, type, {d[0], d[1]}, {read(1, type)});
    else
        emit(Op::unpack4, type, {d[0], d[1], d[2], d[3]}, {read(1, type)});
}

} // namespace sim::ptx
