// Any bytes as a fat binary. Its header says how long it is, so that length is made true.
#include "ptx/ptx.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t header_bytes = 16;
constexpr std::size_t at_payload_bytes = 8;

struct Wrapper {
    std::uint32_t magic = 0x466243b1;
    std::uint32_t version = 1;
    const void* data = nullptr;
    const void* prelinked = nullptr;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < header_bytes) return 0;
    std::vector<std::uint8_t> binary(data, data + size);
    std::uint64_t payload = 0;
    std::memcpy(&payload, &binary[at_payload_bytes], sizeof payload);
    payload = std::min<std::uint64_t>(payload, size - header_bytes);
    std::memcpy(&binary[at_payload_bytes], &payload, sizeof payload);
    Wrapper wrapper;
    wrapper.data = binary.data();
    try {
        sim::ptx::find_ptx(&wrapper);
    } catch (const sim::ptx::Error&) {
    }
    return 0;
}
