#include "node/node.hpp"

#include "node/host_access.hpp"
#include "node/operations.hpp"
#include "node/trace.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace sim {
namespace {

std::atomic<Node*> made{nullptr};

// Room for holes between allocations: addresses are used once as long as possible.
constexpr std::uint64_t addresses_per_byte = 4;

std::uint64_t address_bytes(const NodeFile& file) {
    constexpr std::uint64_t gib = 1ull << 30;
    return (file.gpu.memory_bytes * addresses_per_byte + gib - 1) / gib * gib;
}

} // namespace

Node::Node(NodeFile node_file)
    : file(std::move(node_file)),
      engine([](const Operation& operation) { return operation.device.sticky != 0; }),
      host(file.host.pinnable_bytes),
      addresses_(reserve_addresses(address_bytes(file) * static_cast<std::uint64_t>(file.gpus))),
      bytes_per_device_(address_bytes(file)) {
    for (int i = 0; i < file.gpus; ++i) {
        AddressRange part = addresses_;
        part.begin += static_cast<std::uint64_t>(i) * bytes_per_device_;
        part.bytes = bytes_per_device_;
        devices.push_back(std::make_unique<Device>(i, file, part));
    }
}

Node::~Node() {
    release_addresses(addresses_);
}

Device* Node::device(int index) {
    if (index < 0 || index >= file.gpus) return nullptr;
    return devices[static_cast<std::size_t>(index)].get();
}

Device* Node::owner(std::uint64_t address) {
    if (!addresses_.holds(address)) return nullptr;
    return devices[(address - addresses_.begin) / bytes_per_device_].get();
}

Piece Node::piece(std::uint64_t address) {
    Device* device = owner(address);
    if (!device) return {};
    const Extent* extent = device->memory.find_extent(address);
    if (!extent) return {};
    if (extent->pool) {
        const PoolBlock* block = extent->pool->find(address);
        if (!block || !block->live || address >= block->end()) return {};
        return {device, block->begin, block->bytes, extent->pool, nullptr};
    }
    const Allocation* allocation = device->memory.find(address);
    if (!allocation) return {};
    return {device, allocation->begin, allocation->bytes, nullptr, allocation};
}

Place Node::place(std::uint64_t address) {
    if (Device* device = owner(address)) return {Place::Kind::device, device};
    if (host.find(address)) return {Place::Kind::pinned, nullptr};
    return {};
}

std::byte* Node::bytes_at(std::uint64_t address) {
    if (Device* device = owner(address)) return device->bytes_at(address);
    return reinterpret_cast<std::byte*>(address);
}

bool Node::can_access(const Device& from, const Device& to) const {
    return &from != &to && file.peer.link != PeerLink::none;
}

Stream& Node::add_stream(Device& device, unsigned flags, int priority, bool blocking) {
    auto stream = std::make_shared<Stream>();
    stream->device = &device;
    stream->id = next_stream_++;
    stream->flags = flags;
    stream->priority = priority;
    stream->blocking = blocking;
    Stream& result = *stream;
    streams_[&result] = std::move(stream);
    return result;
}

Stream* Node::find_stream(const void* handle) {
    auto found = streams_.find(handle);
    return found == streams_.end() ? nullptr : found->second.get();
}

void Node::remove_stream(const void* handle) {
    const auto found = streams_.find(handle);
    if (found == streams_.end()) return;
    // The work goes on, and whoever waits for the device waits for it too.
    const Stream& stream = *found->second;
    auto& orphans = stream.device->orphans;
    std::erase_if(
        orphans, [](const Orphan& orphan) { return orphan.tail->state == Operation::State::done; });
    if (stream.tail) orphans.push_back({stream.tail, stream.blocking});
    streams_.erase(found);
}

std::size_t Node::stream_count() const {
    return static_cast<std::size_t>(
        std::count_if(streams_.begin(), streams_.end(),
                      [](const auto& entry) { return !entry.second->of_thread; }));
}

Event& Node::add_event(Device& device, unsigned flags, bool timed) {
    auto event = std::make_unique<Event>();
    event->device = &device;
    event->flags = flags;
    event->timed = timed;
    Event& result = *event;
    events_[&result] = std::move(event);
    return result;
}

Event* Node::find_event(const void* handle) {
    auto found = events_.find(handle);
    return found == events_.end() ? nullptr : found->second.get();
}

void Node::remove_event(const void* handle) {
    events_.erase(handle);
}

void Node::remove_streams_and_events(const Device& device) {
    std::erase_if(streams_, [&](const auto& entry) { return entry.second->device == &device; });
    std::erase_if(events_, [&](const auto& entry) { return entry.second->device == &device; });
}

