#include "support/catch.hpp"

#include "node/node_file.hpp"

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <unistd.h>

using namespace sim;

namespace {

/// A copy of a shipped node file with one text replaced, deleted with the object.
class ChangedFile {
public:
    ChangedFile(const std::string& from, const std::string& to)
        : path_(std::filesystem::temp_directory_path() /
                ("node-file-test-" + std::to_string(getpid()) + ".toml")) {
        std::ifstream in(std::filesystem::path(SIM_SOURCE_NODES) / "h200x8.toml");
        std::stringstream text;
        text << in.rdbuf();
        std::string changed = text.str();
        const std::size_t place = changed.find(from);
        REQUIRE(place != std::string::npos);
        changed.replace(place, from.size(), to);
        std::ofstream(path_) << changed;
    }
    ~ChangedFile() { std::filesystem::remove(path_); }

    /// What reading the file complains of.
    std::string complaint() const {
        try {
            read_node_file(path_);
        } catch (const NodeFileError& error) {
            return error.what();
        }
        return "";
    }
    std::string name() const { return path_.string(); }

private:
    std::filesystem::path path_;
};

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("every shipped node can be read") {
    const auto names = known_nodes(SIM_SOURCE_NODES);
    CHECK(names.size() >= 5);
    for (const std::string& name : names) {
        INFO(name);
        const NodeFile node = read_node_file(find_node_file(name, SIM_SOURCE_NODES));
        CHECK(node.gpus >= 1);
        CHECK(node.name == name);
        CHECK_FALSE(node.description.empty());
        // What the lessons rest on.
        CHECK(node.pcie.pinned_h2d_gb_per_s > 1.5 * node.pcie.pageable_h2d_gb_per_s);
        CHECK(node.gpu.memory_gb_per_s > node.pcie.kernel_read_gb_per_s);
        if (node.peer.link != PeerLink::none)
            CHECK(node.peer.copy_gb_per_s > 1.5 * node.peer.staged_gb_per_s);
    }
}

TEST_CASE("the default node is the server with eight GPUs") {
    CHECK(read_node_file(find_node_file("", SIM_SOURCE_NODES)).gpus == 8);
}

TEST_CASE("an unknown node is answered with the known ones") {
    try {
        find_node_file("h200x9", SIM_SOURCE_NODES);
        FAIL("found a node that does not exist");
    } catch (const NodeFileError& error) {
        CHECK(contains(error.what(), "h200x9"));
        for (const std::string& name : known_nodes(SIM_SOURCE_NODES))
            CHECK(contains(error.what(), name));
    }
}

TEST_CASE("a path that does not exist is named") {
    CHECK_THROWS_WITH(find_node_file("/nowhere/x.toml", SIM_SOURCE_NODES),
                      "there is no node file /nowhere/x.toml");
}

TEST_CASE("a wrong node file gives one sentence with file and line") {
    struct Wrong {
        std::string from, to, complaint;
    };
    const Wrong wrong[] = {
        {"gpus = 8", "gpus = 0", "node.gpus must be a whole number from 1 to 64"},
        {"gpus = 8", "gpus = 2.5", "node.gpus must be a whole number"},
        {"gpus = 8", "gpus = \"8\"", "node.gpus must be a number"},
        {"gpus = 8", "gpus = ", ""},
        {"gpus = 8", "", "the key node.gpus is missing"},
        {"[peer]", "[pear]", "unknown key pear"},
        {"multiprocessors =", "multiprocesors =", "the key gpu.multiprocessors is missing"},
        {"[host]", "[host]\ncolour = 1", "unknown key host.colour"},
        {"link = \"nvlink\"", "link = \"rope\"", "peer.link must be"},
        {"query_us = ", "query_us = 0 # ", "api.query_us must be above zero"},
        {"\nmalloc_us = ", "\nmalloc_us = -", "api.malloc_us must not be negative"},
        {"both_ways_gb_per_s = ", "both_ways_gb_per_s = 50 # ", "less than either direction"},
        {"\"9.0\"", "\"new\"", "gpu.compute_capability must look like"},
    };
    for (const Wrong& one : wrong) {
        INFO(one.from << " -> " << one.to);
        const ChangedFile file(one.from, one.to);
        const std::string complaint = file.complaint();
        CHECK(contains(complaint, one.complaint));
        CHECK(contains(complaint, file.name() + ":"));
        CHECK(std::count(complaint.begin(), complaint.end(), '\n') == 0);
    }
}

TEST_CASE("a node can be given another number of GPUs") {
    NodeFile file = read_node_file(std::filesystem::path(SIM_SOURCE_NODES) / "pcie2.toml");
    set_gpus(file, "4");
    CHECK(file.gpus == 4);
    for (const char* wrong : {"", "0", "65", "4x", "-1", "two"}) {
        INFO(wrong);
        CHECK_THROWS_AS(set_gpus(file, wrong), NodeFileError);
    }
    CHECK(file.gpus == 4);
}

TEST_CASE("no damage to a node file does more than an error") {
    const auto path = std::filesystem::temp_directory_path() /
                      ("damaged-node-" + std::to_string(getpid()) + ".toml");
    std::ifstream in(std::filesystem::path(SIM_SOURCE_NODES) / "h200x8.toml");
    std::stringstream text;
    text << in.rdbuf();
    const std::string whole = text.str();
    std::minstd_rand random(1);
    const std::string_view odd = "=[]\"\n#.-9e\0x{},\xff";
    for (int round = 0; round < 2000; ++round) {
        std::string damaged = whole;
        for (int i = 0; i < 1 + round % 3; ++i)
            damaged[random() % damaged.size()] = odd[random() % odd.size()];
        if (round % 10 == 0) damaged.resize(random() % damaged.size());
        std::ofstream(path, std::ios::binary) << damaged;
        try {
            const NodeFile file = read_node_file(path);
            CHECK(file.gpus >= 1);
        } catch (const NodeFileError& error) {
            CHECK(std::string(error.what()).find(path.string()) != std::string::npos);
        }
    }
    std::filesystem::remove(path);
}
