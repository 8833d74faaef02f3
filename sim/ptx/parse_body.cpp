// Declarations and instructions inside a function.
#include "ptx/token_stream.hpp"

#include <algorithm>
#include <charconv>

namespace sim::ptx {
namespace {

/// Most registers that one directive may declare: keeps a damaged text from asking for all memory.
constexpr std::uint64_t most_registers = 1u << 20;
constexpr unsigned deepest_braces = 256;

struct RegisterRange {
    std::uint32_t first;
    std::uint32_t count;
};

struct LabelUse {
    std::size_t statement;
    std::size_t operand;
    Token token;
};

struct Scope {
    std::unordered_map<std::string_view, std::uint32_t> registers;
    std::unordered_map<std::string_view, RegisterRange> ranges;
    std::unordered_map<std::string_view, Symbol> symbols;
    std::unordered_map<std::string_view, std::uint32_t> labels;
    std::vector<LabelUse> uses;
};

struct Place {
    std::uint32_t file = 0;
    std::uint32_t line = 0;
};

class BodyParser {
public:
    BodyParser(const ModuleText& module, const FunctionText& function)
        : module_(module), function_(function),
          tokens_(tokens_of(function.body, function.body_line)) {
        for (std::uint32_t i = 0; i < function.parameters.size(); ++i)
            parameters_[function.parameters[i].name] = {Symbol::Kind::parameter, i};
        for (std::uint32_t i = 0; i < function.results.size(); ++i)
            parameters_[function.results[i].name] = {Symbol::Kind::result, i};
    }

    const Token& peek() const { return tokens_[position_]; }
    Token take() {
        const Token token = tokens_[position_];
        if (token.kind != Token::Kind::end) ++position_;
        return token;
    }

    Body parse() {
        scopes_.emplace_back();
        while (peek().kind != Token::Kind::end)
            item();
        if (scopes_.size() != 1) syntax_error(peek(), "'}'");
        body_.labelled.push_back(true);
        body_.statements.emplace_back();
        close_scope();
        lay_out(body_.local);
        return std::move(body_);
    }

private:
    void item() {
        const Token& token = peek();
        if (accept(*this, '{')) return open_scope(token);
        if (token.is('}')) {
            if (scopes_.size() == 1) syntax_error(token, "no '}'");
            close_scope();
            take();
            return;
        }
        if (accept(*this, ';')) return;
        if (token.kind == Token::Kind::word) return directive(take());
        if (token.kind == Token::Kind::name && tokens_[position_ + 1].is(':')) return label();
        instruction();
    }

    void open_scope(const Token& token) {
        if (scopes_.size() >= deepest_braces) syntax_error(token, "fewer nested braces");
        scopes_.emplace_back();
    }

    void close_scope() {
        Scope scope = std::move(scopes_.back());
        scopes_.pop_back();
        for (const LabelUse& use : scope.uses) {
            Operand& operand = body_.statements[use.statement].operands[use.operand];
            if (const auto found = scope.labels.find(operand.text); found != scope.labels.end())
                operand.index = found->second;
            else if (!scopes_.empty())
                scopes_.back().uses.push_back(use);
            else
                syntax_error(use.token, "a known name");
        }
    }

    void label() {
        const Token name = take();
        expect(*this, ':');
        mark_label();
        scopes_.back().labels[name.text] = static_cast<std::uint32_t>(body_.statements.size());
    }

    void mark_label() {
        body_.labelled.resize(body_.statements.size() + 1);
        body_.labelled.back() = true;
    }

    void directive(const Token& token) {
        if (token.is(".reg")) return registers();
        if (token.is(".param")) return storage(body_.arguments, Symbol::Kind::argument);
        if (token.is(".shared")) return storage(body_.shared, Symbol::Kind::shared);
        if (token.is(".local")) return storage(body_.local, Symbol::Kind::local);
        if (token.is(".loc")) return location(token);
        if (token.is(".pragma") || token.is(".callprototype")) return skip_statement(*this);
        if (token.is(".branchtargets") || token.is(".calltargets")) return targets(token);
        if (token.is(".file")) return skip_line(*this, token.line);
        syntax_error(token, "an instruction or a known directive");
    }

    void registers() {
        const Token type_token = take();
        const Type type = type_named(type_token.text);
        if (type == Type::none) syntax_error(type_token, "the type of a register");
        do {
            const Token name = expect_name(*this);
            const auto first = static_cast<std::uint32_t>(body_.registers.size());
            std::uint64_t count = 1;
            if (accept(*this, '<')) {
                count = expect_integer(*this);
                expect(*this, '>');
                if (count > most_registers || body_.registers.size() > most_registers)
                    syntax_error(name, "fewer registers");
                scopes_.back().ranges[name.text] = {first, static_cast<std::uint32_t>(count)};
            } else {
                scopes_.back().registers[name.text] = first;
            }
            body_.registers.insert(body_.registers.end(), count, type);
        } while (accept(*this, ','));
        expect(*this, ';');
    }

