#include "node/kernel_time.hpp"

#include <algorithm>

namespace sim {
namespace {

constexpr double sector_bytes = 32;
constexpr std::uint32_t warp = 32;
constexpr std::uint32_t registers_per_multiprocessor = 65536;
// As many kernels as a GPU runs beside each other.
constexpr double most_kernels = 128;

double bytes_of(const std::array<std::uint64_t, ptx::memory_kinds>& sectors, ptx::MemoryKind kind) {
    return static_cast<double>(sectors[static_cast<std::size_t>(kind)]) * sector_bytes;
}

std::uint64_t warps_per_block(const KernelShape& shape) {
    return (shape.threads_per_block + warp - 1) / warp;
}

/// Warps that work at the same time.
double resident_warps(const GpuFigures& gpu, const KernelShape& shape) {
    const auto places = static_cast<std::uint64_t>(
        std::max(1, blocks_per_multiprocessor(gpu, shape)) * gpu.multiprocessors);
    return static_cast<double>(std::min(shape.blocks, places) * warps_per_block(shape));
}

/// A few warps cannot keep a memory busy: each has only so much under way.
double rate(double most, double per_warp, double warps) {
    return std::min(most, per_warp * warps);
}

double instruction_ns(const GpuFigures& gpu, const KernelShape& shape, const ptx::Work& work) {
    const double clocks_per_ns = gpu.clock_mhz / 1e3;
    const auto used = static_cast<double>(
        std::min<std::uint64_t>(shape.blocks, static_cast<std::uint64_t>(gpu.multiprocessors)));
    const auto instructions = static_cast<double>(work.warp_instructions);
    const double issue = instructions / (used * gpu.warp_instructions_per_clock);
    const double latency =
        instructions * gpu.instruction_latency_clocks / resident_warps(gpu, shape);
    return std::max(issue, latency) / clocks_per_ns;
}

} // namespace

int blocks_per_multiprocessor(const GpuFigures& gpu, const KernelShape& shape) {
    const std::uint64_t warps = warps_per_block(shape);
    if (warps == 0 || warps * warp > 1024) return 0;
    std::uint64_t blocks = static_cast<std::uint64_t>(gpu.blocks_per_multiprocessor);
    blocks = std::min<std::uint64_t>(
        blocks, static_cast<std::uint64_t>(gpu.threads_per_multiprocessor) / (warps * warp));
    if (shape.shared_bytes > 0) {
        blocks = std::min(blocks, gpu.shared_per_multiprocessor_bytes /
                                      (shape.shared_bytes + reserved_shared_bytes));
    }
    if (shape.registers > 0) {
        const std::uint32_t rounded = (shape.registers + 7) / 8 * 8;
        const std::uint64_t fit = registers_per_multiprocessor / (rounded * warps * warp);
        // Only an estimate, as PTX does not say what a GPU's compiler needs: it refuses no block.
        blocks = std::min(blocks, std::max<std::uint64_t>(fit, 1));
    }
    return static_cast<int>(blocks);
}

double occupied_fraction(const GpuFigures& gpu, const KernelShape& shape) {
    const double places = std::max(1, blocks_per_multiprocessor(gpu, shape)) *
                          static_cast<double>(gpu.multiprocessors);
    return std::clamp(static_cast<double>(shape.blocks) / places, 1 / most_kernels, 1.0);
}

KernelTime kernel_time(Device& device, const KernelShape& shape, const ptx::Work& work) {
    using ptx::MemoryKind;
    const NodeFile& file = device.figures;
    const GpuFigures& gpu = file.gpu;
    Resources& resources = device.resources;
    const double warps = resident_warps(gpu, shape);

    const double device_ns = (bytes_of(work.sectors_read, MemoryKind::device) +
                              bytes_of(work.sectors_written, MemoryKind::device)) /
                             rate(gpu.memory_gb_per_s, gpu.warp_gb_per_s, warps);
    const double host_read_ns =
        bytes_of(work.sectors_read, MemoryKind::host) /
        rate(file.pcie.kernel_read_gb_per_s, file.pcie.warp_gb_per_s, warps);
    const double host_write_ns =
        bytes_of(work.sectors_written, MemoryKind::host) /
        rate(file.pcie.kernel_write_gb_per_s, file.pcie.warp_gb_per_s, warps);
    double peer_read_ns = 0;
    double peer_write_ns = 0;
    if (file.peer.link != PeerLink::none) {
        const double peer_rate = rate(file.peer.kernel_gb_per_s, file.pcie.warp_gb_per_s, warps);
        peer_read_ns = bytes_of(work.sectors_read, MemoryKind::peer) / peer_rate;
        peer_write_ns = bytes_of(work.sectors_written, MemoryKind::peer) / peer_rate;
    }
    const double busy =
        std::max({instruction_ns(gpu, shape, work), device_ns, host_read_ns, host_write_ns,
                  peer_read_ns, peer_write_ns, static_cast<double>(work.longest_sleep_ns)});

    KernelTime result;
    result.ns = file.api.kernel.of(0) + busy;
    result.demands.push_back({&resources.compute, occupied_fraction(gpu, shape)});
    const auto demand = [&](Timeline& timeline, double ns) {
        const double fraction = ns / result.ns;
        if (fraction > 0.01) result.demands.push_back({&timeline, fraction});
    };
    const bool nvlink = file.peer.link == PeerLink::nvlink;
    demand(resources.memory, device_ns);
    demand(resources.pcie_down, host_read_ns + (nvlink ? 0 : peer_read_ns));
    demand(resources.pcie_up, host_write_ns + (nvlink ? 0 : peer_write_ns));
    if (nvlink) {
        demand(resources.link_in, peer_read_ns);
        demand(resources.link_out, peer_write_ns);
    }
    return result;
}

} // namespace sim
