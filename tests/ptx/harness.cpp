#include "harness.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace test {

using namespace sim::ptx;

std::uint64_t DeviceMemory::allocate(std::size_t bytes, MemoryKind kind) {
    const std::uint64_t address = next_;
    next_ += (bytes / 4096 + 16) * 4096;
    Allocation& allocation = allocations_[address];
    allocation = {bytes, std::make_unique<std::byte[]>(bytes + 16), kind};
    return address;
}

std::byte* DeviceMemory::at(std::uint64_t address) {
    const std::optional<Window> window = find(address);
    if (!window) throw std::out_of_range("no such device address");
    return reinterpret_cast<std::byte*>(address + static_cast<std::uint64_t>(window->shadow));
}

std::optional<Window> DeviceMemory::find(std::uint64_t address) {
    ++questions;
    auto after = allocations_.upper_bound(address);
    if (after == allocations_.begin()) return std::nullopt;
    const auto& [begin, allocation] = *--after;
    if (address >= begin + allocation.bytes) return std::nullopt;
    const auto place = reinterpret_cast<std::intptr_t>(allocation.data.get());
    return Window{begin, begin + allocation.bytes, place - static_cast<std::intptr_t>(begin),
                  allocation.kind};
}

Device::Device(std::string text) : module(Module::parse(text)), text_(std::move(text)) {
    for (const Variable& variable : module->variables()) {
        variables.push_back(memory.allocate(variable.bytes));
        std::copy(variable.initial.begin(), variable.initial.end(), memory.at(variables.back()));
    }
    for (std::size_t i = 0; i < variables.size(); ++i)
        for (const auto& [offset, target] : module->variables()[i].relocations) {
            std::byte* place = memory.at(variables[i]) + offset;
            std::uint64_t addend;
            std::memcpy(&addend, place, sizeof addend);
            addend += variables[target];
            std::memcpy(place, &addend, sizeof addend);
        }
}

std::string Device::kernel_name(const std::string& part) const {
    // _Z5scalePff: the length in front keeps "scale" from finding "rescale"
    const std::string mangled = std::to_string(part.size()) + part;
    for (std::size_t at = text_.find(".entry "); at != std::string::npos;
         at = text_.find(".entry ", at + 1)) {
        const std::size_t begin = at + 7;
        const std::string name = text_.substr(begin, text_.find_first_of("( \n", begin) - begin);
        if (name == part || name.find(mangled) != std::string::npos) return name;
    }
    throw std::out_of_range("no kernel " + part);
}

std::unique_ptr<Execution> Device::start_with(const std::string& name, Grid grid,
                                              std::vector<std::byte> parameters) {
    Launch launch;
    launch.module = module.get();
    launch.kernel = module->kernel(kernel_name(name));
    launch.grid = grid.blocks;
    launch.block = grid.threads;
    launch.dynamic_shared_bytes = grid.shared;
    launch.parameters = std::move(parameters);
    launch.variables = variables;
    launch.memory = &memory;
    launch.print = [this](std::string_view text) { printed += text; };
    launch.start_ns = start_ns;
    launch.multiprocessors = multiprocessors;
    launch.cooperative = cooperative;
    return Execution::create(std::move(launch));
}

Work Device::finish(Execution& execution) {
    const Execution::State state = execution.run(std::uint64_t{1} << 40);
    if (state == Execution::State::faulted)
        throw std::runtime_error("the kernel faulted: " + execution.fault().message + " at " +
                                 execution.fault().instruction);
    if (state != Execution::State::finished) throw std::runtime_error("the kernel does not end");
    return execution.work();
}

Fault Device::fail(Execution& execution) {
    if (execution.run(std::uint64_t{1} << 40) != Execution::State::faulted)
        throw std::runtime_error("the kernel did not fault");
    return execution.fault();
}

std::string read_kernels(const std::string& name, const std::string& architecture) {
    const char* folder = std::getenv("PTX_TEST_KERNELS");
    const std::string path =
        std::string(folder != nullptr ? folder : ".") + "/" + name + "." + architecture + ".ptx";
    std::ifstream file(path);
    if (!file)
        throw std::runtime_error("cannot read " + path + "; set PTX_TEST_KERNELS to its folder");
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

} // namespace test
