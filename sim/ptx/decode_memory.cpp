// Loads, stores, atomic operations and addresses.
#include "ptx/function_decoder.hpp"
#include "ptx/group.hpp"

namespace sim::ptx {
namespace {

constexpr unsigned piece_bytes = 8;

unsigned natural_width(Type type) {
    return size_of(type) < 2 ? 2 : size_of(type);
}

} // namespace

std::optional<Space> FunctionDecoder::take_space() {
    static constexpr Space spaces[] = {Space::global,    Space::global,    Space::shared,
                                       Space::shared,    Space::shared,    Space::local,
                                       Space::parameter, Space::parameter, Space::parameter};
    const int index =
        modifiers_.take_one_of({".global", ".const", ".shared", ".shared::cta", ".shared::cluster",
                                ".local", ".param", ".param::entry", ".param::func"});
    return index < 0 ? std::nullopt : std::optional(spaces[index]);
}

/// Order, scope and caching: every access here is visible to all at once.
void FunctionDecoder::drop_cache_words() {
    modifiers_.drop({".volatile", ".weak",    ".relaxed", ".acquire", ".release", ".acq_rel",
                     ".mmio",     ".cta",     ".cluster", ".gpu",     ".sys",     ".nc",
                     ".ca",       ".cg",      ".cs",      ".lu",      ".cv",      ".wb",
                     ".wt",       ".unified", ".noftz"});
    modifiers_.drop_starting_with(".L1::");
    modifiers_.drop_starting_with(".L2::");
}

FunctionDecoder::Address FunctionDecoder::address(const Operand& operand) {
    require(operand.kind == Operand::Kind::address, "has no address where one is expected");
    if (operand.has_base) {
        Operand base;
        base.kind = Operand::Kind::reg;
        base.index = operand.index;
        const std::uint32_t reg = read_register(base);
        require(width_of(reg) == 4 || width_of(reg) == 8, "has an address of the wrong width");
        return {reg, operand.bits};
    }
    if (operand.symbol.kind == Symbol::Kind::none) return {literal(operand.bits, 8), 0};
    Operand symbol = operand;
    symbol.kind = Operand::Kind::symbol;
    return {read_symbol(symbol, 8), 0};
}

void FunctionDecoder::set_memory(Instruction& instruction, const Address& address, Space space,
                                 unsigned bytes, bool write) {
    instruction.immediate = address.offset;
    instruction.space = space;
    instruction.access_bytes = static_cast<std::uint8_t>(bytes);
    instruction.write = write;
    instruction.elementwise = false;
    instruction.slot = program_.window_slots++;
}

std::vector<const Operand*> FunctionDecoder::vector_parts(std::size_t index, unsigned count) const {
    const Operand& all = operand(index);
    std::vector<const Operand*> parts;
    if (all.kind != Operand::Kind::vector) {
        parts.push_back(&all);
    } else {
        for (const Operand& part : all.parts)
            parts.push_back(&part);
    }
    require(parts.size() == count, "has a vector of another length than it says");
    return parts;
}

void FunctionDecoder::load() {
    if (statement_->operands.size() == 2 && operand(0).kind == Operand::Kind::reg &&
        alias_of_[operand(0).index] == static_cast<std::int32_t>(statement_index_)) {
        modifiers_ = Modifiers({});
        return;
    }
    drop_cache_words();
    const Space space = take_space().value_or(Space::generic);
    static constexpr unsigned counts[] = {2, 4, 8};
    const int vector = modifiers_.take_one_of({".v2", ".v4", ".v8"});
    const unsigned count = vector < 0 ? 1 : counts[vector];
    const Type type = modifiers_.take_type();
    require(type != Type::none && type != Type::pred, "has an unsupported type");
    const std::vector<const Operand*> to = vector_parts(0, count);
    const Operand& from = operand(1);
    require(from.kind == Operand::Kind::address, "has no address where one is expected");
    if (space == Space::parameter && !from.has_base) return load_parameter(from, type, to);

    const Address where = address(from);
    std::uint32_t d[8];
    unsigned width = natural_width(type);
    for (const Operand* part : to)
        if (part->kind == Operand::Kind::reg) width = widths_[part->index];
    for (unsigned i = 0; i < count; ++i)
        d[i] = write(*to[i], width);
    const Handler handler = operations().load(type, width, count);
    Instruction& instruction =
        count == 1   ? emit(handler, {d[0]}, {where.operand})
        : count == 2 ? emit(handler, {d[0], d[1]}, {where.operand})
        : count == 4
            ? emit(handler, {d[0], d[1], d[2], d[3]}, {where.operand})
            : emit(handler, {d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]}, {where.operand});
    set_memory(instruction, where, space, size_of(type) * count, false);
}

