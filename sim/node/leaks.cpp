// What a program has not given back when it ends: said on stderr when SIM_LEAKS is 1.
#include "node/node.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sim {
namespace {

struct Tally {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    void add(std::uint64_t more) {
        ++count;
        bytes += more;
    }
};

void say(const char* where, const char* what, const Tally& tally) {
    if (tally.count == 0) return;
    std::fprintf(stderr, "sim: never freed: %llu x %s%s, %s\n",
                 static_cast<unsigned long long>(tally.count), what, where,
                 readable_bytes(tally.bytes).c_str());
}

void say_device(const Device& device) {
    const std::string where = " on GPU " + std::to_string(device.index);
    Tally allocated;
    for (const auto& [begin, allocation] : device.memory.allocations()) {
        if (allocation.purpose == Purpose::allocation) allocated.add(allocation.bytes);
    }
    say(where.c_str(), "cudaMalloc", allocated);
    Tally pooled;
    for (const auto& pool : device.pools) {
        pooled.count += pool->live_blocks();
        pooled.bytes += pool->used();
    }
    say(where.c_str(), "cudaMallocAsync", pooled);
}

void say_host(const HostMemory& host) {
    Tally allocated, registered, managed;
    for (const auto& [begin, range] : host.ranges()) {
        if (range.kind == HostKind::allocated) allocated.add(range.bytes);
        if (range.kind == HostKind::registered) registered.add(range.bytes);
        if (range.kind == HostKind::managed) managed.add(range.bytes);
    }
    say("", "pinned memory", allocated);
    say("", "cudaHostRegister", registered);
    say("", "cudaMallocManaged", managed);
}

// Runs after the program's own exit handlers and destructors of global objects.
__attribute__((destructor)) void report_leaks() {
    const char* wanted = std::getenv("SIM_LEAKS");
    Node* node = the_node_if_made();
    if (!node || !wanted || std::strcmp(wanted, "1") != 0) return;
    for (const auto& device : node->devices)
        say_device(*device);
    say_host(node->host);
    const auto streams = node->stream_count();
    const auto events = node->event_count();
    if (streams + events > 0)
        std::fprintf(stderr, "sim: never destroyed: %zu streams, %zu events\n", streams, events);
}

} // namespace
} // namespace sim
