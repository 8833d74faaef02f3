// What nvcc's generated code calls before `main`, and finding kernels and variables afterwards.
#include "api/module.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

namespace sim::api {
namespace {

struct Symbol {
    Binary* binary;
    std::string name;
};

/// Filled before `main` and by dlopen, guarded by its own lock: reading the node file that early
/// would be too soon.
struct Registry {
    std::mutex mutex;
    std::vector<std::unique_ptr<Binary>> binaries;
    std::map<const void*, std::unique_ptr<Function>> functions; // by host function
    std::map<const void*, Symbol> symbols;                      // by host variable
};

Registry& registry() {
    static auto* instance = new Registry; // used until the last exit handler
    return *instance;
}

/// nullptr, with a message at the first time, when the binary holds nothing that can be read.
const ptx::Module* read(Binary& binary) {
    if (binary.read) return binary.module.get();
    binary.read = true;
    try {
        binary.module = ptx::Module::parse(ptx::find_ptx(binary.wrapper));
    } catch (const ptx::Error& error) {
        std::fprintf(stderr, "sim: %s\n", error.what());
    }
    return binary.module.get();
}

void set_up_managed(Call& call, Binary& binary) {
    for (ManagedVariable& variable : binary.managed) {
        if (variable.address != 0) continue;
        auto address = call.node.host.allocate(variable.bytes, HostKind::managed,
                                               cudaMemAttachGlobal, call.thread.device);
        if (!address) continue;
        variable.address = *address;
        *variable.host_pointer = pointer_to(*address);
    }
}

const ManagedVariable* find_managed(const Binary& binary, const std::string& name) {
    for (const ManagedVariable& variable : binary.managed) {
        if (variable.name == name) return &variable;
    }
    return nullptr;
}

void initialise(Node& node, const ptx::Variable& variable, std::uint64_t address,
                const std::vector<std::uint64_t>& addresses) {
    std::byte* bytes = node.bytes_at(address);
    std::memset(bytes, 0, variable.bytes);
    std::copy(variable.initial.begin(), variable.initial.end(), bytes);
    for (const auto& [offset, index] : variable.relocations) {
        std::uint64_t target = 0;
        std::memcpy(&target, bytes + offset, sizeof target);
        target += addresses[index];
        std::memcpy(bytes + offset, &target, sizeof target);
    }
}

} // namespace

Function* find_function(const void* handle, cudaError_t& error) {
    Registry& all = registry();
    std::lock_guard guard(all.mutex);
    auto found = all.functions.find(handle);
    Function* function = found == all.functions.end() ? nullptr : found->second.get();
    error = cudaErrorInvalidDeviceFunction;
    if (!function) return nullptr;
    const ptx::Module* module = read(*function->binary);
    error = cudaErrorNoKernelImageForDevice;
    if (!module) return nullptr;
    if (!function->kernel) function->kernel = module->kernel(function->name);
    error = cudaErrorInvalidDeviceFunction;
    if (!function->kernel) return nullptr;
    error = cudaSuccess;
    return function;
}

cudaError_t variables_on_device(Call& call, Binary& binary, std::vector<std::uint64_t>*& found) {
    std::lock_guard guard(registry().mutex);
    const ptx::Module* module = read(binary);
    if (!module) return cudaErrorNoKernelImageForDevice;
    Device& device = call.device();
    auto [entry, fresh] = device.variables.try_emplace(module);
    found = &entry->second;
    if (!fresh) return cudaSuccess;
    set_up_managed(call, binary);
    for (const ptx::Variable& variable : module->variables()) {
        const ManagedVariable* managed = find_managed(binary, variable.name);
        const auto bytes = std::max<std::uint64_t>(variable.bytes, 1);
        auto address = managed ? std::optional(managed->address)
                               : device.memory.allocate(bytes, Purpose::variable,
                                                        ptx::demangle(variable.name));
        if (!address) {
            device.variables.erase(entry);
            return cudaErrorMemoryAllocation;
        }
        found->push_back(*address);
    }
    for (std::size_t i = 0; i < found->size(); ++i)
        initialise(call.node, module->variables()[i], (*found)[i], *found);
    return cudaSuccess;
}

VariableOnDevice find_variable(Call& call, const void* symbol) {
    Binary* binary = nullptr;
    std::string name;
    {
        std::lock_guard guard(registry().mutex);
        auto found = registry().symbols.find(symbol);
        if (found == registry().symbols.end()) return {cudaErrorInvalidSymbol, 0, 0};
        binary = found->second.binary;
        name = found->second.name;
    }
    std::vector<std::uint64_t>* addresses = nullptr;
    const cudaError_t error = variables_on_device(call, *binary, addresses);
    if (error != cudaSuccess) return {error, 0, 0};
    const auto& variables = binary->module->variables();
    for (std::size_t i = 0; i < variables.size(); ++i) {
        if (variables[i].name == name) return {cudaSuccess, (*addresses)[i], variables[i].bytes};
    }
    return {cudaErrorInvalidSymbol, 0, 0};
}

} // namespace sim::api

// The calls of nvcc's generated code are in no public header.
#pragma GCC visibility push(default)
extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
    using namespace sim::api;
    std::lock_guard guard(registry().mutex);
    registry().binaries.push_back(std::make_unique<Binary>());
    Binary& binary = *registry().binaries.back();
    binary.wrapper = wrapper;
    return reinterpret_cast<void**>(&binary);
}

void __cudaRegisterFatBinaryEnd(void**) {}

// Called when the program ends or a library is closed. What is registered stays: work that uses
// it may still be in flight.
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void** handle, const char* host_function, char*,
                            const char* device_name, int, uint3*, uint3*, dim3*, dim3*, int*) {
    using namespace sim::api;
    std::lock_guard guard(registry().mutex);
    auto function = std::make_unique<Function>();
    function->binary = reinterpret_cast<Binary*>(handle);
    function->name = device_name;
    registry().functions[host_function] = std::move(function);
}

void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* device_name, int,
                       std::size_t, int, int) {
    using namespace sim::api;
    std::lock_guard guard(registry().mutex);
    registry().symbols[host_variable] = {reinterpret_cast<Binary*>(handle), device_name};
}

void __cudaRegisterManagedVar(void** handle, void** host_pointer, char*, const char* device_name,
                              int, std::size_t bytes, int, int) {
    using namespace sim::api;
    std::lock_guard guard(registry().mutex);
    auto* binary = reinterpret_cast<Binary*>(handle);
    binary->managed.push_back({host_pointer, device_name, bytes});
    registry().symbols[host_pointer] = {binary, device_name};
}

// Called by the program before it touches a managed variable for the first time.
char __cudaInitModule(void** handle) {
    using namespace sim::api;
    auto* binary = reinterpret_cast<Binary*>(handle);
    std::vector<std::uint64_t>* ignored = nullptr;
    return device_call([&](Call& call) { return variables_on_device(call, *binary, ignored); }) ==
           cudaSuccess;
}
}
#pragma GCC visibility pop