void FunctionDecoder::store() {
    drop_cache_words();
    const Space space = take_space().value_or(Space::generic);
    static constexpr unsigned counts[] = {2, 4, 8};
    const int vector = modifiers_.take_one_of({".v2", ".v4", ".v8"});
    const unsigned count = vector < 0 ? 1 : counts[vector];
    const Type type = modifiers_.take_type();
    require(type != Type::none && type != Type::pred, "has an unsupported type");
    const std::vector<const Operand*> from = vector_parts(1, count);
    const Operand& to = operand(0);
    require(to.kind == Operand::Kind::address, "has no address where one is expected");
    if (space == Space::parameter) return store_parameter(to, type, from);

    const Address where = address(to);
    std::uint32_t s[8];
    unsigned width = natural_width(type);
    for (const Operand* part : from)
        if (part->kind == Operand::Kind::reg) width = widths_[part->index];
    for (unsigned i = 0; i < count; ++i)
        s[i] = read(*from[i], width, type);
    const Handler handler = operations().store(type, width, count);
    Instruction& instruction =
        count == 1   ? emit(handler, {}, {where.operand, s[0]})
        : count == 2 ? emit(handler, {}, {where.operand, s[0], s[1]})
        : count == 4
            ? emit(handler, {}, {where.operand, s[0], s[1], s[2], s[3]})
            : emit(handler, {}, {where.operand, s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]});
    set_memory(instruction, where, space, size_of(type) * count, true);
}

const std::vector<std::uint32_t>* FunctionDecoder::pieces(const Symbol& symbol) const {
    switch (symbol.kind) {
    case Symbol::Kind::argument:
        return &argument_pieces_[symbol.index];
    case Symbol::Kind::parameter:
        return kernel_ ? nullptr : &parameter_pieces_[symbol.index];
    case Symbol::Kind::result:
        return kernel_ ? nullptr : &result_pieces_[symbol.index];
    default:
        return nullptr;
    }
}

void FunctionDecoder::load_parameter(const Operand& from, Type type,
                                     const std::vector<const Operand*>& to) {
    std::uint64_t offset = from.bits;
    for (const Operand* part : to) {
        require(part->kind == Operand::Kind::reg || part->kind == Operand::Kind::sink,
                "writes to what is no register");
        const unsigned width =
            part->kind == Operand::Kind::reg ? widths_[part->index] : natural_width(type);
        const std::uint32_t d = write(*part, width);
        if (kernel_ && from.symbol.kind == Symbol::Kind::parameter) {
            Constant value;
            value.kind = Constant::Kind::parameter;
            value.width = static_cast<std::uint8_t>(width);
            value.type = type;
            value.bits = function_.parameters[from.symbol.index].offset + offset;
            const std::uint32_t source = constant(value);
            emit(Op::move,
                 width == 8   ? Type::b64
                 : width == 4 ? Type::b32
                              : Type::b16,
                 {d}, {source});
        } else {
            const std::vector<std::uint32_t>* list = pieces(from.symbol);
            require(list != nullptr && offset / piece_bytes < list->size() &&
                        offset % piece_bytes + size_of(type) <= piece_bytes,
                    "reads outside of a parameter");
            const std::uint32_t piece = (*list)[offset / piece_bytes];
            const unsigned natural = natural_width(type);
            const std::uint32_t value = width == natural ? d : temporary(natural);
            emit(Op::piece_load, type, {value}, {piece}).immediate = offset % piece_bytes;
            if (width != natural) {
                const Type kind = is_integer(type) ? type : natural == 4 ? Type::b32 : Type::b16;
                convert_register(d, value,
                                 {kind, kind, static_cast<std::uint8_t>(width),
                                  static_cast<std::uint8_t>(natural)},
                                 {});
            }
        }
        offset += size_of(type);
    }
}

void FunctionDecoder::store_parameter(const Operand& to, Type type,
                                      const std::vector<const Operand*>& from) {
    require(!to.has_base, "writes to a parameter through a register");
    std::uint64_t offset = to.bits;
    const std::vector<std::uint32_t>* list = pieces(to.symbol);
    for (const Operand* part : from) {
        require(list != nullptr && offset / piece_bytes < list->size() &&
                    offset % piece_bytes + size_of(type) <= piece_bytes,
                "writes outside of a parameter");
        const std::uint32_t piece = (*list)[offset / piece_bytes];
        const unsigned natural = natural_width(type);
        unsigned width = natural;
        if (part->kind == Operand::Kind::reg) width = widths_[part->index];
        std::uint32_t value = read(*part, width, type);
        if (width != natural) {
            const std::uint32_t narrow = temporary(natural);
            const Type kind = natural == 4 ? Type::u32 : Type::u16;
            convert_register(
                narrow, value,
                {kind, kind, static_cast<std::uint8_t>(natural), static_cast<std::uint8_t>(width)},
                {});
            value = narrow;
        }
        emit(Op::piece_store, type, {piece}, {value}).immediate = offset % piece_bytes;
        offset += size_of(type);
    }
}

