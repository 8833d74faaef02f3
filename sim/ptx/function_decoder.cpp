#include "ptx/function_decoder.hpp"

#include "ptx/group.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sim::ptx {
namespace {

constexpr unsigned piece_bytes = 8;
constexpr unsigned longest_alias_chain = 64;

unsigned register_width(Type type) {
    if (type == Type::pred) return 1;
    return std::max(2u, size_of(type));
}

} // namespace

bool Modifiers::take(std::string_view word) {
    const auto found = std::find(words_.begin(), words_.end(), word);
    if (found == words_.end()) return false;
    words_.erase(found);
    return true;
}

int Modifiers::take_one_of(std::initializer_list<std::string_view> words) {
    int index = 0;
    for (const std::string_view word : words) {
        if (take(word)) return index;
        ++index;
    }
    return -1;
}

void Modifiers::drop(std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words)
        take(word);
}

void Modifiers::drop_starting_with(std::string_view prefix) {
    std::erase_if(words_,
                  [&](std::string_view word) { return word.substr(0, prefix.size()) == prefix; });
}

Type Modifiers::take_type() {
    for (auto word = words_.begin(); word != words_.end(); ++word) {
        const Type type = type_named(*word);
        if (type == Type::none) continue;
        words_.erase(word);
        return type;
    }
    return Type::none;
}

FunctionDecoder::FunctionDecoder(const ModuleText& module, Program& program,
                                 const SharedLayout& shared, std::uint32_t code_index)
    : module_(module), program_(program), shared_(shared), code_index_(code_index),
      code_(program.code[code_index]), function_(module.functions[code_.function]),
      kernel_(function_.entry) {}

void FunctionDecoder::decode() {
    for (const Type type : code_.body.registers)
        widths_.push_back(static_cast<std::uint8_t>(register_width(type)));
    pinned_.resize(widths_.size());
    add_pieces();
    count_definitions();
    find_aliases();
    find_leaders();
    start_block();
    for (std::uint32_t i = 0; i < code_.body.statements.size(); ++i)
        statement(i);
    place_registers(code_, widths_, pinned_);
}

void FunctionDecoder::add_pieces() {
    const auto make = [&](const std::vector<Storage>& list) {
        std::vector<std::vector<std::uint32_t>> all;
        for (const Storage& storage : list) {
            if (storage.bytes > 65536)
                throw Error(demangle(function_.name) + ": an argument is longer than 64 KiB");
            std::vector<std::uint32_t>& pieces = all.emplace_back();
            for (std::uint64_t i = 0; i < storage.bytes; i += piece_bytes) {
                pieces.push_back(temporary(piece_bytes));
                pinned_.back() = true;
            }
        }
        return all;
    };
    argument_pieces_ = make(code_.body.arguments);
    if (kernel_) return;
    parameter_pieces_ = make(function_.parameters);
    result_pieces_ = make(function_.results);
    for (const auto& pieces : parameter_pieces_)
        code_.parameters.insert(code_.parameters.end(), pieces.begin(), pieces.end());
    for (const auto& pieces : result_pieces_)
        code_.results.insert(code_.results.end(), pieces.begin(), pieces.end());
}

void FunctionDecoder::count_definitions() {
    definitions_.assign(widths_.size(), 0);
    const auto define = [&](const Operand& operand) {
        if (operand.kind == Operand::Kind::reg) ++definitions_[operand.index];
    };
    for (const Statement& statement : code_.body.statements) {
        if (statement.operands.empty()) continue;
        // no instruction writes to an operand behind the first; counting one too many does no harm
        const Operand& first = statement.operands.front();
        define(first);
        for (const Operand& part : first.parts)
            define(part);
    }
}