Stream& Node::thread_stream(HostThread& thread, Device& device) {
    auto& own = thread.default_streams[&device];
    if (!own || !streams_.contains(own.get())) {
        Stream& stream = add_stream(device, 0, 0, true);
        own = streams_[&stream];
        own->of_thread = true;
    }
    return *own;
}

std::vector<OperationPtr> Node::tails(const Device& device) const {
    std::vector<OperationPtr> result{device.legacy_stream.tail};
    for (const Orphan& orphan : device.orphans)
        result.push_back(orphan.tail);
    for (const auto& [handle, stream] : streams_) {
        if (stream->device == &device) result.push_back(stream->tail);
    }
    std::erase(result, nullptr);
    return result;
}

std::vector<OperationPtr> Node::tails(const Stream& stream) const {
    std::vector<OperationPtr> result;
    // The default stream is idle only when no blocking stream works, too.
    if (stream.legacy)
        add_default_order(*stream.device, result);
    else
        result.push_back(stream.tail);
    std::erase(result, nullptr);
    return result;
}

void Node::add_default_order(const Device& device, std::vector<OperationPtr>& after) const {
    after.push_back(device.legacy_stream.tail);
    for (const Orphan& orphan : device.orphans) {
        if (orphan.blocking) after.push_back(orphan.tail);
    }
    for (const auto& [handle, other] : streams_) {
        if (other->device == &device && other->blocking) after.push_back(other->tail);
    }
}

OperationPtr Node::submit(Stream& stream, const OperationMaker& make, HostThread& thread,
                          const std::vector<OperationPtr>& also) {
    if (stream.capture) {
        stream.capture_after = {
            &stream.capture->graph->add(*stream.device, make, stream.capture_after)};
        return nullptr;
    }
    const OperationPtr operation = make();
    operation->stream = stream.id;
    operation->issued = thread.clock;
    operation->after = also;
    if (stream.legacy)
        add_default_order(*stream.device, operation->after);
    else
        operation->after.push_back(stream.tail);
    if (stream.blocking) operation->after.push_back(stream.device->legacy_stream.tail);
    stream.tail = operation;
    engine.submit(operation);
    return operation;
}

namespace {

OperationMaker marker(Device& device, const char* what) {
    return [&device, what] { return std::make_shared<MarkerOperation>(device, what); };
}

/// Adds copies of a graph's nodes to the one that a stream captures.
void capture_graph(Stream& stream, const Graph& graph) {
    std::unordered_map<const GraphNode*, GraphNode*> copies;
    for (const GraphNode* node : graph.in_order()) {
        std::vector<GraphNode*> after;
        for (const GraphNode* earlier : node->after)
            after.push_back(copies.at(earlier));
        if (after.empty()) after = stream.capture_after;
        copies[node] = &stream.capture->graph->add(*node->device, node->make, after);
    }
    std::vector<GraphNode*> last;
    for (const GraphNode* node : graph.last_nodes())
        last.push_back(copies.at(node));
    stream.capture_after = {&stream.capture->graph->add(*stream.device, nullptr, last)};
}

} // namespace

OperationPtr Node::submit(Stream& stream, const Graph& graph, HostThread& thread,
                          const OperationPtr& former) {
    if (stream.capture) {
        capture_graph(stream, graph);
        return nullptr;
    }
    const OperationPtr begin =
        submit(stream, marker(*stream.device, "begin of a graph"), thread, {former});
    std::unordered_map<const GraphNode*, OperationPtr> operations;
    for (const GraphNode* node : graph.in_order()) {
        const OperationPtr operation =
            node->make ? node->make() : marker(*node->device, "empty node of a graph")();
        operation->stream = stream.id;
        operation->issued = thread.clock;
        operation->after = {begin};
        for (const GraphNode* earlier : node->after)
            operation->after.push_back(operations.at(earlier));
        engine.submit(operation);
        operations[node] = operation;
    }
    std::vector<OperationPtr> last;
    for (const GraphNode* node : graph.last_nodes())
        last.push_back(operations.at(node));
    return submit(stream, marker(*stream.device, "end of a graph"), thread, last);
}

bool Node::is_capturing(bool strict) const {
    return std::any_of(streams_.begin(), streams_.end(), [&](const auto& entry) {
        const auto& capture = entry.second->capture;
        return capture && capture->by_program && (capture->strict || !strict);
    });
}

void Node::break_captures() {
    for (const auto& [handle, stream] : streams_) {
        if (stream->capture) stream->capture->valid = false;
    }
}

