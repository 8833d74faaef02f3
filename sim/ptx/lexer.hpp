// Words of a PTX text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sim::ptx {

struct Token {
    enum class Kind : std::uint8_t {
        end,
        name,   // label, register, symbol, opcode root
        word,   // starts with a dot: directive, modifier, component
        number, // as written, sign excluded
        string, // without the quotes
        mark    // a single character of punctuation
    };
    Kind kind = Kind::end;
    std::string_view text;
    std::uint32_t line = 0;

    bool is(char mark) const { return kind == Kind::mark && text.front() == mark; }
    bool is(std::string_view word) const {
        return (kind == Kind::word || kind == Kind::name) && text == word;
    }
    /// Offset of the token in `whole`, the text that it was cut from.
    std::size_t offset_in(std::string_view whole) const {
        return static_cast<std::size_t>(text.data() - whole.data());
    }
};

/// Cuts a text into tokens. The text must outlive the tokens. Throws Error.
class Lexer {
public:
    explicit Lexer(std::string_view text, std::uint32_t line = 1) : text_(text), line_(line) {}
    Token next();
    /// After an opening brace was taken: everything up to the matching closing one, which is taken
    /// too. Much faster than cutting the part into tokens.
    std::string_view rest_of_braces();
    std::uint32_t line() const { return line_; }

private:
    void skip_space();
    void skip_comment();
    Token cut(Token::Kind kind, std::size_t begin, std::size_t length);
    char at(std::size_t offset) const {
        return position_ + offset < text_.size() ? text_[position_ + offset] : '\0';
    }

    std::string_view text_;
    std::size_t position_ = 0;
    std::uint32_t line_;
};

std::vector<Token> tokens_of(std::string_view text, std::uint32_t line);

} // namespace sim::ptx