/// Registers that are written once, with what another name already holds, cost nothing: their uses
/// read the source. A definition comes before every use on every path, so the source still has its
/// value there.
bool FunctionDecoder::alias_source(const Statement& statement, std::uint32_t& destination,
                                   Operand& source) const {
    if (statement.predicate >= 0 || statement.operands.size() != 2) return false;
    const Operand& to = statement.operands[0];
    if (to.kind != Operand::Kind::reg || !to.parts.empty() || definitions_[to.index] != 1)
        return false;
    destination = to.index;
    source = statement.operands[1];
    const unsigned width = widths_[to.index];
    if (statement.root == "ld") {
        Modifiers modifiers(statement.modifiers);
        return kernel_ && modifiers.take(".param") && source.kind == Operand::Kind::address &&
               !source.has_base && source.symbol.kind == Symbol::Kind::parameter &&
               modifiers.take_type() != Type::none && modifiers.empty();
    }
    const bool copy = statement.root == "mov" ||
                      (statement.root == "cvta" && !statement.modifiers.empty() &&
                       (statement.modifiers[0] == ".global" ||
                        (statement.modifiers.size() > 1 && statement.modifiers[0] == ".to" &&
                         statement.modifiers[1] == ".global")));
    if (!copy || source.negated) return false;
    switch (source.kind) {
    case Operand::Kind::reg:
        return source.parts.empty() && definitions_[source.index] == 1 &&
               widths_[source.index] == width;
    case Operand::Kind::integer:
    case Operand::Kind::float32:
    case Operand::Kind::float64:
        return width >= 2;
    case Operand::Kind::symbol:
        return source.symbol.kind != Symbol::Kind::local || kernel_;
    default:
        return false;
    }
}

void FunctionDecoder::find_aliases() {
    alias_of_.assign(widths_.size(), -1);
    alias_sources_.resize(code_.body.statements.size());
    for (std::uint32_t i = 0; i < code_.body.statements.size(); ++i) {
        std::uint32_t destination = 0;
        if (alias_source(code_.body.statements[i], destination, alias_sources_[i]))
            alias_of_[destination] = static_cast<std::int32_t>(i);
    }
    for (std::size_t start = 0; start < alias_of_.size(); ++start) {
        std::size_t at = start;
        unsigned steps = 0;
        while (alias_of_[at] >= 0 && steps < longest_alias_chain) {
            const Operand& source = alias_sources_[static_cast<std::size_t>(alias_of_[at])];
            if (source.kind != Operand::Kind::reg) break;
            at = source.index;
            ++steps;
        }
        if (steps == longest_alias_chain) alias_of_[start] = -1;
    }
}

bool FunctionDecoder::ends_block(const Statement& statement) const {
    static constexpr std::string_view roots[] = {"bra",  "brx",     "call",      "ret",
                                                 "exit", "barrier", "nanosleep", "bar"};
    return std::find(std::begin(roots), std::end(roots), statement.root) != std::end(roots);
}

/// Instructions at which the lanes of a warp wait for each other.
bool FunctionDecoder::converges(const Statement& statement) const {
    static constexpr std::string_view roots[] = {"shfl", "vote", "match", "redux", "elect"};
    if (std::find(std::begin(roots), std::end(roots), statement.root) != std::end(roots))
        return true;
    return statement.root == "bar" && !statement.modifiers.empty() &&
           statement.modifiers[0] == ".warp";
}

/// Lanes may then call different functions, so that some of them come back to this place. It must
/// hold nothing that would run again.
bool FunctionDecoder::calls_pointer(const Statement& statement) const {
    return statement.root == "call" &&
           std::any_of(statement.operands.begin(), statement.operands.end(),
                       [](const Operand& operand) { return operand.kind == Operand::Kind::reg; });
}

void FunctionDecoder::find_leaders() {
    const auto& statements = code_.body.statements;
    leader_.assign(statements.size(), false);
    block_of_.assign(statements.size(), 0);
    std::uint32_t blocks = 0;
    for (std::size_t i = 0; i < statements.size(); ++i) {
        leader_[i] = i == 0 || code_.body.labelled[i] || ends_block(statements[i - 1]) ||
                     converges(statements[i]) || calls_pointer(statements[i]);
        if (leader_[i] && i != 0) ++blocks;
        block_of_[i] = blocks;
    }
}

