#include "ptx/lexer.hpp"

#include "ptx/ptx.hpp"

namespace sim::ptx {
namespace {

bool starts_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool continues_name(char c) {
    return starts_name(c) || is_digit(c);
}

constexpr std::string_view marks = ",;(){}[]:|!+-=<>@~*/&^?";

[[noreturn]] void fail(std::uint32_t line, const std::string& what) {
    throw Error("PTX line " + std::to_string(line) + ": " + what);
}

} // namespace

void Lexer::skip_comment() {
    if (at(1) == '/') {
        while (position_ < text_.size() && at(0) != '\n')
            ++position_;
        return;
    }
    const std::uint32_t begun = line_;
    for (position_ += 2; at(0) != '*' || at(1) != '/'; ++position_) {
        if (position_ >= text_.size()) fail(begun, "this comment has no end");
        if (at(0) == '\n') ++line_;
    }
    position_ += 2;
}

void Lexer::skip_space() {
    while (position_ < text_.size()) {
        const char c = at(0);
        if (c == '\n') ++line_;
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0')
            ++position_;
        else if (c == '/' && (at(1) == '/' || at(1) == '*'))
            skip_comment();
        else
            return;
    }
}

Token Lexer::cut(Token::Kind kind, std::size_t begin, std::size_t length) {
    return {kind, text_.substr(begin, length), line_};
}

Token Lexer::next() {
    skip_space();
    const std::size_t begin = position_;
    if (begin >= text_.size()) return {Token::Kind::end, text_.substr(text_.size()), line_};
    const char c = at(0);
    if (starts_name(c)) {
        while (continues_name(at(0)))
            ++position_;
        return cut(Token::Kind::name, begin, position_ - begin);
    }
    if (c == '.' && continues_name(at(1))) {
        ++position_;
        while (continues_name(at(0)) || (at(0) == ':' && at(1) == ':' && continues_name(at(2))))
            position_ += at(0) == ':' ? 2 : 1;
        return cut(Token::Kind::word, begin, position_ - begin);
    }
    if (is_digit(c)) {
        const bool based = c == '0' && continues_name(at(1));
        while (continues_name(at(0)) || (at(0) == '.' && is_digit(at(1))) ||
               (!based && (at(0) == '+' || at(0) == '-') &&
                (text_[position_ - 1] == 'e' || text_[position_ - 1] == 'E')))
            ++position_;
        return cut(Token::Kind::number, begin, position_ - begin);
    }
    if (c == '"') {
        do
            ++position_;
        while (position_ < text_.size() && at(0) != '"' && at(0) != '\n');
        if (at(0) != '"') fail(line_, "this string has no end");
        ++position_;
        return cut(Token::Kind::string, begin + 1, position_ - begin - 2);
    }
    if (marks.find(c) == std::string_view::npos)
        fail(line_, "unexpected character code " + std::to_string(static_cast<unsigned char>(c)));
    ++position_;
    return cut(Token::Kind::mark, begin, 1);
}

std::string_view Lexer::rest_of_braces() {
    const std::size_t begin = position_;
    const std::uint32_t begun = line_;
    for (unsigned depth = 1;;) {
        skip_space();
        if (position_ >= text_.size()) fail(begun, "this { has no }");
        const char c = at(0);
        ++position_;
        if (c == '"') {
            while (position_ < text_.size() && at(0) != '"' && at(0) != '\n')
                ++position_;
            if (at(0) == '"') ++position_;
        }
        if (c == '{') ++depth;
        if (c == '}' && --depth == 0) return text_.substr(begin, position_ - 1 - begin);
    }
}

std::vector<Token> tokens_of(std::string_view text, std::uint32_t line) {
    Lexer lexer(text, line);
    std::vector<Token> tokens;
    do
        tokens.push_back(lexer.next());
    while (tokens.back().kind != Token::Kind::end);
    return tokens;
}

} // namespace sim::ptx
