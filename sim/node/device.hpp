// One simulated GPU: its memory, its engines and links, and the state of its context.
#pragma once

#include "node/device_memory.hpp"
#include "node/node_file.hpp"
#include "node/pool.hpp"
#include "node/stream.hpp"
#include "node/timeline.hpp"

#include <map>
#include <memory>
#include <set>
#include <vector>

namespace sim {

namespace ptx {
class Module;
}

/// Engines and links of one GPU; each is used to a fraction at every moment.
struct Resources {
    Timeline upload_engine;   // host to device
    Timeline download_engine; // device to host
    Timeline compute;         // all multiprocessors together
    Timeline memory;          // traffic of device memory
    Timeline pcie_down;       // towards the device
    Timeline pcie_up;         // towards the host
    Timeline pcie_both;       // both directions of copies together
    Timeline link_in;         // NVLink towards the device
    Timeline link_out;
    Timeline staging; // the driver's copies between pageable and pinned memory
};

/// Last work of a stream that was destroyed before it was done.
struct Orphan {
    OperationPtr tail;
    bool blocking = true; // the stream was
};

class Device {
public:
    Device(int number, const NodeFile& file, AddressRange range);

    const int index;
    const NodeFile& figures;
    DeviceMemory memory;
    Resources resources;
    Stream legacy_stream;
    std::vector<Orphan> orphans;
    std::set<int> peers;  // devices whose memory this one may touch
    bool context = false; // in use: the driver has made a context
    int sticky = 0;       // cudaError_t that every further call answers; 0: none
    bool lost = false;    // reset after such an error: the process gets no new context
    unsigned flags = 0;   // cudaSetDeviceFlags
    std::vector<std::unique_ptr<Pool>> pools; // the first one is the default pool
    Pool* current_pool = nullptr;
    std::map<int, std::size_t> limits; // what cudaDeviceSetLimit set
    int cache_preference = 0;          // cudaFuncCache
    /// Addresses of each module's variables on this device.
    std::map<const ptx::Module*, std::vector<std::uint64_t>> variables;

    Pool& default_pool() const { return *pools.front(); }
    std::uint64_t free_bytes() const;
    /// The process's address of a mapped device address.
    std::byte* bytes_at(std::uint64_t address) const { return memory.bytes_at(address); }
    /// Forgets memory, pools, peers and variables.
    void clear();
    /// Adds an empty pool. The first one becomes the default and the current pool.
    Pool& add_pool(std::uint64_t max_bytes);
};

/// A live piece of device memory, from cudaMalloc or a pool.
struct Piece {
    Device* device = nullptr;
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    Pool* pool = nullptr;                   // where it comes from a pool
    const Allocation* allocation = nullptr; // where it does not
    std::uint64_t end() const { return begin + bytes; }
};

} // namespace sim
