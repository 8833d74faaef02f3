// The whole machine: its GPUs, the host memory they know of, and the work in flight.
#pragma once

#include "node/device.hpp"
#include "node/engine.hpp"
#include "node/host_memory.hpp"
#include "node/host_thread.hpp"
#include "node/kernel_time.hpp"
#include "node/node_file.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace sim {

/// Where the bytes of one end of a copy are.
struct Place {
    enum class Kind { pageable, pinned, device } kind = Kind::pageable;
    Device* device = nullptr; // for Kind::device
};

class Node {
public:
    explicit Node(NodeFile file);
    ~Node();
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    const NodeFile file;
    std::mutex mutex; // guards everything here
    Engine engine;
    HostMemory host;
    std::vector<std::unique_ptr<Device>> devices;

    /// nullptr when there is no such device.
    Device* device(int index);
    /// The device whose address range holds `address`, or nullptr.
    Device* owner(std::uint64_t address);
    /// The live device memory around `address`; its `device` is nullptr when there is none.
    Piece piece(std::uint64_t address);
    Place place(std::uint64_t address);
    /// The process's address of the byte at an address of either kind.
    std::byte* bytes_at(std::uint64_t address);
    bool can_access(const Device& from, const Device& to) const;

    /// Streams and events are owned here; what the program holds are their addresses.
    Stream& add_stream(Device& device, unsigned flags, int priority, bool blocking);
    Stream* find_stream(const void* handle);
    void remove_stream(const void* handle);
    Event& add_event(Device& device, unsigned flags, bool timed);
    Event* find_event(const void* handle);
    void remove_event(const void* handle);
    /// Forgets the streams and events of a device.
    void remove_streams_and_events(const Device& device);
    /// How many of both the program holds; default streams of threads do not count.
    std::size_t stream_count() const;
    std::size_t event_count() const { return events_.size(); }
    /// The calling thread's own default stream on `device`.
    Stream& thread_stream(HostThread& thread, Device& device);

    /// Puts work at the end of a stream, also behind what the default stream's rules ask for and
    /// behind `also`, from the caller's clock on. While the stream captures, this adds a node to
    /// its graph instead and returns nullptr.
    OperationPtr submit(Stream& stream, const OperationMaker& make, HostThread& thread,
                        const std::vector<OperationPtr>& also = {});
    /// Puts the work of a graph at the end of a stream, behind `former` as well. Returns its end;
    /// nullptr while the stream captures, which gets a copy of the nodes.
    OperationPtr submit(Stream& stream, const Graph& graph, HostThread& thread,
                        const OperationPtr& former);
    /// Whether the program captures some stream now; only strict captures count if `strict`.
    bool is_capturing(bool strict = false) const;
    /// A call that a capture does not allow has broken all that are under way.
    void break_captures();
    /// Adds what work in the default stream of `device` has to wait for.
    void add_default_order(const Device& device, std::vector<OperationPtr>& after) const;
    /// The caller waits for one operation, for a stream, or for all streams of a device.
    void wait(const OperationPtr& operation, HostThread& thread, Lock& lock);
    void wait(const Stream& stream, HostThread& thread, Lock& lock);
    void wait(const Device& device, HostThread& thread, Lock& lock);
    /// Whether `operation` (null: yes) or all work of a stream is over at the caller's clock.
    bool is_over(const OperationPtr& operation, const HostThread& thread, Lock& lock);
    bool is_over(const Stream& stream, const HostThread& thread, Lock& lock);

    /// What is known of an address, in words: who owns it, how large it is, whether it was freed.
    std::string describe(std::uint64_t address);
    /// How long a launch with this signature took before; nullptr when there was none.
    const KernelTime* find_kernel_time(const std::string& signature) const;
    void remember_kernel_time(const std::string& signature, KernelTime time);

    /// Gives the unused memory of a device's pools back, as far as their thresholds ask for it.
    void trim_pools(Device& device, HostThread& thread);

private:
    std::vector<OperationPtr> tails(const Device& device) const;
    std::vector<OperationPtr> tails(const Stream& stream) const;

    AddressRange addresses_;
    std::uint64_t bytes_per_device_;
    std::uint64_t next_stream_ = 1;
    std::unordered_map<const void*, std::shared_ptr<Stream>> streams_;
    std::unordered_map<const void*, std::unique_ptr<Event>> events_;
    std::unordered_map<std::string, KernelTime> kernel_times_;
};

/// The node of this process, made at the first call: SIM_NODE names its file. Ends the process
/// with a message when that cannot be read.
Node& the_node();
/// The same, or nullptr as long as nobody has asked for it.
Node* the_node_if_made();

/// "64 MiB", "1000 bytes": sizes in messages.
std::string readable_bytes(std::uint64_t bytes);

} // namespace sim
