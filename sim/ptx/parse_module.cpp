// Declarations of a module: variables with their initial bytes, functions with their parameters.
#include "ptx/token_stream.hpp"

#include <algorithm>
#include <cstring>

namespace sim::ptx {
namespace {

enum class Linkage : std::uint8_t { hidden, shared_name, external };

/// Longest variable that is accepted: keeps a damaged text from asking for all memory.
constexpr std::uint64_t largest_variable = std::uint64_t{1} << 36;
constexpr std::uint64_t largest_initialised = std::uint64_t{1} << 30;

class ModuleParser {
public:
    explicit ModuleParser(ModuleText& module)
        : module_(module), lexer_(module.text), next_(lexer_.next()) {}

    const Token& peek() const { return next_; }
    Token take() {
        const Token token = next_;
        next_ = lexer_.next();
        return token;
    }

    void parse() {
        while (peek().kind != Token::Kind::end)
            directive();
        resolve_references();
    }

private:
    struct Reference {
        std::size_t variable;
        std::uint64_t offset;
        std::uint64_t addend;
        std::string_view name;
        std::uint32_t unit;
        Token token;
    };

    void directive() {
        const Token token = take();
        if (token.is(".version"))
            start_unit(token);
        else if (module_.private_names.empty())
            syntax_error(token, ".version");
        else if (token.is(".target") || token.is(".address_size") || token.is(".loc"))
            skip_line(*this, token.line);
        else if (token.is(".file"))
            file(token);
        else if (token.is(".section"))
            section();
        else if (token.is(".pragma") || token.is(".tex") || token.is(".texref") ||
                 token.is(".samplerref") || token.is(".surfref"))
            skip_statement(*this);
        else if (token.is(".alias"))
            alias();
        else
            declaration(token);
    }

    void start_unit(const Token& token) {
        skip_line(*this, token.line);
        module_.private_names.emplace_back();
        module_.files.emplace_back();
    }

    std::uint32_t unit() const {
        return static_cast<std::uint32_t>(module_.private_names.size()) - 1;
    }

    void file(const Token& directive) {
        const auto index = static_cast<std::uint32_t>(expect_integer(*this));
        if (peek().kind == Token::Kind::string) module_.files.back()[index] = take().text;
        skip_line(*this, directive.line);
    }

    void section() {
        take();
        if (!peek().is('{')) syntax_error(peek(), "'{'");
        skip_braces();
    }

    /// The brace is the token looked at; the lexer stands right behind it.
    std::string_view skip_braces() {
        const std::string_view inside = lexer_.rest_of_braces();
        next_ = lexer_.next();
        return inside;
    }

    void alias() {
        const Token name = expect_name(*this);
        expect(*this, ',');
        const Token target = expect_name(*this);
        const Symbol symbol = module_.find(unit(), target.text);
        if (symbol.kind != Symbol::Kind::function) syntax_error(target, "the name of a function");
        module_.private_names.back().insert_or_assign(std::string(name.text), symbol);
        module_.public_names.insert_or_assign(std::string(name.text), symbol);
        expect(*this, ';');
    }

    void declaration(Token token) {
        Linkage linkage = Linkage::hidden;
        for (;; token = take()) {
            if (token.is(".visible") || token.is(".weak") || token.is(".common"))
                linkage = Linkage::shared_name;
            else if (token.is(".extern"))
                linkage = Linkage::external;
            else
                break;
        }
        if (token.is(".entry") || token.is(".func")) return function(token, linkage);
        if (token.is(".global") || token.is(".const"))
            return variables(token.is(".const"), linkage);
        if (token.is(".shared")) return shared(linkage);
        syntax_error(token, "a declaration");
    }

    Symbol* known(std::string_view name, Linkage linkage) {
        Names& names =
            linkage == Linkage::hidden ? module_.private_names.back() : module_.public_names;
        const auto found = names.find(name);
        return found == names.end() ? nullptr : &found->second;
    }

    void name(std::string_view name, Linkage linkage, Symbol symbol) {
        module_.private_names.back().insert_or_assign(std::string(name), symbol);
        if (linkage != Linkage::hidden)
            module_.public_names.insert_or_assign(std::string(name), symbol);
    }

    void shared(Linkage linkage) {
        do {
            Declared declared = parse_declared(*this);
            const auto index = static_cast<std::uint32_t>(module_.shared.size());
            module_.shared.push_back(declared.storage);
            name(declared.storage.name, linkage, {Symbol::Kind::module_shared, index});
        } while (accept(*this, ','));
        expect(*this, ';');
    }

