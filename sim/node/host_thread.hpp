// What the simulator knows of a host thread: its clock, its current device, its last error.
#pragma once

#include "node/stream.hpp"

#include <cstddef>
#include <map>
#include <vector>

namespace sim {

/// A kernel launch that the compiler split into two calls.
struct CallConfiguration {
    unsigned grid[3];
    unsigned block[3];
    std::size_t shared_bytes;
    void* stream;
};

struct HostThread {
    double clock = 0; // ns
    int device = 0;
    int last_error = 0; // cudaError_t
    bool in_host_function = false;
    std::vector<CallConfiguration> configurations;
    std::map<const Device*, std::shared_ptr<Stream>> default_streams; // "per-thread" ones

    HostThread();
    ~HostThread();
    HostThread(const HostThread&) = delete;
    HostThread& operator=(const HostThread&) = delete;

    void spend(double ns) { clock += ns; }
    void wait_until(double time) {
        if (time > clock) clock = time;
    }
};

/// The calling thread. A thread starts at the clock of the thread that created it; one that was
/// created behind our back starts at the latest clock of all.
HostThread& this_thread();

} // namespace sim
