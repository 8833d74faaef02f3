#include "support/catch.hpp"

#include "node/device_memory.hpp"
#include "node/host_memory.hpp"

#include <cstring>

using namespace sim;

namespace {

constexpr std::uint64_t mib = 1ull << 20;
constexpr std::uint64_t total = 64 * mib;

DeviceMemory make_memory() {
    return {reserve_addresses(4 * total), total};
}

std::uint64_t allocate(DeviceMemory& memory, std::uint64_t bytes) {
    return *memory.allocate(bytes, Purpose::allocation, "");
}

} // namespace

TEST_CASE("large allocations have granules of their own") {
    DeviceMemory memory = make_memory();
    const std::uint64_t begin = allocate(memory, 3 * mib);
    CHECK(begin % granule == 0);
    CHECK(memory.mapped_bytes() == 4 * mib);
    REQUIRE(memory.find(begin + 3 * mib - 1));
    CHECK_FALSE(memory.find(begin + 3 * mib));
    CHECK(memory.mapped(begin, 4 * mib));
    CHECK_FALSE(memory.mapped(begin, 4 * mib + 1));
}

TEST_CASE("small allocations share a granule and do not overlap") {
    DeviceMemory memory = make_memory();
    const std::uint64_t a = allocate(memory, 1);
    const std::uint64_t b = allocate(memory, 1000);
    CHECK(memory.mapped_bytes() == 2 * mib);
    CHECK(a % 256 == 0);
    CHECK(b % 256 == 0);
    CHECK(b >= a + 1);
    memory.free(a, "test");
    CHECK(memory.find(b));
    CHECK(memory.mapped_bytes() == 2 * mib);
    memory.free(b, "test");
    CHECK(memory.mapped_bytes() == 0);
}

TEST_CASE("a hole in a granule is used again") {
    DeviceMemory memory = make_memory();
    const std::uint64_t a = allocate(memory, 4096);
    allocate(memory, 4096);
    memory.free(a, "test");
    CHECK(allocate(memory, 4096) == a);
}

TEST_CASE("fresh device memory is not zero") {
    DeviceMemory memory = make_memory();
    const std::uint64_t begin = allocate(memory, 4096);
    CHECK(memory.bytes_at(begin)[0] != std::byte{0});
    CHECK(memory.bytes_at(begin)[4095] != std::byte{0});
}

TEST_CASE("a device has only so much memory") {
    DeviceMemory memory = make_memory();
    CHECK_FALSE(memory.allocate(total + 1, Purpose::allocation, ""));
    const std::uint64_t all = allocate(memory, total);
    CHECK_FALSE(memory.allocate(1, Purpose::allocation, ""));
    memory.free(all, "test");
    CHECK(memory.allocate(total, Purpose::allocation, ""));
}

TEST_CASE("addresses of freed memory are not handed out soon, and never run out") {
    DeviceMemory memory = make_memory();
    const std::uint64_t first = allocate(memory, 8 * mib);
    memory.free(first, "test");
    CHECK(allocate(memory, 8 * mib) != first);
    for (int i = 0; i < 200; ++i) {
        auto begin = memory.allocate(8 * mib, Purpose::allocation, "");
        REQUIRE(begin);
        std::memset(memory.bytes_at(*begin), 1, 8 * mib);
        memory.free(*begin, "test");
    }
}

TEST_CASE("what was freed is remembered with the way it was freed") {
    DeviceMemory memory = make_memory();
    const std::uint64_t begin = allocate(memory, 8 * mib);
    memory.free(begin, "cudaFree");
    const Freed* freed = memory.find_freed(begin + 5);
    REQUIRE(freed);
    CHECK(freed->bytes == 8 * mib);
    CHECK(freed->how == "cudaFree");
}

TEST_CASE("the space between allocations is known as a gap") {
    DeviceMemory memory = make_memory();
    const std::uint64_t a = allocate(memory, 100);
    const std::uint64_t b = allocate(memory, 100);
    const auto [begin, end] = memory.gap(*memory.find_extent(a), a + 100);
    CHECK(begin == a + 100);
    CHECK(end == b);
}

TEST_CASE("pinned memory is found by any of its addresses") {
    HostMemory host(64 * mib);
    const std::uint64_t begin = *host.allocate(10000, HostKind::allocated, 2, 1);
    CHECK(host.find(begin + 9999)->device == 1);
    CHECK_FALSE(host.find(begin + 10000));
    CHECK_FALSE(host.find(begin - 1));
    CHECK(host.overlap(begin - 10, 11));
    CHECK_FALSE(host.overlap(begin - 10, 10));
    host.release(begin);
    CHECK_FALSE(host.find(begin));
    CHECK(host.find_released(begin));
}

TEST_CASE("only so much memory can be pinned, whichever way") {
    HostMemory host(mib);
    CHECK_FALSE(host.allocate(mib + 1, HostKind::allocated, 0, 0));
    char own[1000];
    const auto begin = reinterpret_cast<std::uint64_t>(own);
    REQUIRE(host.add_registered(begin, sizeof own, 0, 0));
    CHECK_FALSE(host.allocate(mib, HostKind::allocated, 0, 0));
    host.remove_registered(begin);
    CHECK(host.allocate(mib, HostKind::allocated, 0, 0));
}