void Node::wait(const OperationPtr& operation, HostThread& thread, Lock& lock) {
    if (!operation) return;
    engine.run_until_done(operation, lock);
    const double begin = thread.clock;
    thread.wait_until(operation->end);
    if (Trace* trace = Trace::active())
        trace->add(thread, "waits for " + operation->what, "wait", begin);
}

void Node::wait(const Stream& stream, HostThread& thread, Lock& lock) {
    for (const OperationPtr& tail : tails(stream))
        wait(tail, thread, lock);
}

void Node::wait(const Device& device, HostThread& thread, Lock& lock) {
    for (const OperationPtr& tail : tails(device))
        wait(tail, thread, lock);
}

bool Node::is_over(const OperationPtr& operation, const HostThread& thread, Lock& lock) {
    if (!operation) return true;
    engine.run_until(thread.clock, lock);
    return operation->state == Operation::State::done && operation->end <= thread.clock;
}

bool Node::is_over(const Stream& stream, const HostThread& thread, Lock& lock) {
    for (const OperationPtr& tail : tails(stream)) {
        if (!is_over(tail, thread, lock)) return false;
    }
    return true;
}

std::string readable_bytes(std::uint64_t bytes) {
    static constexpr struct {
        std::uint64_t size;
        const char* name;
    } units[]{{1ull << 30, " GiB"}, {1ull << 20, " MiB"}, {1ull << 10, " KiB"}};
    for (const auto& unit : units) {
        if (bytes >= unit.size && bytes % unit.size == 0)
            return std::to_string(bytes / unit.size) + unit.name;
    }
    return std::to_string(bytes) + " bytes";
}

std::string Node::describe(std::uint64_t address) {
    std::ostringstream text;
    Device* device = owner(address);
    if (!device) {
        if (const HostRange* range = host.find(address)) {
            text << "it is " << (range->kind == HostKind::managed ? "managed" : "pinned host")
                 << " memory, " << readable_bytes(range->bytes) << ", at offset "
                 << address - range->begin;
        } else if (const HostRange* released = host.find_released(address)) {
            text << "it was pinned host memory, " << readable_bytes(released->bytes)
                 << ", and has been freed";
        } else if (address < 4096) {
            text << "it is a null pointer";
        } else {
            text << "no GPU owns it and it is not pinned host memory";
        }
        return text.str();
    }
    text << "GPU " << device->index << " owns it: ";
    if (const Piece found = piece(address); found.device) {
        text << readable_bytes(found.bytes);
        if (found.allocation && found.allocation->purpose == Purpose::variable)
            text << " of variable " << found.allocation->label;
        else
            text << (found.pool ? " from a memory pool" : " from cudaMalloc");
        text << ", at offset " << address - found.begin;
    } else if (const Freed* freed = device->memory.find_freed(address)) {
        text << readable_bytes(freed->bytes) << ", freed by " << freed->how;
    } else if (const Allocation* before = device->memory.before(address)) {
        text << address - before->end() << " bytes past the end of an allocation of "
             << readable_bytes(before->bytes);
    } else {
        text << "nothing is allocated there";
    }
    return text.str();
}

const KernelTime* Node::find_kernel_time(const std::string& signature) const {
    auto found = kernel_times_.find(signature);
    return found == kernel_times_.end() ? nullptr : &found->second;
}

void Node::remember_kernel_time(const std::string& signature, KernelTime time) {
    kernel_times_[signature] = std::move(time);
}

void Node::trim_pools(Device& device, HostThread& thread) {
    for (const auto& pool : device.pools) {
        if (pool->reserved() <= pool->threshold) continue;
        const std::uint64_t released = pool->release(pool->threshold, thread.clock);
        if (released > 0) thread.spend(file.api.pool_release.of(released));
    }
}

Node* the_node_if_made() {
    return made.load();
}

Node& the_node() {
    // Never destroyed: threads and exit handlers of the program may still call.
    static Node* node = [] {
        const char* wanted = std::getenv("SIM_NODE");
        const char* gpus = std::getenv("SIM_GPUS");
        try {
            NodeFile file = read_node_file(find_node_file(wanted ? wanted : "", node_folder()));
            if (gpus) set_gpus(file, gpus);
            auto* result = new Node(std::move(file));
            made = result;
            watch_host_access();
            return result;
        } catch (const std::exception& error) {
            std::fprintf(stderr, "sim: %s\n", error.what());
            std::exit(1);
        }
    }();
    return *node;
}

} // namespace sim
