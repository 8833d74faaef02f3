// Collects what a kernel may call, lays out its shared memory, and decodes all of it.
#include "ptx/function_decoder.hpp"

#include <algorithm>
#include <set>

namespace sim::ptx {
namespace {

/// Local memory that a thread gets besides what its kernel declares when functions call
/// themselves: nobody knows how deep.
constexpr std::uint32_t recursion_bytes = 16384;
constexpr std::uint64_t largest_shared = std::uint64_t{1} << 20;
constexpr std::uint64_t largest_local = std::uint64_t{512} << 10; // as a GPU has it

class Collector {
public:
    Collector(const ModuleText& module, Program& program) : module_(module), program_(program) {}

    void collect(std::uint32_t kernel) {
        add(kernel);
        // the list grows while it is walked
        for (std::size_t i = 0; i < program_.code.size(); ++i)
            visit(i);
        SharedLayout layout = lay_out_shared();
        for (Code& code : program_.code)
            code.local_bytes = local_bytes(code);
        program_.local_bytes = stack_bytes();
        for (std::uint32_t i = 0; i < program_.code.size(); ++i)
            FunctionDecoder(module_, program_, layout, i).decode();
    }

private:
    void add(std::uint32_t function) {
        if (!module_.functions[function].defined ||
            program_.code_of_function.find(function) != program_.code_of_function.end())
            return;
        program_.code_of_function[function] = static_cast<std::uint32_t>(program_.code.size());
        Code& code = program_.code.emplace_back();
        code.function = function;
        code.body = parse_body(module_, module_.functions[function]);
    }

    void visit(std::size_t index) {
        std::set<std::uint32_t> called;
        bool indirect = false;
        for (const Statement& statement : program_.code[index].body.statements) {
            const bool call = statement.root == "call";
            for (const Operand& operand : statement.operands) {
                note(operand, called);
                indirect |= call && operand.kind == Operand::Kind::reg;
            }
        }
        if (indirect) add_all_with_address();
        for (const std::uint32_t function : called)
            add(function);
        calls_.resize(std::max(calls_.size(), index + 1));
        calls_[index] = std::move(called);
        indirect_ |= indirect;
    }

    void note(const Operand& operand, std::set<std::uint32_t>& called) {
        switch (operand.symbol.kind) {
        case Symbol::Kind::function:
            called.insert(operand.symbol.index);
            break;
        case Symbol::Kind::module_shared:
            shared_.insert(operand.symbol.index);
            break;
        default:
            break;
        }
    }

    /// Through a pointer any function may be called whose address a variable holds.
    void add_all_with_address() {
        for (const Variable& variable : module_.variables)
            for (std::size_t at = 0; at + 8 <= variable.initial.size(); at += 8) {
                std::uint64_t bits = 0;
                for (unsigned i = 0; i < 8; ++i)
                    bits |= static_cast<std::uint64_t>(variable.initial[at + i]) << (8 * i);
                const std::uint64_t index = (bits - function_addresses) / function_spacing;
                if (bits >= function_addresses && index < module_.functions.size())
                    add(static_cast<std::uint32_t>(index));
            }
    }

    SharedLayout lay_out_shared() {
        SharedLayout layout;
        layout.of_module.resize(module_.shared.size());
        std::uint64_t end = 0;
        std::uint64_t dynamic_alignment = 16;
        const auto place = [&](const Storage& storage) {
            if (storage.dynamic) {
                dynamic_alignment = std::max(dynamic_alignment, storage.alignment);
                return std::uint64_t{0};
            }
            const std::uint64_t begin = aligned(end, std::max<std::uint64_t>(storage.alignment, 1));
            end = begin + storage.bytes;
            if (storage.bytes > largest_shared || end > largest_shared)
                throw Error(demangle(module_.functions[program_.code[0].function].name) +
                            ": more than 1 MiB of static shared memory");
            return begin;
        };
        for (const std::uint32_t index : shared_)
            layout.of_module[index] = static_cast<std::uint32_t>(place(module_.shared[index]));
        for (const Code& code : program_.code)
            for (const Storage& storage : code.body.shared)
                layout.own[code.function].push_back(static_cast<std::uint32_t>(place(storage)));
        program_.static_shared_bytes = static_cast<std::uint32_t>(end);
        program_.dynamic_shared_offset =
            static_cast<std::uint32_t>(aligned(end, dynamic_alignment));
        for (const std::uint32_t index : shared_)
            if (module_.shared[index].dynamic)
                layout.of_module[index] = program_.dynamic_shared_offset;
        for (const Code& code : program_.code)
            for (std::size_t i = 0; i < code.body.shared.size(); ++i)
                if (code.body.shared[i].dynamic)
                    layout.own[code.function][i] = program_.dynamic_shared_offset;
        return layout;
    }

    std::uint32_t local_bytes(const Code& code) const {
        std::uint64_t end = 0;
        for (const Storage& storage : code.body.local)
            end = std::max(end, storage.offset + storage.bytes);
        if (end > largest_local)
            throw Error(demangle(module_.functions[code.function].name) +
                        ": more than 512 KiB of local memory");
        return static_cast<std::uint32_t>(aligned(end, 16));
    }

    std::uint32_t stack_bytes() {
        std::vector<std::uint8_t> open(program_.code.size(), 0);
        std::vector<std::uint64_t> known(program_.code.size(), 0);
        bool recursive = indirect_;
        std::uint64_t bytes = deepest(0, open, known, recursive);
        if (indirect_)
            for (std::uint32_t i = 1; i < program_.code.size(); ++i)
                bytes += program_.code[i].local_bytes;
        if (recursive) bytes += recursion_bytes;
        return static_cast<std::uint32_t>(std::min(bytes, largest_local));
    }

    std::uint64_t deepest(std::uint32_t index, std::vector<std::uint8_t>& open,
                          std::vector<std::uint64_t>& known, bool& recursive) {
        if (open[index] == 2) return known[index];
        open[index] = 1;
        std::uint64_t below = 0;
        for (const std::uint32_t function : calls_[index]) {
            const auto found = program_.code_of_function.find(function);
            if (found == program_.code_of_function.end()) continue;
            if (open[found->second] == 1)
                recursive = true;
            else
                below = std::max(below, deepest(found->second, open, known, recursive));
        }
        open[index] = 2;
        known[index] = program_.code[index].local_bytes + below;
        return known[index];
    }

    const ModuleText& module_;
    Program& program_;
    std::set<std::uint32_t> shared_;
    std::vector<std::set<std::uint32_t>> calls_; // by code
    bool indirect_ = false;
};

} // namespace

std::unique_ptr<const Program> decode(const ModuleText& module, std::uint32_t function) {
    auto program = std::make_unique<Program>();
    Collector(module, *program).collect(function);
    return program;
}

} // namespace sim::ptx
