// What a PTX text says, before it is known how to execute it.
#pragma once

#include "ptx/ptx.hpp"

#include <deque>
#include <map>
#include <unordered_map>

namespace sim::ptx {

enum class Type : std::uint8_t {
    none,
    pred,
    b8,
    b16,
    b32,
    b64,
    u8,
    u16,
    u32,
    u64,
    s8,
    s16,
    s32,
    s64,
    f16,
    f16x2,
    bf16,
    bf16x2,
    f32,
    f64
};

/// ".u32" -> Type::u32; Type::none when it is no type.
Type type_named(std::string_view word);
/// Bytes in memory; 1 for predicates.
unsigned size_of(Type type);
bool is_signed(Type type);
bool is_integer(Type type); // b, u and s types
bool is_half(Type type);    // f16, bf16 and their pairs

/// Something that a name stands for.
struct Symbol {
    enum class Kind : std::uint8_t {
        none,
        variable,      // index into ModuleText::variables
        module_shared, // index into ModuleText::shared
        function,      // index into ModuleText::functions
        parameter,     // of the function itself: index into FunctionText::parameters
        result,        // of the function itself: index into FunctionText::results
        argument,      // .param of a call sequence: index into Body::arguments
        shared,        // index into Body::shared
        local          // index into Body::local
    };
    Kind kind = Kind::none;
    std::uint32_t index = 0;
};

struct Operand {
    enum class Kind : std::uint8_t {
        none,
        reg,     // index
        special, // text, "%tid.x"
        integer, // bits
        float32, // bits
        float64, // bits
        symbol,  // address of symbol + bits
        label,   // index of a statement
        address, // [register index or symbol or nothing, + bits]
        vector,  // {parts}
        list,    // (parts), of a call
        sink     // _
    };
    Kind kind = Kind::none;
    bool negated = false;  // !p
    bool has_base = false; // address: index is a register
    std::uint32_t index = 0;
    Symbol symbol;
    std::uint64_t bits = 0;
    std::vector<Operand> parts; // of a vector or list; of "p|q" the q
    std::string_view text;
};

struct Statement {
    std::string_view root; // "add"; ".branchtargets"; empty: the end of the function
    std::vector<std::string_view> modifiers;
    std::vector<Operand> operands;
    std::int32_t predicate = -1; // register
    bool predicate_negated = false;
    std::string_view text;
    std::uint32_t file = 0; // 0: unknown
    std::uint32_t line = 0;
};

struct Storage {
    std::string_view name;
    std::uint64_t bytes = 0;
    std::uint64_t alignment = 1;
    bool dynamic = false;     // extern .shared x[]
    std::uint64_t offset = 0; // of a parameter or local variable among its like
};

/// Puts them one behind the other, each at its alignment. Returns the bytes of all.
std::uint64_t lay_out(std::vector<Storage>& list);

struct Body {
    std::vector<Type> registers;
    std::vector<Storage> arguments, shared, local;
    std::vector<Statement> statements;
    std::vector<bool> labelled; // by statement: a label stands before it
};

struct FunctionText {
    std::string name;
    bool entry = false;
    bool defined = false;
    std::vector<Storage> parameters, results;
    std::string_view body; // without the braces
    std::uint32_t unit = 0;
    std::uint32_t body_line = 0;
    std::uint32_t max_threads = 1024;
};

using Names = std::map<std::string, Symbol, std::less<>>;

/// One text or, after separate compilation, several ones that share their public names.
struct ModuleText {
    std::string text;
    std::vector<Variable> variables;
    std::vector<bool> variable_is_extern;
    std::vector<Storage> shared;
    std::deque<FunctionText> functions;
    Names public_names;
    std::deque<Names> private_names; // by unit; each `.version` starts one
    std::deque<std::unordered_map<std::uint32_t, std::string_view>> files; // by unit

    Symbol find(std::uint32_t unit, std::string_view name) const;
};

/// The declarations of a module; bodies of functions are only delimited.
void parse_module(ModuleText& module);
/// A body of `module`. Throws Error naming the function and the line.
Body parse_body(const ModuleText& module, const FunctionText& function);

/// Address of a function as the program sees it. No memory is there.
inline constexpr std::uint64_t function_addresses = std::uint64_t{1} << 48 | std::uint64_t{3} << 40;
inline constexpr std::uint64_t function_spacing = 16;

inline std::uint64_t aligned(std::uint64_t value, std::uint64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

} // namespace sim::ptx
