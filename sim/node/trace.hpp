// The timeline of a run, as a file that chrome://tracing and Perfetto open: SIM_TRACE names it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sim {

struct HostThread;
struct Operation;

/// Collects what happened when, and writes it when the program ends. Guarded by the node's lock.
class Trace {
public:
    /// The trace of this process, or nullptr when nobody asked for one.
    static Trace* active();

    /// Work of a GPU that is done.
    void add(const Operation& operation);
    /// Something that a host thread did or waited for, up to its clock.
    void add(const HostThread& thread, const std::string& what, const char* category, double begin);
    /// Names every GPU, those without work too.
    void write(const std::string& node_name, int gpus) const;

private:
    explicit Trace(std::string path) : path_(std::move(path)) {}

    struct Entry {
        std::string name;
        const char* category;
        int device; // -1: the host
        std::uint64_t row;
        double begin, end; // ns
    };

    std::string path_;
    std::vector<Entry> entries_;
    std::map<const HostThread*, std::uint64_t> threads_;
};

} // namespace sim