void FunctionDecoder::start_block() {
    block_ = Block{};
    block_.first = static_cast<std::uint32_t>(code_.instructions.size());
}

void FunctionDecoder::finish_block(Ending ending) {
    block_.last = static_cast<std::uint32_t>(code_.instructions.size());
    block_.ending = ending;
    block_.statement = statement_index_;
    const bool conditional = ending != Ending::fall && ending != Ending::pause;
    if (conditional && statement_->predicate >= 0) {
        Operand predicate;
        predicate.kind = Operand::Kind::reg;
        predicate.index = static_cast<std::uint32_t>(statement_->predicate);
        block_.predicate = read_register(predicate);
        block_.predicate_negated = statement_->predicate_negated;
    }
    code_.blocks.push_back(block_);
    start_block();
}

void FunctionDecoder::statement(std::uint32_t index) {
    statement_index_ = index;
    statement_ = &code_.body.statements[index];
    if (leader_[index] && block_of_[index] != code_.blocks.size()) finish_block(Ending::fall);
    modifiers_ = Modifiers(statement_->modifiers);
    if (statement_->root.empty()) return finish_block(Ending::leave);
    ++block_.counted;
    const auto method = methods().find(statement_->root);
    if (method == methods().end()) unknown();
    (this->*method->second)();
    if (!modifiers_.empty()) unknown();
}

void FunctionDecoder::unknown(const std::string& why) const {
    throw Error("kernel " + demangle(module_.functions[program_.code[0].function].name) +
                ": the instruction '" + std::string(statement_->text) + "' " + why);
}

void FunctionDecoder::require(bool condition, const char* why) const {
    if (!condition) unknown(why);
}

const Operand& FunctionDecoder::operand(std::size_t index) const {
    require(index < statement_->operands.size(), "has too few operands");
    return statement_->operands[index];
}

unsigned FunctionDecoder::width_of(std::uint32_t operand) const {
    if ((operand & operand_is_constant) == 0) return widths_[operand];
    for (const Constant& constant : program_.constants)
        if (constant.offset == (operand & ~operand_is_constant)) return constant.width;
    return 0;
}

std::uint32_t FunctionDecoder::temporary(unsigned width) {
    widths_.push_back(static_cast<std::uint8_t>(width));
    pinned_.push_back(false);
    return static_cast<std::uint32_t>(widths_.size() - 1);
}

std::uint32_t FunctionDecoder::constant(Constant constant) {
    for (const Constant& known : program_.constants)
        if (known.same(constant)) return known.offset | operand_is_constant;
    constant.offset = program_.constants_bytes;
    program_.constants_bytes += array_bytes(constant.width);
    program_.constants.push_back(constant);
    return constant.offset | operand_is_constant;
}

std::uint32_t FunctionDecoder::literal(std::uint64_t bits, unsigned width) {
    Constant value;
    value.width = static_cast<std::uint8_t>(width);
    value.bits = width == 8 ? bits : bits & ((std::uint64_t{1} << (width * 8)) - 1);
    return constant(value);
}

std::uint32_t FunctionDecoder::carry() {
    if (carry_ == no_operand) carry_ = temporary(1);
    return carry_;
}

std::uint64_t FunctionDecoder::literal_bits(const Operand& operand, unsigned width,
                                            Type type) const {
    if (operand.kind == Operand::Kind::float64 && (type == Type::f32 || width == 4))
        return std::bit_cast<std::uint32_t>(
            static_cast<float>(std::bit_cast<double>(operand.bits)));
    if (operand.kind == Operand::Kind::float32 && width == 8)
        return std::bit_cast<std::uint64_t>(
            double{std::bit_cast<float>(static_cast<std::uint32_t>(operand.bits))});
    return operand.bits;
}

