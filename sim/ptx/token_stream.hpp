// A cursor over tokens and the parts of the grammar that declarations and instructions share.
#pragma once

#include "ptx/lexer.hpp"
#include "ptx/syntax.hpp"

namespace sim::ptx {

struct Literal {
    Operand::Kind kind = Operand::Kind::integer; // integer, float32 or float64
    std::uint64_t bits = 0;
};

[[noreturn]] void syntax_error(const Token& token, const std::string& expected);

/// A number as PTX writes it, sign excluded.
Literal literal_of(const Token& token);

/// `Source` has `const Token& peek()` and `Token take()`.
template <class Source> bool accept(Source& source, char mark) {
    if (!source.peek().is(mark)) return false;
    source.take();
    return true;
}

template <class Source> void expect(Source& source, char mark) {
    if (!accept(source, mark)) syntax_error(source.peek(), std::string("'") + mark + "'");
}

template <class Source> std::uint64_t expect_integer(Source& source) {
    const Token token = source.take();
    if (token.kind != Token::Kind::number) syntax_error(token, "a number");
    const Literal literal = literal_of(token);
    if (literal.kind != Operand::Kind::integer) syntax_error(token, "an integer");
    return literal.bits;
}

template <class Source> Token expect_name(Source& source) {
    const Token token = source.take();
    if (token.kind != Token::Kind::name) syntax_error(token, "a name");
    return token;
}

/// Directives without a semicolon end with their line.
template <class Source> void skip_line(Source& source, std::uint32_t line) {
    while (source.peek().kind != Token::Kind::end && source.peek().line == line)
        source.take();
}

template <class Source> void skip_statement(Source& source) {
    while (source.peek().kind != Token::Kind::end && !source.take().is(';')) {
    }
}

/// What follows the state space of a declaration: `.align 8 .v2 .b8 name[4][6]`.
struct Declared {
    Type type = Type::none;
    Storage storage;
    std::uint64_t elements = 1;
};

template <class Source> Declared parse_declared(Source& source) {
    Declared declared;
    std::uint64_t vector = 1;
    std::uint64_t alignment = 0;
    for (; source.peek().kind == Token::Kind::word;) {
        const Token word = source.take();
        if (word.text == ".align") {
            alignment = expect_integer(source);
        } else if (word.text == ".v2" || word.text == ".v4") {
            vector = word.text == ".v2" ? 2 : 4;
        } else if (word.text == ".ptr") {
            // says where a pointer points to and how it is aligned: of no use here
            if (source.peek().kind == Token::Kind::word && source.peek().text != ".align")
                source.take();
            if (source.peek().is(".align")) {
                source.take();
                expect_integer(source);
            }
        } else if (word.text == ".attribute") {
            expect(source, '(');
            while (!accept(source, ')')) {
                if (source.take().kind == Token::Kind::end) syntax_error(word, "')'");
            }
        } else if (const Type type = type_named(word.text); type != Type::none) {
            declared.type = type;
        } else {
            syntax_error(word, "a type");
        }
    }
    if (declared.type == Type::none) syntax_error(source.peek(), "a type");
    declared.storage.name = expect_name(source).text;
    declared.elements = vector;
    while (accept(source, '[')) {
        if (accept(source, ']')) {
            declared.storage.dynamic = true;
            continue;
        }
        const std::uint64_t count = expect_integer(source);
        if (count != 0 && declared.elements > (std::uint64_t{1} << 40) / count)
            syntax_error(source.peek(), "a smaller array");
        declared.elements *= count;
        expect(source, ']');
    }
    const std::uint64_t size = size_of(declared.type);
    declared.storage.bytes = declared.storage.dynamic ? 0 : declared.elements * size;
    declared.storage.alignment = alignment != 0 ? alignment : size * vector;
    if (alignment > 4096 || (declared.storage.alignment & (declared.storage.alignment - 1)) != 0)
        syntax_error(source.peek(), "an alignment that is a power of two");
    return declared;
}

} // namespace sim::ptx
