// The kernels and variables that the program's binaries bring along.
#pragma once

#include "api/call.hpp"
#include "ptx/ptx.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sim::api {

/// A managed variable: the program holds a pointer to it that the runtime sets.
struct ManagedVariable {
    void** host_pointer;
    std::string name;
    std::size_t bytes;
    std::uint64_t address = 0;
};

/// One fat binary of the program. Its PTX is read at the first use.
struct Binary {
    const void* wrapper = nullptr;
    std::unique_ptr<ptx::Module> module;
    bool read = false;
    std::vector<ManagedVariable> managed;
};

/// A kernel as the host program names it.
struct Function {
    Binary* binary = nullptr;
    std::string name; // mangled
    const ptx::Kernel* kernel = nullptr;
    std::size_t dynamic_shared_limit = 48 << 10; // until the program asks for more
};

struct VariableOnDevice {
    cudaError_t error = cudaSuccess;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
};

/// The kernel behind a host function's address, read and found in its binary. nullptr
/// with `error` set when there is none.
Function* find_function(const void* handle, cudaError_t& error);

/// Addresses of the binary's variables on the current device, set up at the first use.
cudaError_t variables_on_device(Call& call, Binary& binary, std::vector<std::uint64_t>*& found);

/// The variable behind a host symbol on the current device.
VariableOnDevice find_variable(Call& call, const void* symbol);

} // namespace sim::api
