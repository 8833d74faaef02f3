// Kernels of a CUDA program, read from the PTX inside its binary and executed on the CPU.
//
// This part knows nothing of devices, streams or time: whoever launches a kernel gives it a view of
// memory (`Memory`) and gets back what the kernel did (`Work`) or what stopped it (`Fault`).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sim::ptx {

/// A binary or a PTX text that cannot be read or uses what is not supported. `what()` names the
/// kernel and the instruction or field.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Where the bytes of a window live, seen from the launching device. Decides what an access costs.
enum class MemoryKind : std::uint8_t { device, peer, host };
inline constexpr std::size_t memory_kinds = 3;

/// A half-open range [begin, end) of addresses that the launching device may read and write.
struct Window {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    /// Address in this process of the byte at address `a` is `a + shadow`.
    std::intptr_t shadow = 0;
    MemoryKind kind = MemoryKind::device;
};

/// The launching device's view of memory. Not called concurrently unless it says that it may be.
class Memory {
public:
    virtual ~Memory() = default;
    /// The window around `address`; nothing when the device may not touch it. A window stays valid
    /// while `Execution::run` runs and must be asked for again in the next call of it.
    virtual std::optional<Window> find(std::uint64_t address) = 0;
};

struct Dim3 {
    std::uint32_t x = 1, y = 1, z = 1;
    std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

/// A `.global` or `.const` variable of a module. Every device has its own instance.
struct Variable {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint64_t alignment = 1;
    bool constant = false;
    /// Initial bytes; shorter than `bytes` means that zeros follow.
    std::vector<std::byte> initial;
    /// Places in `initial` that hold the address of another variable: (offset, index of variable).
    std::vector<std::pair<std::uint64_t, std::size_t>> relocations;
};

struct Parameter {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

/// What a launcher needs to know of a kernel. Instructions stay inside.
class Kernel {
public:
    virtual ~Kernel() = default;
    virtual const std::string& name() const = 0; // mangled, as in the PTX
    virtual const std::vector<Parameter>& parameters() const = 0;
    virtual std::uint64_t parameter_bytes() const = 0;
    virtual std::uint32_t static_shared_bytes() const = 0;
    virtual std::uint32_t local_bytes() const = 0;
    virtual std::uint32_t registers() const = 0;             // estimate, for cudaFuncGetAttributes
    virtual std::uint32_t max_threads_per_block() const = 0; // from .maxntid, else 1024
};

class Module {
public:
    virtual ~Module() = default;
    /// nullptr when the module has no such kernel.
    virtual const Kernel* kernel(std::string_view name) const = 0;
    virtual const std::vector<Variable>& variables() const = 0;
    /// Parses a PTX text. Kernels are decoded at their first use, so an instruction that is not
    /// supported only matters to a program that launches it. Throws Error.
    static std::unique_ptr<Module> parse(std::string text);
};

/// The PTX text inside a fat binary as nvcc embeds it: `wrapper` is what `__cudaRegisterFatBinary`
/// receives. Plain, zstd and LZ4 compressed entries; the highest architecture when there are
/// several. Throws Error when there is none, saying which flags bring it.
std::string find_ptx(const void* wrapper);

/// What a kernel did, added up over all its threads.
struct Work {
    std::uint64_t thread_instructions = 0;
    std::uint64_t warp_instructions = 0;
    /// 32-byte sectors touched by each warp-wide access, by memory kind.
    std::array<std::uint64_t, memory_kinds> sectors_read{};
    std::array<std::uint64_t, memory_kinds> sectors_written{};
    std::uint64_t atomics = 0;
    /// Longest time any block spent in `nanosleep` or waiting for the clock, in ns.
    std::uint64_t longest_sleep_ns = 0;
};

/// Why a kernel stopped, with what no GPU tells.
struct Fault {
    /// The cudaError_t of the real thing: 700 illegal address, 716 misaligned address, 717 invalid
    /// address space, 719 launch failure (trap), 710 assert, 98 invalid device function.
    int error = 0;
    std::string kernel; // demangled
    Dim3 block{0, 0, 0};
    Dim3 thread{0, 0, 0};
    std::uint64_t address = 0; // of the first lane that failed
    std::uint32_t bytes = 0;
    bool write = false;
    std::string instruction; // text of the PTX line
    std::string location;    // "file:line" with -lineinfo, else empty
    std::string message;     // one sentence, without the owner of the address
};

struct Launch {
    const Module* module = nullptr;
    const Kernel* kernel = nullptr;
    Dim3 grid, block;
    std::uint32_t dynamic_shared_bytes = 0;
    std::vector<std::byte> parameters;
    /// Addresses of the module's variables on this device, in the order of `Module::variables()`.
    std::span<const std::uint64_t> variables;
    Memory* memory = nullptr;
    /// Receives what device `printf` prints.
    std::function<void(std::string_view)> print;
    std::uint64_t start_ns = 0; // virtual time at which the kernel starts, for %globaltimer
    double clock_ghz = 1.0;     // %clock64 ticks
    std::uint32_t multiprocessors = 1;
    /// Launched cooperatively: blocks may wait for each other with `grid.sync()`. Elsewhere that
    /// traps, as on a GPU. The launcher sees to it that all blocks fit at a time.
    bool cooperative = false;
};

/// One kernel in flight.
class Execution {
public:
    enum class State { finished, faulted, suspended };
    virtual ~Execution() = default;
    /// Runs until the kernel ends, faults, or at least `instructions` thread-instructions were
    /// executed while blocks are left. Call again to go on after `suspended`.
    virtual State run(std::uint64_t instructions) = 0;
    virtual const Work& work() const = 0;
    virtual const Fault& fault() const = 0; // valid after `faulted`
    static std::unique_ptr<Execution> create(Launch launch);
};

/// A readable name for a mangled one.
std::string demangle(const std::string& name);

} // namespace sim::ptx