std::uint32_t FunctionDecoder::read_register(const Operand& operand) {
    const std::int32_t alias = operand.index < alias_of_.size() ? alias_of_[operand.index] : -1;
    if (alias < 0) return operand.index;
    const Statement& definition = code_.body.statements[static_cast<std::size_t>(alias)];
    const Operand& source = alias_sources_[static_cast<std::size_t>(alias)];
    const unsigned width = widths_[operand.index];
    if (definition.root != "ld") return read(source, width, Type::none);
    Constant value;
    value.kind = Constant::Kind::parameter;
    value.width = static_cast<std::uint8_t>(width);
    value.type = Modifiers(definition.modifiers).take_type();
    value.bits = function_.parameters[source.symbol.index].offset + source.bits;
    return constant(value);
}

std::uint32_t FunctionDecoder::read(const Operand& operand, unsigned width, Type type) {
    switch (operand.kind) {
    case Operand::Kind::reg: {
        const std::uint32_t reg = read_register(operand);
        if (width_of(reg) != width) unknown("has an operand of the wrong width");
        if (!operand.negated) return reg;
        require(width == 1, "negates what is no predicate");
        const std::uint32_t negated = temporary(1);
        emit(Op::not_, Type::pred, {negated}, {reg});
        return negated;
    }
    case Operand::Kind::special:
        return read_special_register(operand.text, width);
    case Operand::Kind::integer:
    case Operand::Kind::float32:
    case Operand::Kind::float64:
        return literal(literal_bits(operand, width, type), width);
    case Operand::Kind::symbol:
        return read_symbol(operand, width);
    default:
        unknown("has an operand of an unexpected kind");
    }
}

std::uint32_t FunctionDecoder::read(std::size_t index, Type type) {
    return read(operand(index), register_width(type), type);
}

std::uint32_t FunctionDecoder::read_symbol(const Operand& operand, unsigned width) {
    const Symbol symbol = operand.symbol;
    switch (symbol.kind) {
    case Symbol::Kind::variable: {
        require(width == 8, "has an address of the wrong width");
        if (module_.variable_is_extern[symbol.index])
            unknown("uses the variable " + module_.variables[symbol.index].name +
                    " that no linked file defines");
        Constant value;
        value.kind = Constant::Kind::variable;
        value.width = 8;
        value.index = symbol.index;
        value.bits = operand.bits;
        return constant(value);
    }
    case Symbol::Kind::module_shared:
        return literal(shared_.of_module[symbol.index] + operand.bits, width);
    case Symbol::Kind::shared:
        return literal(shared_.own.at(code_.function)[symbol.index] + operand.bits, width);
    case Symbol::Kind::function:
        return literal(function_addresses + symbol.index * function_spacing, width);
    case Symbol::Kind::parameter:
        require(kernel_, "takes the address of a device function's parameter");
        return literal(function_.parameters[symbol.index].offset + operand.bits, width);
    case Symbol::Kind::local: {
        const std::uint64_t offset = code_.body.local[symbol.index].offset + operand.bits;
        if (kernel_) return literal(offset, width);
        require(width == 8, "has an address of the wrong width");
        const std::uint32_t address = temporary(8);
        emit(local_address, {address}, {}).immediate = offset;
        return address;
    }
    default:
        unknown("uses a name in an unexpected way");
    }
}

