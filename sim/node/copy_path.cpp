#include "node/copy_path.hpp"

#include <algorithm>

namespace sim {
namespace {

// 1 GB/s is one byte a nanosecond.
double ns_of(std::uint64_t bytes, double gb_per_s) {
    return static_cast<double>(bytes) / gb_per_s;
}

/// What a PCIe link carries at most; kernels and copy engines come close to it in different ways.
double down_rate(const PcieFigures& pcie) {
    return std::max(pcie.pinned_h2d_gb_per_s, pcie.kernel_read_gb_per_s);
}
double up_rate(const PcieFigures& pcie) {
    return std::max(pcie.pinned_d2h_gb_per_s, pcie.kernel_write_gb_per_s);
}

/// Shares of the engine and the link for an upload or download at `rate`.
void add_upload(std::vector<Demand>& demands, Device& device, double rate) {
    const PcieFigures& pcie = device.figures.pcie;
    demands.push_back(
        {&device.resources.upload_engine, std::min(1.0, rate / pcie.pinned_h2d_gb_per_s)});
    demands.push_back({&device.resources.pcie_down, std::min(1.0, rate / down_rate(pcie))});
    demands.push_back({&device.resources.pcie_both, rate / pcie.both_ways_gb_per_s});
}

void add_download(std::vector<Demand>& demands, Device& device, double rate) {
    const PcieFigures& pcie = device.figures.pcie;
    demands.push_back(
        {&device.resources.download_engine, std::min(1.0, rate / pcie.pinned_d2h_gb_per_s)});
    demands.push_back({&device.resources.pcie_up, std::min(1.0, rate / up_rate(pcie))});
    demands.push_back({&device.resources.pcie_both, rate / pcie.both_ways_gb_per_s});
}

CopyPath upload(Device& device, bool pageable, std::uint64_t bytes) {
    const PcieFigures& pcie = device.figures.pcie;
    const double rate = pageable ? pcie.pageable_h2d_gb_per_s : pcie.pinned_h2d_gb_per_s;
    CopyPath path{pcie.copy_latency_us * 1e3 + ns_of(bytes, rate), {}};
    add_upload(path.demands, device, rate);
    if (pageable) path.demands.push_back({&device.resources.staging, 1});
    return path;
}

CopyPath download(Device& device, bool pageable, std::uint64_t bytes) {
    const PcieFigures& pcie = device.figures.pcie;
    const double rate = pageable ? pcie.pageable_d2h_gb_per_s : pcie.pinned_d2h_gb_per_s;
    CopyPath path{pcie.copy_latency_us * 1e3 + ns_of(bytes, rate), {}};
    add_download(path.demands, device, rate);
    if (pageable) path.demands.push_back({&device.resources.staging, 1});
    return path;
}

CopyPath inside(Device& device, std::uint64_t bytes) {
    const GpuFigures& gpu = device.figures.gpu;
    const double rate = gpu.device_copy_gb_per_s;
    const double share = std::min(1.0, 2 * rate / gpu.memory_gb_per_s);
    return {device.figures.pcie.copy_latency_us * 1e3 + ns_of(bytes, rate),
            {{&device.resources.memory, share}}};
}

CopyPath direct(const PeerFigures& peer, Device& to, Device& from, std::uint64_t bytes) {
    CopyPath path{peer.latency_us * 1e3 + ns_of(bytes, peer.copy_gb_per_s), {}};
    if (peer.link == PeerLink::nvlink) {
        path.demands = {{&from.resources.link_out, 1}, {&to.resources.link_in, 1}};
        return path;
    }
    const PcieFigures& pcie = to.figures.pcie;
    path.demands = {{&from.resources.pcie_up, std::min(1.0, peer.copy_gb_per_s / up_rate(pcie))},
                    {&to.resources.pcie_down, std::min(1.0, peer.copy_gb_per_s / down_rate(pcie))}};
    return path;
}

CopyPath through_host(Device& to, Device& from, std::uint64_t bytes) {
    const NodeFile& file = to.figures;
    CopyPath path{2 * file.pcie.copy_latency_us * 1e3 + ns_of(bytes, file.peer.staged_gb_per_s),
                  {}};
    add_download(path.demands, from, file.peer.staged_gb_per_s);
    add_upload(path.demands, to, file.peer.staged_gb_per_s);
    return path;
}

} // namespace

CopyPath copy_path(const Node& node, const Place& destination, const Place& source,
                   std::uint64_t bytes) {
    Device* to = destination.device;
    Device* from = source.device;
    if (to == from && to) return inside(*to, bytes);
    if (to && from) {
        // Access in either direction is enough: the copy can be done by either GPU.
        const bool open = to->peers.contains(from->index) || from->peers.contains(to->index);
        return open ? direct(node.file.peer, *to, *from, bytes) : through_host(*to, *from, bytes);
    }
    if (to) return upload(*to, source.kind == Place::Kind::pageable, bytes);
    if (from) return download(*from, destination.kind == Place::Kind::pageable, bytes);
    return {ns_of(bytes, node.file.host.copy_gb_per_s), {}};
}

CopyPath fill_path(const Node& node, const Place& destination, Device& device,
                   std::uint64_t bytes) {
    const PcieFigures& pcie = node.file.pcie;
    if (Device* to = destination.device) {
        return {node.file.api.kernel.of(0) + ns_of(bytes, node.file.gpu.memory_gb_per_s),
                {{&to->resources.memory, 1}}};
    }
    return {
        node.file.api.kernel.of(0) + ns_of(bytes, pcie.kernel_write_gb_per_s),
        {{&device.resources.pcie_up, std::min(1.0, pcie.kernel_write_gb_per_s / up_rate(pcie))}}};
}

std::string copy_name(const Place& destination, const Place& source, std::uint64_t bytes) {
    const std::string size = readable_bytes(bytes);
    const Device* to = destination.device;
    const Device* from = source.device;
    if (to && from)
        return "copy of " + size + " from GPU " + std::to_string(from->index) + " to GPU " +
               std::to_string(to->index);
    if (to) return "upload of " + size + " to GPU " + std::to_string(to->index);
    if (from) return "download of " + size + " from GPU " + std::to_string(from->index);
    return "copy of " + size + " in host memory";
}

} // namespace sim
