// How long a kernel takes, from what it did.
#pragma once

#include "node/device.hpp"
#include "ptx/ptx.hpp"

#include <cstdint>
#include <vector>

namespace sim {

/// What one kernel asks of a multiprocessor.
struct KernelShape {
    std::uint64_t blocks = 0;
    std::uint32_t threads_per_block = 0;
    std::uint64_t shared_bytes = 0; // static and dynamic, a block
    std::uint32_t registers = 0;    // a thread
};

/// Shared memory that the system takes of every block, in bytes.
inline constexpr std::uint64_t reserved_shared_bytes = 1024;

/// Blocks that one multiprocessor can hold at once; 0 when not even one fits.
int blocks_per_multiprocessor(const GpuFigures& gpu, const KernelShape& shape);

/// Share of the GPU that a kernel occupies, from the least the scheduler gives to 1.
double occupied_fraction(const GpuFigures& gpu, const KernelShape& shape);

struct KernelTime {
    double ns = 0; // alone on the GPU
    std::vector<Demand> demands;
};

KernelTime kernel_time(Device& device, const KernelShape& shape, const ptx::Work& work);

} // namespace sim