void FunctionDecoder::atomic() {
    atomic_operation(true);
}

void FunctionDecoder::reduction() {
    modifiers_.drop({".async"});
    atomic_operation(false);
}

void FunctionDecoder::atomic_operation(bool returns) {
    static constexpr Atomic kinds[] = {Atomic::add,  Atomic::min,  Atomic::max, Atomic::inc,
                                       Atomic::dec,  Atomic::and_, Atomic::or_, Atomic::xor_,
                                       Atomic::exch, Atomic::cas};
    drop_cache_words();
    const Space space = take_space().value_or(Space::generic);
    const int kind = modifiers_.take_one_of(
        {".add", ".min", ".max", ".inc", ".dec", ".and", ".or", ".xor", ".exch", ".cas"});
    require(kind >= 0, "is an unknown atomic operation");
    const Type type = modifiers_.take_type();
    const std::size_t first = returns ? 1 : 0;
    const unsigned width = natural_width(type);
    const Address where = address(operand(first));
    const std::uint32_t b = read(first + 1, type);
    // an operand that nobody reads makes the operation a reduction
    const bool wanted = returns && operand(0).kind != Operand::Kind::sink;
    const std::uint32_t d = wanted ? write(operand(0), width) : no_operand;
    const Handler handler = atomic_handler(kinds[kind], type, wanted);
    if (kinds[kind] == Atomic::cas) {
        const std::uint32_t c = read(first + 2, type);
        if (wanted)
            emit(handler, {d}, {where.operand, b, c});
        else
            emit(handler, {}, {where.operand, b, c});
    } else if (wanted) {
        emit(handler, {d}, {where.operand, b});
    } else {
        emit(handler, {}, {where.operand, b});
    }
    set_memory(code_.instructions.back(), where, space, size_of(type), true);
}

void FunctionDecoder::to_generic() {
    const bool from_generic = modifiers_.take(".to");
    const std::optional<Space> space = take_space();
    const Type type = modifiers_.take_type();
    require(space.has_value() && size_of(type) == 8, "converts an unsupported address");
    if (operand(0).kind == Operand::Kind::reg &&
        alias_of_[operand(0).index] == static_cast<std::int32_t>(statement_index_))
        return;
    const std::uint32_t d = write(0, type);
    const std::uint32_t a = read(1, type);
    std::uint64_t window = 0;
    switch (*space) {
    case Space::shared:
        window = shared_window;
        break;
    case Space::local:
        window = local_window;
        break;
    case Space::parameter:
        window = parameter_window;
        break;
    default:
        emit(Op::move, type, {d}, {a});
        return;
    }
    emit(from_generic ? Op::sub : Op::add, Type::u64, {d}, {a, literal(window, 8)});
}

void FunctionDecoder::in_space() {
    const bool constant_space = modifiers_.take(".const");
    const std::optional<Space> space = constant_space ? std::nullopt : take_space();
    const std::uint32_t p = write(0, Type::pred);
    if (constant_space) { // constants lie in global memory here
        emit(Op::move, Type::pred, {p}, {literal(0, 1)});
        return;
    }
    require(space.has_value(), "asks for an unknown space");
    emit(is_in_space, {p}, {read(1, Type::u64)}).space = *space;
}

/// Fences, prefetches and the like: accesses take place one after the other anyway.
void FunctionDecoder::nothing() {
    modifiers_ = Modifiers({});
}

void FunctionDecoder::cache_policy() {
    modifiers_ = Modifiers({});
    emit(Op::move, Type::b64, {write(0, Type::b64)}, {literal(0, 8)});
}

void FunctionDecoder::asynchronous_copy() {
    require(modifiers_.take(".async"), "is not supported");
    if (modifiers_.take_one_of({".commit_group", ".wait_group", ".wait_all"}) >= 0) return;
    drop_cache_words();
    require(modifiers_.take(".shared") || modifiers_.take(".shared::cta"), "is not supported");
    require(modifiers_.take(".global"), "is not supported");
    const Address to = address(operand(0));
    const Address from = address(operand(1));
    require(operand(2).kind == Operand::Kind::integer, "copies an unknown number of bytes");
    const std::uint64_t bytes = operand(2).bits;
    require(bytes == 4 || bytes == 8 || bytes == 16, "copies an unsupported number of bytes");
    const bool partial =
        statement_->operands.size() > 3 &&
        (operand(3).kind == Operand::Kind::integer || width_of(read_register(operand(3))) == 4);
    const std::uint32_t taken = partial ? read(3, Type::u32) : literal(bytes, 4);
    Instruction& instruction = emit(copy_to_shared, {}, {from.operand, to.operand, taken});
    set_memory(instruction, from, Space::global, static_cast<unsigned>(bytes), false);
    instruction.immediate2 = static_cast<std::uint32_t>(to.offset);
}

} // namespace sim::ptx