    void variables(bool constant, Linkage linkage) {
        const Token first = peek();
        const Declared declared = parse_declared(*this);
        if (declared.storage.bytes > largest_variable) syntax_error(first, "a smaller variable");
        Variable variable;
        variable.name = declared.storage.name;
        variable.bytes = declared.storage.bytes;
        variable.alignment = declared.storage.alignment;
        variable.constant = constant;

        std::size_t index = module_.variables.size();
        bool keep = true;
        if (const Symbol* before = known(variable.name, linkage);
            before != nullptr && before->kind == Symbol::Kind::variable) {
            index = before->index;
            keep = module_.variable_is_extern[index];
        }
        if (accept(*this, '=')) initialise(variable, index, declared, keep);
        expect(*this, ';');

        const std::string_view text = declared.storage.name;
        name(text, linkage, {Symbol::Kind::variable, static_cast<std::uint32_t>(index)});
        const bool external = linkage == Linkage::external;
        if (index == module_.variables.size()) {
            module_.variables.push_back(std::move(variable));
            module_.variable_is_extern.push_back(external);
        } else if (keep && !external) {
            module_.variables[index] = std::move(variable);
            module_.variable_is_extern[index] = false;
        }
    }

    void initialise(Variable& variable, std::size_t index, const Declared& declared, bool keep) {
        const Token begin = peek();
        std::uint64_t offset = 0;
        const unsigned size = size_of(declared.type);
        if (begin.is('{'))
            initialiser_list(variable, index, declared.type, offset, keep);
        else
            initial_value(variable, index, declared.type, offset, keep);
        if (variable.initial.size() > declared.storage.bytes || size == 0)
            syntax_error(begin, "no more values than the variable holds");
    }

    void initialiser_list(Variable& variable, std::size_t index, Type type, std::uint64_t& offset,
                          bool keep) {
        expect(*this, '{');
        if (accept(*this, '}')) return;
        do {
            if (peek().is('{'))
                initialiser_list(variable, index, type, offset, keep);
            else
                initial_value(variable, index, type, offset, keep);
        } while (accept(*this, ','));
        expect(*this, '}');
    }

    void initial_value(Variable& variable, std::size_t index, Type type, std::uint64_t& offset,
                       bool keep) {
        const unsigned size = size_of(type);
        if (offset + size > largest_initialised) syntax_error(peek(), "a shorter initialiser");
        variable.initial.resize(offset + size);
        std::byte* place = variable.initial.data() + offset;
        if (peek().kind == Token::Kind::name) {
            address(index, offset, keep);
        } else {
            const bool negative = accept(*this, '-');
            const Token token = take();
            if (token.kind != Token::Kind::number) syntax_error(token, "a number or a name");
            const Literal literal = literal_of(token);
            if (peek().is('('))
                masked_address(index, offset, literal.bits, keep);
            else if (literal.kind == Operand::Kind::float64 && type != Type::f32 && size < 8)
                syntax_error(token, "a number of " + std::to_string(size) + " bytes");
            else
                store(place, type, literal, negative);
        }
        offset += size;
    }

    static void store(std::byte* place, Type type, const Literal& literal, bool negative) {
        std::uint64_t bits = literal.bits;
        if (literal.kind == Operand::Kind::float64) {
            double value;
            std::memcpy(&value, &bits, sizeof value);
            value = negative ? -value : value;
            if (type == Type::f32) {
                const float narrow = static_cast<float>(value);
                std::memcpy(place, &narrow, sizeof narrow);
                return;
            }
            std::memcpy(place, &value, sizeof value);
            return;
        }
        if (negative) bits = literal.kind == Operand::Kind::float32 ? bits ^ 0x80000000u : 0 - bits;
        std::memcpy(place, &bits, size_of(type));
    }

    /// `name`, `generic(name)`, either with `+ offset`.
    void address(std::size_t variable, std::uint64_t offset, bool keep) {
        Token token = expect_name(*this);
        std::uint64_t addend = 0;
        if (token.text == "generic") {
            expect(*this, '(');
            token = expect_name(*this);
            addend = optional_addend();
            expect(*this, ')');
        }
        addend += optional_addend();
        if (keep) references_.push_back({variable, offset, addend, token.text, unit(), token});
    }

