// Branches, calls, barriers, and what lanes of a warp do together.
#include "ptx/function_decoder.hpp"

namespace sim::ptx {

void FunctionDecoder::branch() {
    modifiers_.drop({".uni"});
    const Operand& target = operand(0);
    require(target.kind == Operand::Kind::label, "has no label to go to");
    block_.target = block_of_[target.index];
    finish_block(Ending::branch);
}

void FunctionDecoder::branch_targets() {
    modifiers_ = Modifiers({});
    --block_.counted;
}

void FunctionDecoder::branch_table() {
    require(modifiers_.take(".idx"), "is not supported");
    modifiers_.drop({".uni"});
    block_.index = read(0, Type::u32);
    require(operand(1).kind == Operand::Kind::label, "has no table of labels");
    const auto& statements = code_.body.statements;
    const Statement& list = statements[operand(1).index];
    require(list.root == ".branchtargets", "has no table of labels");
    std::vector<std::uint32_t>& table = code_.tables.emplace_back();
    for (const Operand& target : list.operands)
        table.push_back(block_of_[target.index]);
    block_.target = static_cast<std::uint32_t>(code_.tables.size() - 1);
    finish_block(Ending::table);
}

void FunctionDecoder::call() {
    modifiers_.drop({".uni"});
    const auto& operands = statement_->operands;
    std::size_t at = 0;
    const Operand* results = nullptr;
    if (at < operands.size() && operands[at].kind == Operand::Kind::list) results = &operands[at++];
    const Operand& callee = operand(at++);
    const Operand none;
    const Operand& arguments =
        at < operands.size() && operands[at].kind == Operand::Kind::list ? operands[at] : none;

    if (callee.kind == Operand::Kind::symbol && callee.symbol.kind == Symbol::Kind::function &&
        !module_.functions[callee.symbol.index].defined) {
        call_builtin(module_.functions[callee.symbol.index].name, arguments, results);
        return finish_block(Ending::fall);
    }
    Call call;
    const auto add = [&](const Operand& list, std::vector<std::uint32_t>& to) {
        for (const Operand& part : list.parts) {
            require(part.kind == Operand::Kind::symbol, "hands over what is no parameter");
            const std::vector<std::uint32_t>* found = pieces(part.symbol);
            require(found != nullptr, "hands over what is no parameter");
            to.insert(to.end(), found->begin(), found->end());
        }
    };
    add(arguments, call.arguments);
    if (results != nullptr) add(*results, call.results);
    if (callee.kind == Operand::Kind::reg) {
        call.pointer = read(callee, 8, Type::u64);
    } else {
        require(callee.kind == Operand::Kind::symbol &&
                    callee.symbol.kind == Symbol::Kind::function,
                "calls what is no function");
        const auto found = program_.code_of_function.find(callee.symbol.index);
        require(found != program_.code_of_function.end(), "calls what is no function");
        call.function = static_cast<std::int32_t>(found->second);
    }
    code_.calls.push_back(std::move(call));
    block_.target = static_cast<std::uint32_t>(code_.calls.size() - 1);
    finish_block(Ending::call);
}

void FunctionDecoder::call_builtin(std::string_view name, const Operand& arguments,
                                   const Operand* results) {
    const auto piece = [&](const Operand& list, std::size_t index) {
        require(index < list.parts.size() && list.parts[index].kind == Operand::Kind::symbol,
                "hands over too few parameters");
        const std::vector<std::uint32_t>* found = pieces(list.parts[index].symbol);
        require(found != nullptr && !found->empty(), "hands over what is no parameter");
        return found->front();
    };
    if (name == "vprintf") {
        require(results != nullptr, "ignores a result");
        emit(print_formatted, {piece(*results, 0)}, {piece(arguments, 0), piece(arguments, 1)})
            .elementwise = false;
    } else if (name == "__assertfail") {
        emit(assertion_failed, {},
             {piece(arguments, 0), piece(arguments, 1), piece(arguments, 2), piece(arguments, 3)})
            .elementwise = false;
    } else {
        unknown("calls " + std::string(name) + ", which no linked file defines");
    }
}

void FunctionDecoder::leave() {
    modifiers_.drop({".uni"});
    finish_block(Ending::leave);
}

void FunctionDecoder::leave_thread() {
    finish_block(Ending::exit);
}

void FunctionDecoder::synchronise() {
    const auto& operands = statement_->operands;
    modifiers_.drop({".cta", ".aligned"});
    if (modifiers_.take(".warp")) {
        // lanes waited for each other at the start of this block
        modifiers_.drop({".sync"});
        wait_for(0);
        return finish_block(Ending::fall);
    }
    require(!modifiers_.take(".cluster"), "is not supported");
    Barrier barrier;
    std::size_t next = 0;
    if (modifiers_.take(".arrive")) {
        barrier.kind = Barrier::Kind::arrive;
    } else if (modifiers_.take(".red")) {
        static constexpr Barrier::Kind kinds[] = {Barrier::Kind::popc, Barrier::Kind::all,
                                                  Barrier::Kind::any};
        const int kind = modifiers_.take_one_of({".popc", ".and", ".or"});
        require(kind >= 0, "is not supported");
        barrier.kind = kinds[kind];
        const Type type = modifiers_.take_type();
        barrier.destination = write(next++, type);
        pinned_[barrier.destination] = true;
    } else {
        modifiers_.drop({".sync"});
    }
    const bool reduces = barrier.destination != no_operand;
    const std::size_t end = operands.size() - (reduces ? 1 : 0);
    barrier.id = next < end ? read(next++, Type::u32) : literal(0, 4);
    if (next < end) barrier.threads = read(next++, Type::u32);
    if (reduces) barrier.predicate = read(operands.size() - 1, Type::pred);
    code_.barriers.push_back(barrier);
    block_.target = static_cast<std::uint32_t>(code_.barriers.size() - 1);
    finish_block(Ending::barrier);
}

void FunctionDecoder::pause() {
    modifiers_.take_type();
    emit(sleep, {}, {read(0, Type::u32)}).elementwise = false;
    finish_block(Ending::pause);
}

void FunctionDecoder::stop_with_trap() {
    emit(trap, {}, {}).elementwise = false;
}

/// The member mask of an instruction for which lanes of a warp wait.
std::uint32_t FunctionDecoder::wait_for(std::size_t members) {
    block_.members = read(members, Type::u32);
    return block_.members;
}

void FunctionDecoder::shuffle_lanes() {
    static constexpr Shuffle modes[] = {Shuffle::up, Shuffle::down, Shuffle::bfly, Shuffle::idx};
    const bool synchronised = modifiers_.take(".sync");
    const int mode = modifiers_.take_one_of({".up", ".down", ".bfly", ".idx"});
    require(mode >= 0, "has an unknown mode");
    require(size_of(modifiers_.take_type()) == 4, "has an unsupported type");
    const Operand& to = operand(0);
    const std::uint32_t d = write(to, 4);
    const std::uint32_t a = read(1, Type::b32), b = read(2, Type::u32), c = read(3, Type::u32);
    const std::uint32_t members = synchronised ? wait_for(4) : literal(0xffffffff, 4);
    const std::uint32_t p = to.parts.empty() ? temporary(1) : write(to.parts[0], 1);
    emit(operations().shuffle(modes[mode]), {d, p}, {a, b, c, members}).elementwise = false;
}

void FunctionDecoder::vote_lanes() {
    const bool synchronised = modifiers_.take(".sync");
    const int mode = modifiers_.take_one_of({".all", ".any", ".uni", ".ballot"});
    require(mode >= 0, "has an unknown mode");
    const Type type = modifiers_.take_type();
    const std::uint32_t d = write(0, type);
    const std::uint32_t p = read(1, Type::pred);
    const std::uint32_t members = synchronised ? wait_for(2) : literal(0xffffffff, 4);
    Instruction& instruction = emit(vote, {d}, {p, members});
    instruction.immediate = static_cast<std::uint64_t>(mode);
    instruction.elementwise = false;
}

void FunctionDecoder::match_lanes() {
    const bool all = modifiers_.take_one_of({".any", ".all"}) == 1;
    modifiers_.drop({".sync"});
    const Type type = modifiers_.take_type();
    const Operand& to = operand(0);
    const std::uint32_t d = write(to, 4);
    const std::uint32_t a = read(1, type), members = wait_for(2);
    if (all) {
        const std::uint32_t p = to.parts.empty() ? temporary(1) : write(to.parts[0], 1);
        emit(match, {d, p}, {a, members}).elementwise = false;
    } else {
        emit(match, {d}, {a, members}).elementwise = false;
    }
}

void FunctionDecoder::active_lanes() {
    const Type type = modifiers_.take_type();
    emit(active_mask, {write(0, type)}, {}).elementwise = false;
}

void FunctionDecoder::reduce_lanes() {
    static constexpr Atomic kinds[] = {Atomic::add,  Atomic::min, Atomic::max,
                                       Atomic::and_, Atomic::or_, Atomic::xor_};
    modifiers_.drop({".sync"});
    const int kind = modifiers_.take_one_of({".add", ".min", ".max", ".and", ".or", ".xor"});
    const Type type = modifiers_.take_type();
    require(kind >= 0 && size_of(type) == 4 && type != Type::f32, "is not supported");
    const std::uint32_t d = write(0, type);
    const std::uint32_t a = read(1, type), members = wait_for(2);
    Instruction& instruction = emit(reduce, {d}, {a, members});
    instruction.immediate = static_cast<std::uint64_t>(kinds[kind]);
    instruction.immediate2 = is_signed(type) ? 1 : 0;
    instruction.elementwise = false;
}

void FunctionDecoder::elect_lane() {
    modifiers_.drop({".sync"});
    const Operand& to = operand(0);
    const std::uint32_t d = write(to, 4);
    require(!to.parts.empty(), "has no predicate");
    const std::uint32_t p = write(to.parts[0], 1);
    emit(elect, {d, p}, {wait_for(1)}).elementwise = false;
}

} // namespace sim::ptx
