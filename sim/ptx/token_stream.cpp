#include "ptx/token_stream.hpp"

#include <algorithm>
#include <bit>
#include <charconv>

namespace sim::ptx {
namespace {

struct TypeName {
    std::string_view word;
    Type type;
    std::uint8_t size;
};

constexpr TypeName type_names[] = {
    {".none", Type::none, 0},   {".pred", Type::pred, 1}, {".b8", Type::b8, 1},
    {".b16", Type::b16, 2},     {".b32", Type::b32, 4},   {".b64", Type::b64, 8},
    {".u8", Type::u8, 1},       {".u16", Type::u16, 2},   {".u32", Type::u32, 4},
    {".u64", Type::u64, 8},     {".s8", Type::s8, 1},     {".s16", Type::s16, 2},
    {".s32", Type::s32, 4},     {".s64", Type::s64, 8},   {".f16", Type::f16, 2},
    {".f16x2", Type::f16x2, 4}, {".bf16", Type::bf16, 2}, {".bf16x2", Type::bf16x2, 4},
    {".f32", Type::f32, 4},     {".f64", Type::f64, 8},
};

std::uint64_t digits(const Token& token, std::string_view text, int base) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size() || text.empty())
        syntax_error(token, "a number");
    return value;
}

} // namespace

void syntax_error(const Token& token, const std::string& expected) {
    const std::string got = token.kind == Token::Kind::end ? "the end of the text"
                                                           : "'" + std::string(token.text) + "'";
    throw Error("PTX line " + std::to_string(token.line) + ": expected " + expected +
                " but found " + got);
}

Type type_named(std::string_view word) {
    for (const TypeName& name : type_names)
        if (name.word == word) return name.type;
    return Type::none;
}

unsigned size_of(Type type) {
    return type_names[static_cast<std::size_t>(type)].size;
}

bool is_signed(Type type) {
    return type >= Type::s8 && type <= Type::s64;
}

bool is_integer(Type type) {
    return type >= Type::b8 && type <= Type::s64;
}

bool is_half(Type type) {
    return type >= Type::f16 && type <= Type::bf16x2;
}

Literal literal_of(const Token& token) {
    std::string_view text = token.text;
    if (text.size() == 10 && text[0] == '0' && (text[1] == 'f' || text[1] == 'F'))
        return {Operand::Kind::float32, digits(token, text.substr(2), 16)};
    if (text.size() == 18 && text[0] == '0' && (text[1] == 'd' || text[1] == 'D'))
        return {Operand::Kind::float64, digits(token, text.substr(2), 16)};
    const bool based = text.size() > 1 && text[0] == '0';
    const bool hexadecimal = based && (text[1] == 'x' || text[1] == 'X');
    if (!hexadecimal && text.find_first_of(".eE") != std::string_view::npos) {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size())
            syntax_error(token, "a number");
        return {Operand::Kind::float64, std::bit_cast<std::uint64_t>(value)};
    }
    if (text.back() == 'U' || text.back() == 'u') text.remove_suffix(1);
    if (hexadecimal) return {Operand::Kind::integer, digits(token, text.substr(2), 16)};
    if (based && (text[1] == 'b' || text[1] == 'B'))
        return {Operand::Kind::integer, digits(token, text.substr(2), 2)};
    return {Operand::Kind::integer, digits(token, text, based && text.size() > 1 ? 8 : 10)};
}

} // namespace sim::ptx