    void storage(std::vector<Storage>& list, Symbol::Kind kind) {
        do {
            const Declared declared = parse_declared(*this);
            list.push_back(declared.storage);
            list.back().name = {}; // the name lives in the scope
            scopes_.back().symbols[declared.storage.name] = {
                kind, static_cast<std::uint32_t>(list.size() - 1)};
        } while (accept(*this, ','));
        expect(*this, ';');
    }

    /// `.loc file line column` and, for what was inlined, `, function_name x, inlined_at f l c`.
    /// What counts is the line in the function's own file, not in a header of the toolkit.
    void location(const Token& directive) {
        const Place place{static_cast<std::uint32_t>(expect_integer(*this)),
                          static_cast<std::uint32_t>(expect_integer(*this))};
        Place outer;
        while (peek().kind != Token::Kind::end && peek().line == directive.line) {
            if (take().text != "inlined_at") continue;
            outer.file = static_cast<std::uint32_t>(expect_integer(*this));
            outer.line = static_cast<std::uint32_t>(expect_integer(*this));
        }
        if (own_file_ == 0) own_file_ = place.file;
        if (outer.file != 0) inlined_[{place.file, place.line}] = outer;
        place_ = place;
        for (int depth = 0; place_.file != own_file_ && depth < 32; ++depth) {
            const auto found = inlined_.find({place_.file, place_.line});
            if (found == inlined_.end()) break;
            place_ = found->second;
        }
    }

    void targets(const Token& directive) {
        Statement& statement = start_statement(directive);
        do
            label_operand(statement, expect_name(*this));
        while (accept(*this, ','));
        finish_statement(directive);
    }

    Statement& start_statement(const Token& first) {
        body_.labelled.resize(body_.statements.size() + 1);
        Statement& statement = body_.statements.emplace_back();
        statement.root = first.text;
        statement.file = place_.file;
        statement.line = place_.line;
        return statement;
    }

    void finish_statement(const Token& first) {
        const Token end = peek();
        expect(*this, ';');
        const std::size_t begin = first.offset_in(function_.body);
        body_.statements.back().text =
            function_.body.substr(begin, end.offset_in(function_.body) + 1 - begin);
    }

    void instruction() {
        const Token first = peek();
        std::int32_t predicate = -1;
        bool negated = false;
        if (accept(*this, '@')) {
            negated = accept(*this, '!');
            const Token name = expect_name(*this);
            predicate = find_register(name.text);
            if (predicate < 0) syntax_error(name, "a declared predicate");
        }
        const Token root = expect_name(*this);
        Statement& statement = start_statement(root);
        statement.predicate = predicate;
        statement.predicate_negated = negated;
        while (peek().kind == Token::Kind::word)
            statement.modifiers.push_back(take().text);
        if (!peek().is(';')) {
            do
                statement.operands.push_back(operand());
            while (accept(*this, ','));
        }
        collect_labels(statement, root);
        finish_statement(first);
    }

    void label_operand(Statement& statement, const Token& token) {
        Operand operand;
        operand.kind = Operand::Kind::label;
        operand.text = token.text;
        statement.operands.push_back(operand);
        scopes_.back().uses.push_back(
            {body_.statements.size() - 1, statement.operands.size() - 1, token});
    }

    void collect_labels(const Statement& statement, const Token& token) {
        for (std::size_t i = 0; i < statement.operands.size(); ++i)
            if (statement.operands[i].kind == Operand::Kind::label)
                scopes_.back().uses.push_back(
                    {body_.statements.size() - 1,
                     i,
                     {Token::Kind::name, statement.operands[i].text, token.line}});
    }

    std::int32_t find_register(std::string_view name) const {
        std::string_view prefix = name;
        while (!prefix.empty() && prefix.back() >= '0' && prefix.back() <= '9')
            prefix.remove_suffix(1);
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
            if (const auto found = scope->registers.find(name); found != scope->registers.end())
                return static_cast<std::int32_t>(found->second);
            // a prefix may itself end with digits, so every split is tried
            for (std::size_t cut = prefix.size(); cut < name.size(); ++cut) {
                const auto found = scope->ranges.find(name.substr(0, cut));
                if (found == scope->ranges.end()) continue;
                std::uint32_t number = 0;
                const auto [end, error] =
                    std::from_chars(name.data() + cut, name.data() + name.size(), number);
                if (error == std::errc() && number < found->second.count)
                    return static_cast<std::int32_t>(found->second.first + number);
            }
        }
        return -1;
    }

    Symbol find_symbol(std::string_view name) const {
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
            if (const auto found = scope->symbols.find(name); found != scope->symbols.end())
                return found->second;
        if (const auto found = parameters_.find(name); found != parameters_.end())
            return found->second;
        return module_.find(function_.unit, name);
    }