    /// `0xFF00(name)`: one byte of an address. The first byte stands for all eight.
    void masked_address(std::size_t variable, std::uint64_t offset, std::uint64_t mask, bool keep) {
        expect(*this, '(');
        address(variable, offset, keep && mask == 0xFF);
        expect(*this, ')');
    }

    std::uint64_t optional_addend() {
        if (accept(*this, '+')) return expect_integer(*this);
        if (accept(*this, '-')) return 0 - expect_integer(*this);
        return 0;
    }

    void resolve_references() {
        for (const Reference& reference : references_) {
            const Symbol symbol = module_.find(reference.unit, reference.name);
            Variable& variable = module_.variables[reference.variable];
            if (reference.offset + 8 > variable.bytes)
                syntax_error(reference.token, "room for an address");
            variable.initial.resize(
                std::max<std::size_t>(variable.initial.size(), reference.offset + 8));
            std::uint64_t bits = reference.addend;
            if (symbol.kind == Symbol::Kind::function)
                bits += function_addresses + symbol.index * function_spacing;
            else if (symbol.kind == Symbol::Kind::variable)
                variable.relocations.emplace_back(reference.offset, symbol.index);
            else
                syntax_error(reference.token, "the name of a variable or function");
            std::memcpy(variable.initial.data() + reference.offset, &bits, sizeof bits);
        }
    }

    std::vector<Storage> parameters() {
        std::vector<Storage> list;
        expect(*this, '(');
        if (accept(*this, ')')) return list;
        do {
            const Token space = take();
            if (!space.is(".param")) syntax_error(space, ".param");
            list.push_back(parse_declared(*this).storage);
        } while (accept(*this, ','));
        expect(*this, ')');
        return list;
    }

    void function(const Token& directive, Linkage linkage) {
        FunctionText function;
        function.entry = directive.is(".entry");
        function.unit = unit();
        if (peek().is(".attribute")) syntax_error(peek(), "a function without attributes");
        if (peek().is('(')) function.results = parameters();
        function.name = expect_name(*this).text;
        if (peek().is('(')) function.parameters = parameters();
        lay_out(function.parameters);
        performance_directives(function);
        if (!accept(*this, ';')) {
            if (!peek().is('{')) syntax_error(peek(), "'{' or ';'");
            function.body_line = lexer_.line();
            function.body = skip_braces();
            function.defined = true;
        }
        add(std::move(function), linkage);
    }

    void performance_directives(FunctionText& function) {
        while (!peek().is('{') && !peek().is(';')) {
            const Token token = take();
            if (token.kind == Token::Kind::end) syntax_error(token, "'{' or ';'");
            if (token.is(".maxntid") || token.is(".reqntid")) function.max_threads = thread_count();
        }
    }

    std::uint32_t thread_count() {
        std::uint64_t count = 1;
        do
            count *= std::min<std::uint64_t>(expect_integer(*this), 1024);
        while (accept(*this, ','));
        return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(count, 1, 1024));
    }

    void add(FunctionText function, Linkage linkage) {
        const std::string text = function.name;
        std::size_t index = module_.functions.size();
        if (const Symbol* before = known(text, linkage);
            before != nullptr && before->kind == Symbol::Kind::function)
            index = before->index;
        name(text, linkage, {Symbol::Kind::function, static_cast<std::uint32_t>(index)});
        if (index == module_.functions.size())
            module_.functions.push_back(std::move(function));
        else if (!module_.functions[index].defined && function.defined)
            module_.functions[index] = std::move(function);
    }

    ModuleText& module_;
    Lexer lexer_;
    Token next_;
    std::vector<Reference> references_;
};

} // namespace

std::uint64_t lay_out(std::vector<Storage>& list) {
    std::uint64_t end = 0;
    for (Storage& storage : list) {
        storage.offset = aligned(end, std::max<std::uint64_t>(storage.alignment, 1));
        end = storage.offset + storage.bytes;
    }
    return end;
}

Symbol ModuleText::find(std::uint32_t unit, std::string_view name) const {
    const Names& hidden = private_names[unit];
    if (const auto found = hidden.find(name); found != hidden.end()) return found->second;
    const auto found = public_names.find(name);
    return found == public_names.end() ? Symbol{} : found->second;
}

void parse_module(ModuleText& module) {
    ModuleParser(module).parse();
}

} // namespace sim::ptx
