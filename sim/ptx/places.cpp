// Where a lane's access goes when the fast paths do not know, and what stops a kernel.
#include "ptx/group.hpp"

#include <cstdio>

namespace sim::ptx {
namespace {

constexpr int illegal_address = 700;
constexpr int misaligned_address = 716;
constexpr int invalid_address_space = 717;
constexpr std::uint8_t not_counted = 255;

std::string in_hexadecimal(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

std::string name_of(Space space) {
    switch (space) {
    case Space::shared:
        return "shared memory";
    case Space::local:
        return "local memory";
    case Space::parameter:
        return "the kernel's parameters";
    default:
        return "global memory";
    }
}

[[noreturn]] void illegal(const Instruction& in, const Lanes& lanes, std::uint32_t lane,
                          std::uint64_t address, const std::string& why) {
    stop(in, lanes, lane, illegal_address,
         "The kernel " + std::string(in.write ? "writes " : "reads ") +
             std::to_string(in.access_bytes) + " bytes " + why,
         address);
}

std::byte* bounded(const Instruction& in, const Lanes& lanes, std::uint32_t lane,
                   std::uint64_t address, std::byte* memory, std::uint64_t bytes, Space space) {
    if (address > bytes || bytes - address < in.access_bytes)
        illegal(in, lanes, lane, address,
                "at offset " + std::to_string(address) + " of " + name_of(space) + ", which has " +
                    std::to_string(bytes) + " bytes.");
    return memory + address;
}

std::byte* in_space(const Instruction& in, Lanes& lanes, std::uint32_t lane, std::uint64_t address,
                    Space space) {
    Group& group = *lanes.group;
    switch (space) {
    case Space::shared:
        return bounded(in, lanes, lane, address, group.shared, group.shared_bytes, space);
    case Space::local:
        return bounded(in, lanes, lane, address, group.local + group.local_bytes * lane,
                       group.local_bytes, space);
    default:
        if (in.write) illegal(in, lanes, lane, address, "of the kernel's parameters.");
        // never written: the check above
        return bounded(in, lanes, lane, address, const_cast<std::byte*>(group.around->parameters),
                       group.around->parameter_bytes, space);
    }
}

} // namespace

Dim3 thread_index(const Group& group, std::uint32_t lane) {
    const Dim3 size = group.around->launch->block;
    const std::uint32_t thread = group.first_thread + lane;
    return {thread % size.x, thread / size.x % size.y, thread / size.x / size.y};
}

void stop(const Instruction& in, const Lanes& lanes, std::uint32_t lane, int error,
          const std::string& message, std::uint64_t address) {
    Group& group = *lanes.group;
    const ModuleText& module = *group.around->module;
    Fault& fault = group.block->fault;
    fault.error = error;
    fault.kernel = demangle(group.around->launch->kernel->name());
    fault.block = group.block->index;
    fault.thread = thread_index(group, lane);
    fault.address = address;
    fault.bytes = in.access_bytes;
    fault.write = in.write;
    fault.message = message;
    const Code& code = *lanes.frame->code;
    const Statement& statement = code.body.statements[in.statement];
    fault.instruction = statement.text;
    const FunctionText& function = module.functions[code.function];
    const auto& files = module.files[function.unit];
    if (const auto file = files.find(statement.file); file != files.end())
        fault.location = std::string(file->second) + ":" + std::to_string(statement.line);
    throw Stopped{};
}

bool refill(const Instruction& in, Lanes& lanes, std::uint64_t address) {
    Surroundings& around = *lanes.group->around;
    if (around.launch->cooperative && address - workspace_window < workspace_bytes) {
        const auto place = reinterpret_cast<std::uint64_t>(around.workspace);
        around.slots[in.slot] = {workspace_window, workspace_window + workspace_bytes,
                                 static_cast<std::intptr_t>(place - workspace_window),
                                 MemoryKind::device};
        return true;
    }
    const std::optional<Window> window = around.launch->memory->find(address);
    if (!window) return false;
    around.slots[in.slot] = {window->begin, window->end, window->shadow, window->kind};
    return true;
}

std::byte* find_place(const Instruction& in, Lanes& lanes, std::uint32_t lane,
                      std::uint64_t address, std::uint8_t& kind) {
    if ((address & (in.access_bytes - 1u)) != 0)
        stop(in, lanes, lane, misaligned_address,
             "The kernel accesses " + std::to_string(in.access_bytes) + " bytes at " +
                 in_hexadecimal(address) + ", which is no multiple of that.",
             address);
    kind = not_counted;
    if (in.space != Space::generic && in.space != Space::global)
        return in_space(in, lanes, lane, address, in.space);
    if (address >= first_non_canonical)
        stop(in, lanes, lane, in.space == Space::generic ? invalid_address_space : illegal_address,
             in_hexadecimal(address) + " is an address of nothing.", address);
    if (in.space == Space::generic && address >= shared_window) {
        if (address - shared_window < window_bytes)
            return in_space(in, lanes, lane, address - shared_window, Space::shared);
        if (address - local_window < window_bytes)
            return in_space(in, lanes, lane, address - local_window, Space::local);
        if (address - parameter_window < window_bytes)
            return in_space(in, lanes, lane, address - parameter_window, Space::parameter);
    }
    const Slot& slot = lanes.group->around->slots[in.slot];
    const auto inside = [&] {
        return address >= slot.begin && address < slot.end && slot.end - address >= in.access_bytes;
    };
    if (!inside() && !(refill(in, lanes, address) && inside()))
        illegal(in, lanes, lane, address, "at " + in_hexadecimal(address) + ", where it may not.");
    kind = static_cast<std::uint8_t>(slot.kind);
    return reinterpret_cast<std::byte*>(address + static_cast<std::uint64_t>(slot.shadow));
}

} // namespace sim::ptx