    Operand operand() {
        Operand result = simple_operand();
        if (accept(*this, '|')) {
            const Operand second = simple_operand();
            result.parts.push_back(second);
        }
        return result;
    }

    Operand simple_operand() {
        if (peek().is('[')) return address();
        if (peek().is('{')) return group('{', '}', Operand::Kind::vector);
        if (peek().is('(')) return group('(', ')', Operand::Kind::list);
        if (accept(*this, '!')) {
            Operand operand = named(expect_name(*this));
            operand.negated = true;
            return operand;
        }
        if (peek().is('-') || peek().kind == Token::Kind::number) return number();
        return named(expect_name(*this));
    }

    Operand number() {
        const bool negative = accept(*this, '-');
        const Token token = take();
        if (token.kind != Token::Kind::number) syntax_error(token, "a number");
        const Literal literal = literal_of(token);
        Operand operand;
        operand.kind = literal.kind;
        operand.bits = literal.bits;
        if (!negative) return operand;
        if (literal.kind == Operand::Kind::float32)
            operand.bits ^= 0x80000000u;
        else if (literal.kind == Operand::Kind::float64)
            operand.bits ^= std::uint64_t{1} << 63;
        else
            operand.bits = 0 - operand.bits;
        return operand;
    }

    Operand named(const Token& token) {
        Operand operand;
        operand.text = token.text;
        if (token.text == "_") {
            operand.kind = Operand::Kind::sink;
            return operand;
        }
        if (token.text == "WARP_SZ") {
            operand.kind = Operand::Kind::integer;
            operand.bits = 32;
            return operand;
        }
        if (const std::int32_t index = find_register(token.text); index >= 0) {
            operand.kind = Operand::Kind::reg;
            operand.index = static_cast<std::uint32_t>(index);
            return operand;
        }
        if (token.text.front() == '%') return special(token);
        operand.symbol = find_symbol(token.text);
        if (operand.symbol.kind == Symbol::Kind::none) {
            operand.kind = Operand::Kind::label;
            return operand;
        }
        operand.kind = Operand::Kind::symbol;
        operand.bits = addend();
        return operand;
    }

    Operand special(const Token& token) {
        Operand operand;
        operand.kind = Operand::Kind::special;
        operand.text = token.text;
        if (peek().kind == Token::Kind::word) {
            const Token component = take();
            const std::size_t begin = token.offset_in(function_.body);
            operand.text = function_.body.substr(begin, component.offset_in(function_.body) +
                                                            component.text.size() - begin);
        }
        return operand;
    }

    std::uint64_t addend() {
        std::uint64_t sum = 0;
        while (peek().is('+') || peek().is('-')) {
            bool negative = take().is('-');
            if (accept(*this, '-')) negative = !negative;
            const std::uint64_t value = expect_integer(*this);
            sum += negative ? 0 - value : value;
        }
        return sum;
    }

    Operand address() {
        expect(*this, '[');
        Operand operand;
        operand.kind = Operand::Kind::address;
        if (peek().kind == Token::Kind::name) {
            const Token name = take();
            if (const std::int32_t index = find_register(name.text); index >= 0) {
                operand.has_base = true;
                operand.index = static_cast<std::uint32_t>(index);
            } else {
                operand.symbol = find_symbol(name.text);
                if (operand.symbol.kind == Symbol::Kind::none)
                    syntax_error(name, "a register or variable");
            }
            operand.text = name.text;
            operand.bits = addend();
        } else {
            const bool negative = accept(*this, '-');
            const std::uint64_t value = expect_integer(*this);
            operand.bits = (negative ? 0 - value : value) + addend();
        }
        expect(*this, ']');
        return operand;
    }

    Operand group(char open, char close, Operand::Kind kind) {
        Operand operand;
        operand.kind = kind;
        expect(*this, open);
        if (accept(*this, close)) return operand;
        do {
            if (peek().is('{') || peek().is('(') || peek().is('['))
                syntax_error(peek(), "a register or number");
            operand.parts.push_back(simple_operand());
        } while (accept(*this, ','));
        expect(*this, close);
        return operand;
    }

    const ModuleText& module_;
    const FunctionText& function_;
    std::vector<Token> tokens_;
    std::size_t position_ = 0;
    std::unordered_map<std::string_view, Symbol> parameters_;
    std::vector<Scope> scopes_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Place> inlined_;
    std::uint32_t own_file_ = 0;
    Place place_;
    Body body_;
};

} // namespace

Body parse_body(const ModuleText& module, const FunctionText& function) {
    try {
        return BodyParser(module, function).parse();
    } catch (const Error& error) {
        throw Error(demangle(function.name) + ": " + error.what());
    }
}

} // namespace sim::ptx
