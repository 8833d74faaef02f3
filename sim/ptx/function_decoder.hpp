// Turns the statements of one function into instructions for the interpreter.
#pragma once

#include "ptx/handlers.hpp"
#include "ptx/ops/operations.hpp"
#include "ptx/program.hpp"

#include <initializer_list>
#include <optional>

namespace sim::ptx {

/// The words behind the root of an instruction. Each must be asked for, or the instruction counts
/// as unknown.
class Modifiers {
public:
    explicit Modifiers(const std::vector<std::string_view>& words) : words_(words) {}

    bool take(std::string_view word);
    /// Takes the first of the words that is there; its index, or -1.
    int take_one_of(std::initializer_list<std::string_view> words);
    void drop(std::initializer_list<std::string_view> words);
    void drop_starting_with(std::string_view prefix);
    /// The next word that is a type, from the left; Type::none when there is none.
    Type take_type();
    bool empty() const { return words_.empty(); }

private:
    std::vector<std::string_view> words_;
};

/// Where what a program declares lies in shared memory.
struct SharedLayout {
    std::vector<std::uint32_t> of_module;                              // by ModuleText::shared
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> own; // by function: Body::shared
};

class FunctionDecoder {
public:
    FunctionDecoder(const ModuleText& module, Program& program, const SharedLayout& shared,
                    std::uint32_t code_index);
    void decode();

private:
    using Method = void (FunctionDecoder::*)();
    struct FloatMode {
        Rounding rounding = Rounding::nearest;
        bool flush = false;
        bool saturate = false;
    };

    static const std::unordered_map<std::string_view, Method>& methods();

    // preparation
    void add_pieces();
    void count_definitions();
    void find_aliases();
    bool alias_source(const Statement& statement, std::uint32_t& destination,
                      Operand& source) const;
    void find_leaders();
    bool ends_block(const Statement& statement) const;
    bool converges(const Statement& statement) const;
    bool calls_pointer(const Statement& statement) const;

    // statements
    void statement(std::uint32_t index);
    [[noreturn]] void unknown(const std::string& why = "is not supported") const;
    void finish_block(Ending ending);
    void start_block();
    void require(bool condition, const char* why) const;

    // operands
    const Operand& operand(std::size_t index) const;
    std::uint32_t read(const Operand& operand, unsigned width, Type type = Type::none);
    std::uint32_t read(std::size_t index, Type type);
    std::uint32_t read_register(const Operand& operand);
    std::uint32_t read_special_register(std::string_view name, unsigned width,
                                        std::uint32_t destination = no_operand);
    std::uint32_t read_symbol(const Operand& operand, unsigned width);
    std::uint32_t write(const Operand& operand, unsigned width);
    std::uint32_t write(std::size_t index, Type type);
    std::uint32_t temporary(unsigned width);
    std::uint32_t literal(std::uint64_t bits, unsigned width);
    std::uint32_t constant(Constant constant);
    std::uint32_t carry();
    unsigned width_of(std::uint32_t operand) const;
    std::uint64_t literal_bits(const Operand& operand, unsigned width, Type type) const;

    // emission
    Instruction& emit(Handler handler, std::initializer_list<std::uint32_t> writes,
                      std::initializer_list<std::uint32_t> reads);
    Instruction& emit(Op op, Type type, std::initializer_list<std::uint32_t> writes,
                      std::initializer_list<std::uint32_t> reads);
    void wrap(Instruction& instruction, const FloatMode& mode) const;
    FloatMode float_mode();
    void finish_float(Type type, std::uint32_t destination, const FloatMode& mode);
    void float_operation(Op op, Type type, const FloatMode& mode, std::size_t sources);
    void simple(Op op, Type type, std::size_t sources);
    void simple_to(Op op, Type type, unsigned destination_width, std::size_t sources);
    void convert_register(std::uint32_t to, std::uint32_t from, const Conversion& conversion,
                          const FloatMode& mode);

    // arithmetic
    void add_or_sub();
    void carried_add_or_sub();
    void multiply();
    void multiply_add();
    void carried_multiply_add();
    void fused();
    void divide();
    void remainder();
    void absolute();
    void negate();
    void minimum_or_maximum();
    void unary_float();
    void copy_sign();
    void test_property();
    void multiply_24();
    void sum_of_differences();
    void logic();
    void shift();
    void funnel_shift();
    void bit_count();
    void bit_find();
    void bit_field();
    void bit_mask();
    void sign_extend();
    void permute_bytes();
    void logic3();
    void dot_product();
    void select();
    void select_by_sign();
    void set_predicate();
    void set_value();
    std::uint32_t comparison(Comparison comparison, Type type, bool flush);
    struct Halves {
        std::uint32_t low, high; // predicates
    };
    Halves compare_halves(Comparison comparison, Type type);
    void convert();
    void convert_pair(Type to, const FloatMode& mode);
    void move();
    void pack(const Operand& parts, Type type);
    void unpack(const Operand& parts, Type type);

    // memory
    struct Address {
        std::uint32_t operand;
        std::uint64_t offset;
    };
    std::optional<Space> take_space();
    void drop_cache_words();
    Address address(const Operand& operand);
    void set_memory(Instruction& instruction, const Address& address, Space space, unsigned bytes,
                    bool write);
    void load();
    void store();
    void load_parameter(const Operand& from, Type type, const std::vector<const Operand*>& to);
    void store_parameter(const Operand& to, Type type, const std::vector<const Operand*>& from);
    const std::vector<std::uint32_t>* pieces(const Symbol& symbol) const;
    std::vector<const Operand*> vector_parts(std::size_t index, unsigned count) const;
    void atomic();
    void reduction();
    void atomic_operation(bool returns);
    void to_generic();
    void in_space();
    void nothing();
    void cache_policy();
    void asynchronous_copy();

    // control
    void branch();
    void branch_table();
    void call();
    void call_builtin(std::string_view name, const Operand& arguments, const Operand* results);
    void leave();
    void leave_thread();
    void synchronise();
    void pause();
    void stop_with_trap();
    std::uint32_t wait_for(std::size_t members);
    void shuffle_lanes();
    void vote_lanes();
    void match_lanes();
    void active_lanes();
    void reduce_lanes();
    void elect_lane();
    void branch_targets();

    const ModuleText& module_;
    Program& program_;
    const SharedLayout& shared_;
    std::uint32_t code_index_;
    Code& code_;
    const FunctionText& function_;
    bool kernel_;

    std::vector<std::uint8_t> widths_;
    std::vector<bool> pinned_;
    std::vector<std::uint32_t> definitions_;
    std::vector<std::int32_t> alias_of_; // statement that defines a register which is only a name
    std::vector<Operand> alias_sources_;
    std::vector<bool> leader_;
    std::vector<std::uint32_t> block_of_;
    std::vector<std::vector<std::uint32_t>> argument_pieces_, parameter_pieces_, result_pieces_;
    std::uint32_t carry_ = no_operand;
    unsigned alias_depth_ = 0;

    const Statement* statement_ = nullptr;
    std::uint32_t statement_index_ = 0;
    Modifiers modifiers_{{}};
    Block block_;
};

} // namespace sim::ptx
