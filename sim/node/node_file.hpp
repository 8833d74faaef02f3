// A node as a file describes it: how many GPUs, how they are connected, how fast everything is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace sim {

/// A node file that is missing, cannot be read or says something impossible. `what()` is one
/// sentence for the user, with file and line where there is one.
struct NodeFileError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// How the GPUs of a node reach each other's memory.
enum class PeerLink { none, pcie, nvlink };

struct GpuFigures {
    std::string name;
    int compute_major = 0;
    int compute_minor = 0;
    std::uint64_t memory_bytes = 0;
    std::uint64_t context_bytes = 0; // what the driver takes for itself once a GPU is used
    int multiprocessors = 0;
    double clock_mhz = 0;
    double warp_instructions_per_clock = 0; // of one multiprocessor
    double instruction_latency_clocks = 0;  // of one warp, from one instruction to the next
    int threads_per_multiprocessor = 0;
    int blocks_per_multiprocessor = 0;
    std::uint64_t shared_per_multiprocessor_bytes = 0;
    std::uint64_t shared_per_block_optin_bytes = 0;
    std::uint64_t l2_bytes = 0;
    int copy_engines = 0;
    double memory_gb_per_s = 0;      // traffic of device memory, read and written bytes together
    double device_copy_gb_per_s = 0; // a copy inside one GPU, bytes counted once
    double warp_gb_per_s = 0;        // what a single warp can draw from device memory
};

struct PcieFigures {
    double pinned_h2d_gb_per_s = 0;
    double pinned_d2h_gb_per_s = 0;
    double both_ways_gb_per_s = 0; // uploads and downloads together
    double pageable_h2d_gb_per_s = 0;
    double pageable_d2h_gb_per_s = 0;
    double kernel_read_gb_per_s = 0;  // a kernel reading pinned host memory, coalesced
    double kernel_write_gb_per_s = 0; // a kernel writing it
    double warp_gb_per_s = 0;         // what a single warp can draw from host memory
    double copy_latency_us = 0;
    std::uint64_t staged_bytes = 0; // asynchronous pageable uploads up to this size return at once
};

struct PeerFigures {
    PeerLink link = PeerLink::none;
    double copy_gb_per_s = 0;   // each direction of a GPU
    double kernel_gb_per_s = 0; // a kernel reading or writing the other GPU's memory
    double latency_us = 0;
    double staged_gb_per_s = 0; // a copy through the host, where peer access is off or impossible
};

/// Time the host spends in a call: a fixed part and a part that grows with the size.
struct CallCost {
    double us = 0;
    double us_per_mib = 0;
    /// In nanoseconds.
    double of(std::uint64_t bytes) const {
        return (us + us_per_mib * static_cast<double>(bytes) / (1 << 20)) * 1e3;
    }
};

struct HostFigures {
    std::uint64_t pinnable_bytes = 0;
    double copy_gb_per_s = 0;
};

struct ApiFigures {
    CallCost context, any_call, launch, kernel, copy, blocking_copy, synchronize, query;
    CallCost event_record, wait_event, stream_create, event_create, host_function;
    CallCost malloc, free, malloc_host, free_host, host_register, host_unregister;
    CallCost malloc_async, free_async, pool_grow, pool_release, enable_peer;
};

struct NodeFile {
    std::string name;
    std::string description;
    int gpus = 0;
    GpuFigures gpu;
    PcieFigures pcie;
    PeerFigures peer;
    HostFigures host;
    ApiFigures api;
};

/// Reads one node file. Throws NodeFileError.
NodeFile read_node_file(const std::filesystem::path& path);

/// Gives the node another number of GPUs, all alike: `text` is a whole number, as in SIM_GPUS.
/// Throws NodeFileError.
void set_gpus(NodeFile& file, const std::string& text);

/// The folder of the node files that come with the simulator: beside the library that holds this
/// function, else in the source tree it was built from.
std::filesystem::path node_folder();

/// Names of the node files in `folder`, sorted, without ".toml".
std::vector<std::string> known_nodes(const std::filesystem::path& folder);

/// Where the node that the user asked for lies: `wanted` is a name in `folder` or a path to a
/// .toml file; empty means the default node. Throws NodeFileError that lists the known names.
std::filesystem::path find_node_file(const std::string& wanted,
                                     const std::filesystem::path& folder);

} // namespace sim
