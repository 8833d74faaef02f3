#include "node/node_file.hpp"

#include <algorithm>
#include <charconv>
#include <dlfcn.h>
#include <set>
#include <sstream>

#include <toml++/toml.h>

namespace sim {
namespace {

constexpr std::string_view default_node = "h200x8";

[[noreturn]] void complain(const std::string& file, const toml::source_region* where,
                           const std::string& problem) {
    std::ostringstream text;
    text << file;
    if (where && where->begin) text << ':' << where->begin.line;
    text << ": " << problem;
    throw NodeFileError(text.str());
}

/// One table of the file. Every key has to be there and no key may be left over, so that a
/// misspelt figure is an error and not a silent zero.
class Section {
public:
    Section(const std::string& file, const toml::table& root, const std::string& name)
        : file_(file), name_(name), table_(root.get_as<toml::table>(name)) {
        if (!table_) complain(file_, &root.source(), "the table [" + name + "] is missing");
    }

    double positive(const std::string& key) {
        double value = number(key);
        if (value <= 0) complain(file_, &node(key).source(), full(key) + " must be above zero");
        return value;
    }

    double not_negative(const std::string& key) {
        double value = number(key);
        if (value < 0) complain(file_, &node(key).source(), full(key) + " must not be negative");
        return value;
    }

    int count(const std::string& key, int least, int most) {
        double value = number(key);
        if (value != static_cast<int>(value) || value < least || value > most)
            complain(file_, &node(key).source(),
                     full(key) + " must be a whole number from " + std::to_string(least) + " to " +
                         std::to_string(most));
        return static_cast<int>(value);
    }

    std::string text(const std::string& key) {
        auto value = node(key).value<std::string>();
        if (!value) complain(file_, &node(key).source(), full(key) + " must be a text in quotes");
        return *value;
    }

    /// `key_us`, and `key_us_per_mib` where the cost grows with the size.
    CallCost cost(const std::string& key) {
        CallCost result{not_negative(key + "_us"), 0};
        if (table_->contains(key + "_us_per_mib"))
            result.us_per_mib = not_negative(key + "_us_per_mib");
        return result;
    }

    std::uint64_t bytes(const std::string& key, std::uint64_t unit) {
        return static_cast<std::uint64_t>(positive(key) * static_cast<double>(unit));
    }

    [[noreturn]] void wrong(const std::string& key, const std::string& problem) {
        complain(file_, &node(key).source(), full(key) + " " + problem);
    }

    void end() const {
        for (const auto& [key, value] : *table_) {
            if (!used_.contains(std::string(key.str())))
                complain(file_, &value.source(), "unknown key " + full(std::string(key.str())));
        }
    }

private:
    std::string full(const std::string& key) const { return name_ + "." + key; }

    const toml::node& node(const std::string& key) {
        used_.insert(key);
        const toml::node* found = table_->get(key);
        if (!found) complain(file_, &table_->source(), "the key " + full(key) + " is missing");
        return *found;
    }

    double number(const std::string& key) {
        auto value = node(key).value<double>();
        if (!value) complain(file_, &node(key).source(), full(key) + " must be a number");
        return *value;
    }