/// Into `destination`, or into a register of its own.
std::uint32_t FunctionDecoder::read_special_register(std::string_view name, unsigned width,
                                                     std::uint32_t destination) {
    static const std::unordered_map<std::string_view, Special> specials = {
        {"%tid.x", Special::tid_x},
        {"%tid.y", Special::tid_y},
        {"%tid.z", Special::tid_z},
        {"%ntid.x", Special::ntid_x},
        {"%ntid.y", Special::ntid_y},
        {"%ntid.z", Special::ntid_z},
        {"%ctaid.x", Special::ctaid_x},
        {"%ctaid.y", Special::ctaid_y},
        {"%ctaid.z", Special::ctaid_z},
        {"%nctaid.x", Special::nctaid_x},
        {"%nctaid.y", Special::nctaid_y},
        {"%nctaid.z", Special::nctaid_z},
        {"%laneid", Special::laneid},
        {"%warpid", Special::warpid},
        {"%nwarpid", Special::nwarpid},
        {"%smid", Special::smid},
        {"%nsmid", Special::nsmid},
        {"%gridid", Special::gridid},
        {"%lanemask_eq", Special::lanemask_eq},
        {"%lanemask_le", Special::lanemask_le},
        {"%lanemask_lt", Special::lanemask_lt},
        {"%lanemask_ge", Special::lanemask_ge},
        {"%lanemask_gt", Special::lanemask_gt},
        {"%clock", Special::clock},
        {"%clock_hi", Special::clock_hi},
        {"%clock64", Special::clock},
        {"%globaltimer", Special::globaltimer},
        {"%globaltimer_lo", Special::globaltimer},
        {"%globaltimer_hi", Special::globaltimer_hi},
        {"%dynamic_smem_size", Special::dynamic_smem_size},
        {"%total_smem_size", Special::total_smem_size},
        // where a cooperative grid finds its barrier
        {"%envreg1", Special::workspace_high},
        {"%envreg2", Special::workspace_low},
        {"%is_explicit_cluster", Special::zero},
        {"%clusterid.x", Special::ctaid_x},
        {"%clusterid.y", Special::ctaid_y},
        {"%clusterid.z", Special::ctaid_z},
        {"%nclusterid.x", Special::nctaid_x},
        {"%nclusterid.y", Special::nctaid_y},
        {"%nclusterid.z", Special::nctaid_z},
        {"%cluster_ctaid.x", Special::zero},
        {"%cluster_ctaid.y", Special::zero},
        {"%cluster_ctaid.z", Special::zero},
        {"%cluster_nctaid.x", Special::one},
        {"%cluster_nctaid.y", Special::one},
        {"%cluster_nctaid.z", Special::one},
        {"%cluster_ctarank", Special::zero},
        {"%cluster_nctarank", Special::one},
    };
    const auto found = specials.find(name);
    if (found == specials.end())
        unknown("uses the register " + std::string(name) + " that is not supported");
    const unsigned own_width = width == 8 ? 8 : 4;
    const bool direct = destination != no_operand && width == own_width;
    const std::uint32_t value = direct ? destination : temporary(own_width);
    Instruction& instruction = emit(read_special, {value}, {});
    instruction.immediate = static_cast<std::uint64_t>(found->second);
    instruction.elementwise = false;
    if (width == own_width) return value;
    const std::uint32_t narrow = destination != no_operand ? destination : temporary(width);
    convert_register(narrow, value, {Type::u16, Type::u32, 2, 4}, {});
    return narrow;
}

std::uint32_t FunctionDecoder::write(const Operand& operand, unsigned width) {
    if (operand.kind == Operand::Kind::sink) return temporary(width);
    if (operand.kind != Operand::Kind::reg) unknown("writes to what is no register");
    if (widths_[operand.index] != width) unknown("writes to a register of the wrong width");
    return operand.index;
}

std::uint32_t FunctionDecoder::write(std::size_t index, Type type) {
    return write(operand(index), register_width(type));
}

Instruction& FunctionDecoder::emit(Handler handler, std::initializer_list<std::uint32_t> writes,
                                   std::initializer_list<std::uint32_t> reads) {
    if (handler == nullptr) unknown();
    Instruction instruction;
    instruction.run = handler;
    instruction.writes = static_cast<std::uint8_t>(writes.size());
    instruction.reads = static_cast<std::uint8_t>(reads.size());
    std::size_t next = 0;
    for (const auto& list : {writes, reads})
        for (const std::uint32_t operand : list) {
            instruction.width[next] = static_cast<std::uint8_t>(width_of(operand));
            instruction.operand[next++] = operand;
        }
    instruction.statement = statement_index_;
    if (statement_->predicate >= 0) {
        Operand predicate;
        predicate.kind = Operand::Kind::reg;
        predicate.index = static_cast<std::uint32_t>(statement_->predicate);
        instruction.predicate = read_register(predicate);
        instruction.predicate_negated = statement_->predicate_negated;
    }
    code_.instructions.push_back(instruction);
    return code_.instructions.back();
}

