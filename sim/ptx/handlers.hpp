// Instructions whose lanes look at each other, at memory shared with others, or at the launch.
// They run rarely enough to be compiled once, for the plainest processor.
#pragma once

#include "ptx/lanes.hpp"
#include "ptx/syntax.hpp"

namespace sim::ptx {

/// Special registers. `Instruction::immediate` holds the number.
enum class Special : std::uint8_t {
    tid_x,
    tid_y,
    tid_z,
    ntid_x,
    ntid_y,
    ntid_z,
    ctaid_x,
    ctaid_y,
    ctaid_z,
    nctaid_x,
    nctaid_y,
    nctaid_z,
    laneid,
    warpid,
    nwarpid,
    smid,
    nsmid,
    gridid,
    lanemask_eq,
    lanemask_le,
    lanemask_lt,
    lanemask_ge,
    lanemask_gt,
    clock,
    clock_hi,
    globaltimer,
    globaltimer_hi,
    dynamic_smem_size,
    total_smem_size,
    workspace_low,
    workspace_high,
    zero,
    one
};

enum class Atomic : std::uint8_t { add, min, max, inc, dec, and_, or_, xor_, exch, cas };

/// Operands: destination. Into a register of 4 or 8 bytes.
void read_special(const Instruction& in, Lanes& lanes);
/// Address of a local variable: destination 8 bytes; immediate: its offset in the function's part.
void local_address(const Instruction& in, Lanes& lanes);
/// isspacep: destination a predicate, source an address; `space` says which.
void is_in_space(const Instruction& in, Lanes& lanes);
/// Operand: ns.
void sleep(const Instruction& in, Lanes& lanes);
void trap(const Instruction& in, Lanes& lanes);

/// Operands: [old value], address, b, [c of cas]. nullptr: no such instruction.
Handler atomic_handler(Atomic operation, Type type, bool returns);

/// Operands: destination, predicate, member mask. `immediate`: 0 all, 1 any, 2 uni, 3 ballot.
void vote(const Instruction& in, Lanes& lanes);
/// Operands: destination, [predicate: match.all], value, member mask.
void match(const Instruction& in, Lanes& lanes);
void active_mask(const Instruction& in, Lanes& lanes);
/// Operands: destination, source, member mask. `immediate`: an Atomic, `immediate2`: signed.
void reduce(const Instruction& in, Lanes& lanes);
/// Operands: destination, predicate, member mask.
void elect(const Instruction& in, Lanes& lanes);

/// Operands: result piece, format piece, arguments piece.
void print_formatted(const Instruction& in, Lanes& lanes);
/// Operands: pieces of message, file, line, function.
void assertion_failed(const Instruction& in, Lanes& lanes);
/// Operands: address in shared memory, source address, bytes to take. `immediate2`: bytes to write.
void copy_to_shared(const Instruction& in, Lanes& lanes);

} // namespace sim::ptx