    std::string file_;
    std::string name_;
    const toml::table* table_;
    std::set<std::string> used_;
};

constexpr int most_gpus = 64;
constexpr std::uint64_t kib = 1ull << 10, mib = 1ull << 20, gib = 1ull << 30;

GpuFigures read_gpu(Section s) {
    GpuFigures g;
    g.name = s.text("name");
    const std::string capability = s.text("compute_capability");
    char dot = 0;
    std::istringstream parts(capability);
    if (!(parts >> g.compute_major >> dot >> g.compute_minor) || dot != '.')
        s.wrong("compute_capability", "must look like \"9.0\"");
    g.memory_bytes = s.bytes("memory_mib", mib);
    g.context_bytes = s.bytes("context_mib", mib);
    if (g.context_bytes >= g.memory_bytes) s.wrong("context_mib", "must be less than memory_mib");
    g.multiprocessors = s.count("multiprocessors", 1, 1024);
    g.clock_mhz = s.positive("clock_mhz");
    g.warp_instructions_per_clock = s.positive("warp_instructions_per_clock");
    g.instruction_latency_clocks = s.positive("instruction_latency_clocks");
    g.threads_per_multiprocessor = s.count("threads_per_multiprocessor", 1024, 4096);
    g.blocks_per_multiprocessor = s.count("blocks_per_multiprocessor", 1, 64);
    g.shared_per_multiprocessor_bytes = s.bytes("shared_per_multiprocessor_kib", kib);
    g.shared_per_block_optin_bytes = s.bytes("shared_per_block_optin_kib", kib);
    g.l2_bytes = s.bytes("l2_mib", mib);
    g.copy_engines = s.count("copy_engines", 1, 16);
    g.memory_gb_per_s = s.positive("memory_gb_per_s");
    g.device_copy_gb_per_s = s.positive("device_copy_gb_per_s");
    g.warp_gb_per_s = s.positive("warp_gb_per_s");
    s.end();
    return g;
}

PcieFigures read_pcie(Section s) {
    PcieFigures p;
    p.pinned_h2d_gb_per_s = s.positive("pinned_h2d_gb_per_s");
    p.pinned_d2h_gb_per_s = s.positive("pinned_d2h_gb_per_s");
    p.both_ways_gb_per_s = s.positive("both_ways_gb_per_s");
    if (p.both_ways_gb_per_s < std::max(p.pinned_h2d_gb_per_s, p.pinned_d2h_gb_per_s))
        s.wrong("both_ways_gb_per_s", "must not be less than either direction alone");
    p.pageable_h2d_gb_per_s = s.positive("pageable_h2d_gb_per_s");
    p.pageable_d2h_gb_per_s = s.positive("pageable_d2h_gb_per_s");
    p.kernel_read_gb_per_s = s.positive("kernel_read_gb_per_s");
    p.kernel_write_gb_per_s = s.positive("kernel_write_gb_per_s");
    p.warp_gb_per_s = s.positive("warp_gb_per_s");
    p.copy_latency_us = s.not_negative("copy_latency_us");
    p.staged_bytes = s.bytes("staged_kib", kib);
    s.end();
    return p;
}

PeerFigures read_peer(Section s) {
    PeerFigures p;
    const std::string link = s.text("link");
    if (link == "nvlink")
        p.link = PeerLink::nvlink;
    else if (link == "pcie")
        p.link = PeerLink::pcie;
    else if (link != "none")
        s.wrong("link", R"(must be "nvlink", "pcie" or "none")");
    if (p.link != PeerLink::none) {
        p.copy_gb_per_s = s.positive("copy_gb_per_s");
        p.kernel_gb_per_s = s.positive("kernel_gb_per_s");
        p.latency_us = s.not_negative("latency_us");
    }
    p.staged_gb_per_s = s.positive("staged_gb_per_s");
    s.end();
    return p;
}

HostFigures read_host(Section s) {
    HostFigures h;
    h.pinnable_bytes = s.bytes("pinnable_gib", gib);
    h.copy_gb_per_s = s.positive("copy_gb_per_s");
    s.end();
    return h;
}

ApiFigures read_api(Section s) {
    ApiFigures a;
    a.context = s.cost("context");
    a.any_call = s.cost("any_call");
    a.launch = s.cost("launch");
    a.kernel = s.cost("kernel");
    a.copy = s.cost("copy");
    a.blocking_copy = s.cost("blocking_copy");
    a.synchronize = s.cost("synchronize");
    a.query = s.cost("query");
    a.event_record = s.cost("event_record");
    a.wait_event = s.cost("wait_event");
    a.stream_create = s.cost("stream_create");
    a.event_create = s.cost("event_create");
    a.host_function = s.cost("host_function");
    a.malloc = s.cost("malloc");
    a.free = s.cost("free");
    a.malloc_host = s.cost("malloc_host");
    a.free_host = s.cost("free_host");
    a.host_register = s.cost("host_register");
    a.host_unregister = s.cost("host_unregister");
    a.malloc_async = s.cost("malloc_async");
    a.free_async = s.cost("free_async");
    a.pool_grow = s.cost("pool_grow");
    a.pool_release = s.cost("pool_release");
    a.enable_peer = s.cost("enable_peer");
    s.end();
    if (a.query.us <= 0) s.wrong("query_us", "must be above zero, or polling would never end");
    return a;
}

void check_tables(const std::string& file, const toml::table& root) {
    static const std::set<std::string> known{"description", "node", "gpu", "pcie",
                                             "peer",        "host", "api"};
    for (const auto& [key, value] : root) {
        if (!known.contains(std::string(key.str())))
            complain(file, &value.source(), "unknown key " + std::string(key.str()));
    }
}

} // namespace

NodeFile read_node_file(const std::filesystem::path& path) {
    const std::string file = path.string();
    toml::table root;
    try {
        root = toml::parse_file(file);
    } catch (const toml::parse_error& error) {
        complain(file, &error.source(), std::string(error.description()));
    }
    check_tables(file, root);
    NodeFile node;
    node.name = path.stem().string();
    node.description = root["description"].value_or(std::string());
    Section top(file, root, "node");
    node.gpus = top.count("gpus", 1, most_gpus);
    top.end();
    node.gpu = read_gpu({file, root, "gpu"});
    node.pcie = read_pcie({file, root, "pcie"});
    node.peer = read_peer({file, root, "peer"});
    node.host = read_host({file, root, "host"});
    node.api = read_api({file, root, "api"});
    return node;
}

std::filesystem::path node_folder() {
    Dl_info self{};
    if (dladdr(reinterpret_cast<const void*>(&node_folder), &self) && self.dli_fname) {
        std::error_code ignored;
        auto library = std::filesystem::canonical(self.dli_fname, ignored);
        auto beside = library.parent_path() / "nodes";
        if (!library.empty() && std::filesystem::is_directory(beside, ignored)) return beside;
    }
    return SIM_SOURCE_NODES;
}

void set_gpus(NodeFile& file, const std::string& text) {
    int gpus = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, gpus);
    if (error != std::errc() || stop != end || gpus < 1 || gpus > most_gpus)
        throw NodeFileError("SIM_GPUS must be a whole number from 1 to " +
                            std::to_string(most_gpus) + ", not \"" + text + "\"");
    file.gpus = gpus;
}

std::vector<std::string> known_nodes(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
        if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::filesystem::path find_node_file(const std::string& wanted,
                                     const std::filesystem::path& folder) {
    const std::string name = wanted.empty() ? std::string(default_node) : wanted;
    std::error_code ignored;
    if (name.ends_with(".toml")) {
        if (std::filesystem::exists(name, ignored)) return name;
        throw NodeFileError("there is no node file " + name);
    }
    auto path = folder / (name + ".toml");
    if (std::filesystem::exists(path, ignored)) return path;
    std::string text = "there is no node \"" + name + "\"; SIM_NODE takes the path of a .toml file";
    const char* separator = " or one of: ";
    for (const auto& known : known_nodes(folder)) {
        text += separator + known;
        separator = ", ";
    }
    throw NodeFileError(text);
}

} // namespace sim
