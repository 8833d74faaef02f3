// Launches kernels of a PTX text on memory of the test's own.
#pragma once

#include "ptx/ptx.hpp"

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <type_traits>

namespace test {

/// Buffers at made-up device addresses, far apart from each other.
class DeviceMemory : public sim::ptx::Memory {
public:
    std::uint64_t allocate(std::size_t bytes,
                           sim::ptx::MemoryKind kind = sim::ptx::MemoryKind::device);
    /// Where the bytes at a device address really are.
    std::byte* at(std::uint64_t address);
    std::optional<sim::ptx::Window> find(std::uint64_t address) override;
    /// How often a window was asked for.
    unsigned questions = 0;

private:
    struct Allocation {
        std::size_t bytes;
        std::unique_ptr<std::byte[]> data;
        sim::ptx::MemoryKind kind;
    };
    std::map<std::uint64_t, Allocation> allocations_;
    std::uint64_t next_ = 0x700000000000;
};

/// A typed array in the device's memory.
template <class T> struct Array {
    std::uint64_t address = 0;
    T* data = nullptr; // host's view
    std::size_t count = 0;

    T& operator[](std::size_t index) const { return data[index]; }
};

struct Grid {
    sim::ptx::Dim3 blocks, threads;
    std::uint32_t shared = 0;
};

class Device {
public:
    explicit Device(std::string text);

    template <class T>
    Array<T> array(std::size_t count, sim::ptx::MemoryKind kind = sim::ptx::MemoryKind::device) {
        const std::uint64_t address = memory.allocate(count * sizeof(T), kind);
        return {address, reinterpret_cast<T*>(memory.at(address)), count};
    }

    /// Starts a kernel whose mangled name contains `name`. Arguments: arrays and values.
    template <class... A>
    std::unique_ptr<sim::ptx::Execution> start(const std::string& name, Grid grid,
                                               const A&... arguments) {
        std::vector<std::byte> bytes;
        (append(bytes, arguments), ...);
        return start_with(name, grid, std::move(bytes));
    }

    /// Runs it to the end; the fault must be none.
    template <class... A>
    sim::ptx::Work run(const std::string& name, Grid grid, const A&... arguments) {
        return finish(*start(name, grid, arguments...));
    }

    /// Runs it until it faults.
    template <class... A>
    sim::ptx::Fault fault(const std::string& name, Grid grid, const A&... arguments) {
        return fail(*start(name, grid, arguments...));
    }

    std::string kernel_name(const std::string& part) const;

    DeviceMemory memory;
    std::unique_ptr<sim::ptx::Module> module;
    std::vector<std::uint64_t> variables;
    std::string printed;
    std::uint64_t start_ns = 0;
    std::uint32_t multiprocessors = 4;
    bool cooperative = false;

private:
    template <class T> static void append(std::vector<std::byte>& bytes, const T& value) {
        if constexpr (requires { value.address; }) {
            append(bytes, value.address);
        } else {
            static_assert(std::is_trivially_copyable_v<T>);
            bytes.resize((bytes.size() + alignof(T) - 1) / alignof(T) * alignof(T));
            const std::size_t offset = bytes.size();
            bytes.resize(offset + sizeof(T));
            std::memcpy(bytes.data() + offset, &value, sizeof(T));
        }
    }
    std::unique_ptr<sim::ptx::Execution> start_with(const std::string& name, Grid grid,
                                                    std::vector<std::byte> parameters);
    static sim::ptx::Work finish(sim::ptx::Execution& execution);
    static sim::ptx::Fault fail(sim::ptx::Execution& execution);

    std::string text_;
};

/// The kernels of `<folder>/<name>.<architecture>.ptx`, compiled when the tests were.
std::string read_kernels(const std::string& name, const std::string& architecture);

} // namespace test