Instruction& FunctionDecoder::emit(Op op, Type type, std::initializer_list<std::uint32_t> writes,
                                   std::initializer_list<std::uint32_t> reads) {
    return emit(operations().arithmetic(op, type), writes, reads);
}

const std::unordered_map<std::string_view, FunctionDecoder::Method>& FunctionDecoder::methods() {
    using D = FunctionDecoder;
    static const std::unordered_map<std::string_view, Method> map = {
        {"add", &D::add_or_sub},
        {"sub", &D::add_or_sub},
        {"addc", &D::carried_add_or_sub},
        {"subc", &D::carried_add_or_sub},
        {"mul", &D::multiply},
        {"mad", &D::multiply_add},
        {"madc", &D::carried_multiply_add},
        {"fma", &D::fused},
        {"div", &D::divide},
        {"rem", &D::remainder},
        {"abs", &D::absolute},
        {"neg", &D::negate},
        {"min", &D::minimum_or_maximum},
        {"max", &D::minimum_or_maximum},
        {"rcp", &D::unary_float},
        {"sqrt", &D::unary_float},
        {"rsqrt", &D::unary_float},
        {"ex2", &D::unary_float},
        {"lg2", &D::unary_float},
        {"sin", &D::unary_float},
        {"cos", &D::unary_float},
        {"tanh", &D::unary_float},
        {"copysign", &D::copy_sign},
        {"testp", &D::test_property},
        {"mul24", &D::multiply_24},
        {"mad24", &D::multiply_24},
        {"sad", &D::sum_of_differences},
        {"and", &D::logic},
        {"or", &D::logic},
        {"xor", &D::logic},
        {"not", &D::logic},
        {"cnot", &D::logic},
        {"shl", &D::shift},
        {"shr", &D::shift},
        {"shf", &D::funnel_shift},
        {"popc", &D::bit_count},
        {"clz", &D::bit_count},
        {"brev", &D::bit_count},
        {"bfind", &D::bit_find},
        {"bfe", &D::bit_field},
        {"bfi", &D::bit_field},
        {"bmsk", &D::bit_mask},
        {"szext", &D::sign_extend},
        {"prmt", &D::permute_bytes},
        {"lop3", &D::logic3},
        {"dp4a", &D::dot_product},
        {"dp2a", &D::dot_product},
        {"selp", &D::select},
        {"slct", &D::select_by_sign},
        {"setp", &D::set_predicate},
        {"set", &D::set_value},
        {"cvt", &D::convert},
        {"mov", &D::move},
        {"ld", &D::load},
        {"ldu", &D::load},
        {"st", &D::store},
        {"atom", &D::atomic},
        {"red", &D::reduction},
        {"cvta", &D::to_generic},
        {"isspacep", &D::in_space},
        {"membar", &D::nothing},
        {"fence", &D::nothing},
        {"prefetch", &D::nothing},
        {"prefetchu", &D::nothing},
        {"applypriority", &D::nothing},
        {"discard", &D::nothing},
        {"griddepcontrol", &D::nothing},
        {"pmevent", &D::nothing},
        {"createpolicy", &D::cache_policy},
        {"cp", &D::asynchronous_copy},
        {"bra", &D::branch},
        {"brx", &D::branch_table},
        {"call", &D::call},
        {"ret", &D::leave},
        {"exit", &D::leave_thread},
        {"bar", &D::synchronise},
        {"barrier", &D::synchronise},
        {"nanosleep", &D::pause},
        {"trap", &D::stop_with_trap},
        {"brkpt", &D::nothing},
        {"shfl", &D::shuffle_lanes},
        {"vote", &D::vote_lanes},
        {"match", &D::match_lanes},
        {"activemask", &D::active_lanes},
        {"redux", &D::reduce_lanes},
        {"elect", &D::elect_lane},
        {".branchtargets", &D::branch_targets},
        {".calltargets", &D::branch_targets},
    };
    return map;
}

} // namespace sim::ptx
