// A kernel, decoded: what the interpreter runs.
#pragma once

#include "ptx/lanes.hpp"
#include "ptx/syntax.hpp"

namespace sim::ptx {

/// Bytes from one register's array to the next, by the register's width. The extra line keeps
/// arrays from lying at the same place of a page, which slows loads behind stores.
inline std::uint32_t array_bytes(unsigned width) {
    return group_lanes * width + 64;
}

/// A value that is the same for all threads and blocks of a launch.
struct Constant {
    enum class Kind : std::uint8_t {
        literal,  // bits
        variable, // address of variable `index` + bits
        parameter // what the launch's parameters hold at offset bits, read as `type`
    };
    Kind kind = Kind::literal;
    std::uint8_t width = 4;
    Type type = Type::none;
    std::uint32_t index = 0;
    std::uint64_t bits = 0;
    std::uint32_t offset = 0; // of its array

    bool same(const Constant& other) const {
        return kind == other.kind && width == other.width && type == other.type &&
               index == other.index && bits == other.bits;
    }
};

/// How a basic block ends.
enum class Ending : std::uint8_t {
    fall,    // into the next block
    branch,  // to `target`, lanes without the predicate to the next block
    table,   // brx.idx
    call,    // then the next block
    leave,   // ret
    exit,    // the thread ends
    barrier, // waits, then the next block
    pause    // nanosleep: a good moment to let others run
};

struct ArgumentCopy {
    std::uint32_t from; // offset in the caller's frame
    std::uint32_t to;   // offset in the callee's
};

struct Barrier {
    enum class Kind : std::uint8_t { sync, arrive, popc, all, any };
    Kind kind = Kind::sync;
    std::uint32_t id = no_operand;        // operand
    std::uint32_t threads = no_operand;   // operand; absent: all
    std::uint32_t predicate = no_operand; // operand of a reduction
    bool predicate_negated = false;
    std::uint32_t destination = no_operand;
};

struct Call {
    std::int32_t function = -1;           // index into Program::code; -1: through `pointer`
    std::uint32_t pointer = no_operand;   // operand
    std::vector<std::uint32_t> arguments; // offsets of 8-byte pieces in the caller's frame
    std::vector<std::uint32_t> results;
};

struct Block {
    std::uint32_t first = 0, last = 0; // instructions
    Ending ending = Ending::fall;
    bool predicate_negated = false;
    std::uint32_t predicate = no_operand;
    /// The block starts with an instruction for which the lanes of a warp wait that this operand
    /// names, one bit a lane.
    std::uint32_t members = no_operand;
    std::uint32_t target = 0;    // block, or index into `tables`, `calls`, `barriers`
    std::uint32_t index = 0;     // of brx.idx: operand
    std::uint32_t statement = 0; // of the ending
    std::uint32_t counted = 0;   // PTX instructions in it
};

struct Code {
    std::uint32_t function = 0; // in ModuleText
    Body body;
    std::vector<Instruction> instructions;
    std::vector<Block> blocks;
    std::vector<std::vector<std::uint32_t>> tables;
    std::vector<Barrier> barriers;
    std::vector<Call> calls;
    std::uint32_t frame_bytes = 0;
    std::uint32_t local_bytes = 0;
    std::vector<std::uint32_t> parameters,
        results; // offsets of 8-byte pieces, of a device function
};

struct Program {
    std::vector<Code> code; // first the kernel
    std::unordered_map<std::uint32_t, std::uint32_t> code_of_function;
    std::vector<Constant> constants;
    std::uint32_t constants_bytes = 0;
    std::uint32_t window_slots = 0;
    std::uint32_t static_shared_bytes = 0;
    std::uint32_t dynamic_shared_offset = 0;
    std::uint32_t local_bytes = 0; // a thread, all nested calls together
};

/// Decodes a kernel and all functions that it may call. Throws Error.
std::unique_ptr<const Program> decode(const ModuleText& module, std::uint32_t function);

/// Gives registers of `code` their places: those that are not needed at the same time share one.
/// `widths` holds the bytes of every virtual register; `pinned` those that keep a place of their
/// own. Rewrites the operands from numbers of registers to offsets.
void place_registers(Code& code, const std::vector<std::uint8_t>& widths,
                     const std::vector<bool>& pinned);

} // namespace sim::ptx
