#include "node/trace.hpp"

#include "node/node.hpp"

#include <cstdio>
#include <cstdlib>
#include <set>

namespace sim {
namespace {

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        if (static_cast<unsigned char>(c) >= 0x20) result += c;
    }
    return result + '"';
}

int process_of(int device) {
    return device + 1; // viewers sort by number: the host comes first
}

void write_process_name(std::FILE* file, int device) {
    const std::string owner = device < 0 ? "host" : "GPU " + std::to_string(device);
    std::fprintf(file,
                 "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %d, \"args\": {\"name\": "
                 "%s}}",
                 process_of(device), quoted(owner).c_str());
}

} // namespace

Trace* Trace::active() {
    static Trace* trace = [] {
        const char* path = std::getenv("SIM_TRACE");
        return path && *path ? new Trace(path) : nullptr;
    }();
    return trace;
}

void Trace::add(const Operation& operation) {
    if (!operation.category) return;
    entries_.push_back({operation.what, operation.category, operation.device.index,
                        operation.stream, operation.begin, operation.end});
}

void Trace::add(const HostThread& thread, const std::string& what, const char* category,
                double begin) {
    if (thread.clock <= begin) return;
    const std::uint64_t row = threads_.try_emplace(&thread, threads_.size()).first->second;
    entries_.push_back({what, category, -1, row, begin, thread.clock});
}

void Trace::write(const std::string& node_name, int gpus) const {
    std::FILE* file = std::fopen(path_.c_str(), "w");
    if (!file) {
        std::fprintf(stderr, "sim: the timeline cannot be written to %s\n", path_.c_str());
        return;
    }
    std::fprintf(file, "{\"displayTimeUnit\": \"ns\", \"otherData\": {\"node\": %s},\n",
                 quoted(node_name).c_str());
    std::fprintf(file, "\"traceEvents\": [");
    for (int device = -1; device < gpus; ++device) {
        std::fputs(device < 0 ? "\n" : ",\n", file);
        write_process_name(file, device);
    }
    std::set<std::pair<int, std::uint64_t>> named;
    for (const Entry& entry : entries_) {
        const int process = process_of(entry.device);
        if (named.insert({process, entry.row}).second) {
            const std::string row =
                (entry.device < 0 ? "thread " : "stream ") + std::to_string(entry.row);
            std::fprintf(
                file,
                ",\n{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %d, \"tid\": %llu, "
                "\"args\": {\"name\": %s}}",
                process, static_cast<unsigned long long>(entry.row), quoted(row).c_str());
        }
        std::fprintf(
            file,
            ",\n{\"ph\": \"X\", \"name\": %s, \"cat\": \"%s\", \"pid\": %d, \"tid\": %llu, "
            "\"ts\": %.3f, \"dur\": %.3f}",
            quoted(entry.name).c_str(), entry.category, process,
            static_cast<unsigned long long>(entry.row), entry.begin / 1e3,
            (entry.end - entry.begin) / 1e3);
    }
    std::fprintf(file, "\n]}\n");
    std::fclose(file);
}

namespace {

// Runs after the program's own exit handlers and destructors of global objects.
__attribute__((destructor)) void write_trace() {
    const Node* node = the_node_if_made();
    if (node && Trace::active())
        Trace::active()->write(node->file.name, static_cast<int>(node->devices.size()));
}

} // namespace
} // namespace sim
