// Any bytes as a node file.
#include "node/node_file.hpp"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto path = std::filesystem::temp_directory_path() /
                             ("fuzzed-node-" + std::to_string(getpid()) + ".toml");
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
    try {
        if (sim::read_node_file(path).gpus < 1) std::abort();
    } catch (const sim::NodeFileError&) {
    }
    return 0;
}
