#include "support/pattern.hpp"

#include "support/report_state.hpp"

#include <cstdlib>
#include <random>

namespace check {

namespace {

/// Steele, Lea and Flood's SplitMix64: a bijection of 64 bits that mixes all of them.
std::uint64_t mix(std::uint64_t bits) {
    bits += 0x9e3779b97f4a7c15;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
}

std::uint64_t fresh_seed() {
    if (const char* wanted = std::getenv("CHECK_SEED")) return std::strtoull(wanted, nullptr, 10);
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
}

} // namespace

std::uint64_t seed() {
    static const std::uint64_t value = fresh_seed();
    report_state().seed_used = true;
    return value;
}

std::uint64_t pattern_bits(std::uint64_t id, std::uint64_t index) {
    return mix(mix(seed() + id * 0xd1342543de82ef95) + index);
}

std::string damage(const unsigned char* zone, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
        if (zone[i] == guard_byte) continue;
        return "at byte " + std::to_string(i) + " of a zone of " + std::to_string(bytes);
    }
    return {};
}

} // namespace check
