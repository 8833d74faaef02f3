// Every test runs on both dialects of PTX that nvcc writes.
#pragma once

#include "harness.hpp"
#include "support/catch.hpp"

namespace test {

/// A device with the kernels of kernels.cu. Use it once in a test case.
inline Device kernels_of_both() {
    const std::string architecture = GENERATE(as<std::string>{}, "75", "100");
    INFO("compute_" << architecture);
    return Device(read_kernels("kernels", architecture));
}

/// Different numbers, not periodic and not monotone.
inline std::uint64_t scrambled(std::uint64_t index) {
    std::uint64_t x = index + 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

} // namespace test
