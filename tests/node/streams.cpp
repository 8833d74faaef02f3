// Order, lateness and time of work in streams, without the runtime's calls on top.
#include "support/catch.hpp"

#include "node/operations.hpp"

#include <cstring>
#include <vector>

using namespace sim;

namespace {

constexpr std::uint64_t mib = 1ull << 20;

/// Two GPUs with NVLink, one thread, and short words for what the cases do.
struct Bench {
    Node node{[] {
        NodeFile file = read_node_file(find_node_file("h200x8", SIM_SOURCE_NODES));
        file.gpus = 2;
        file.gpu.memory_bytes = 16ull << 30; // ThreadSanitizer leaves too few addresses for more
        return file;
    }()};
    HostThread thread;
    Lock lock{node.mutex};

    Bench() { thread.clock = 0; } // not where an earlier case ended
    ~Bench() { // work that is under way holds what it waits for, and the other way round
        for (int index = 0; index < 2; ++index)
            node.wait(gpu(index), thread, lock);
    }

    Device& gpu(int index = 0) { return *node.device(index); }
    Stream& stream(bool blocking = true, int device = 0) {
        return node.add_stream(gpu(device), 0, 0, blocking);
    }
    std::uint64_t device_memory(std::uint64_t bytes, int device = 0) {
        const std::uint64_t begin = *gpu(device).memory.allocate(bytes, Purpose::allocation, "");
        std::memset(node.bytes_at(begin), 0, bytes);
        return begin;
    }
    std::uint64_t pinned_memory(std::uint64_t bytes, int value) {
        const std::uint64_t begin = *node.host.allocate(bytes, HostKind::allocated, 0, 0);
        std::memset(node.bytes_at(begin), value, bytes);
        return begin;
    }
    OperationPtr copy(Stream& stream, std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
        auto operation = std::make_shared<CopyOperation>(node, *stream.device, to, from,
                                                         Rows{bytes, 1, bytes, bytes});
        node.submit(
            stream, [&] { return operation; }, thread);
        return operation;
    }
    OperationPtr mark(Stream& stream, std::vector<OperationPtr> also = {}) {
        auto operation = std::make_shared<MarkerOperation>(*stream.device, "mark");
        node.submit(
            stream, [&] { return operation; }, thread, also);
        return operation;
    }
    void wait(const OperationPtr& operation) { node.wait(operation, thread, lock); }
    int byte(std::uint64_t address) { return std::to_integer<int>(*node.bytes_at(address)); }
};

double ms(double ns) {
    return ns / 1e6;
}

} // namespace

TEST_CASE("nothing moves before somebody waits") {
    Bench b;
    const auto device = b.device_memory(mib);
    const auto host = b.pinned_memory(mib, 1);
    const OperationPtr copy = b.copy(b.stream(), device, host, mib);
    CHECK(b.byte(device) == 0);
    std::memset(b.node.bytes_at(host), 2, mib); // too early: the copy has not been waited for
    b.wait(copy);
    CHECK(b.byte(device) == 2);
}

TEST_CASE("work in one stream keeps its order") {
    Bench b;
    const auto device = b.device_memory(mib);
    const auto one = b.pinned_memory(mib, 1);
    const auto two = b.pinned_memory(mib, 2);
    Stream& s = b.stream();
    b.copy(s, device, one, mib);
    b.copy(s, device, two, mib);
    b.wait(b.copy(s, one, device, mib));
    CHECK(b.byte(one) == 2);
}

TEST_CASE("a download beside the upload that it needs brings old data") {
    Bench b;
    constexpr std::uint64_t bytes = 64 * mib;
    const auto device = b.device_memory(bytes);
    const auto source = b.pinned_memory(bytes, 1);
    const auto result = b.pinned_memory(bytes, 9);
    const OperationPtr up = b.copy(b.stream(), device, source, bytes);
    const OperationPtr down = b.copy(b.stream(), result, device, bytes);
    b.wait(up);
    b.wait(down);
    CHECK(b.byte(device + bytes - 1) == 1);
    CHECK(b.byte(result + bytes - 1) == 0); // what was there before the upload arrived
}

TEST_CASE("the same with an event brings the new data") {
    Bench b;
    constexpr std::uint64_t bytes = 64 * mib;
    const auto device = b.device_memory(bytes);
    const auto source = b.pinned_memory(bytes, 1);
    const auto result = b.pinned_memory(bytes, 9);
    Stream& s = b.stream();
    Stream& t = b.stream();
    b.copy(s, device, source, bytes);
    const OperationPtr event = b.mark(s);
    b.mark(t, {event});
    b.wait(b.copy(t, result, device, bytes));
    CHECK(b.byte(result) == 1);
    CHECK(b.byte(result + bytes - 1) == 1);
}

TEST_CASE("a wait runs only what begins before its end") {
    Bench b;
    constexpr std::uint64_t bytes = 64 * mib;
    const auto device = b.device_memory(2 * bytes);
    const auto source = b.pinned_memory(bytes, 1);
    const OperationPtr small = b.copy(b.stream(), device, source, 4096);
    const OperationPtr large = b.copy(b.stream(), device + bytes, source, bytes);
    b.wait(small);
    CHECK(b.byte(device) == 1);
    CHECK(large->state != Operation::State::done);
    CHECK(b.byte(device + bytes + bytes - 1) == 0);
    CHECK(b.thread.clock < 1e6);
    b.wait(large);
    CHECK(b.byte(device + bytes + bytes - 1) == 1);
}

TEST_CASE("the default stream waits for blocking streams and they for it") {
    Bench b;
    constexpr std::uint64_t bytes = 16 * mib;
    const auto device = b.device_memory(bytes);
    const auto host = b.pinned_memory(bytes, 1);
    Stream& blocking = b.stream();
    Stream& free = b.stream(false);
    const OperationPtr first = b.copy(blocking, device, host, bytes);
    const OperationPtr in_default = b.mark(b.gpu().legacy_stream);
    const OperationPtr after = b.mark(blocking);
    const OperationPtr beside = b.mark(free);
    b.wait(after);
    b.wait(beside);
    CHECK(in_default->end >= first->end);
    CHECK(after->end >= in_default->end);
    CHECK(beside->end < first->end);
}

TEST_CASE("the default streams of two GPUs know nothing of each other") {
    Bench b;
    constexpr std::uint64_t bytes = 16 * mib;
    const auto device = b.device_memory(bytes, 0);
    const auto host = b.pinned_memory(bytes, 1);
    const OperationPtr first = b.copy(b.gpu(0).legacy_stream, device, host, bytes);
    const OperationPtr other = b.mark(b.gpu(1).legacy_stream);
    b.wait(first);
    b.wait(other);
    CHECK(other->end < first->end);
}

TEST_CASE("opposite directions overlap, equal ones follow each other") {
    Bench b;
    constexpr std::uint64_t bytes = 256 * mib;
    const auto device = b.device_memory(2 * bytes);
    const auto host = b.pinned_memory(2 * bytes, 1);
    const OperationPtr up = b.copy(b.stream(), device, host, bytes);
    const OperationPtr down = b.copy(b.stream(), host + bytes, device + bytes, bytes);
    const OperationPtr second_up = b.copy(b.stream(), device, host, bytes);
    b.wait(up);
    b.wait(down);
    // Almost free of charge: the two directions together reach less than twice the rate.
    CHECK(ms(b.thread.clock) == Approx(5.7).epsilon(0.05));
    CHECK(ms(up->end) == Approx(4.9).epsilon(0.05));
    b.wait(second_up);
    CHECK(ms(second_up->begin) == Approx(4.9).epsilon(0.05));
}

TEST_CASE("peer access decides the way between two GPUs") {
    Bench b;
    constexpr std::uint64_t bytes = 256 * mib;
    const auto here = b.device_memory(bytes, 0);
    const auto there = b.device_memory(bytes, 1);
    const OperationPtr staged = b.copy(b.stream(), there, here, bytes);
    b.wait(staged);
    const double through_host = staged->end - staged->begin;
    b.gpu(0).peers.insert(1);
    const OperationPtr direct = b.copy(b.stream(), there, here, bytes);
    b.wait(direct);
    CHECK(through_host > 10 * (direct->end - direct->begin));
}

TEST_CASE("a query looks no further than the caller's clock") {
    Bench b;
    constexpr std::uint64_t bytes = 64 * mib;
    const auto device = b.device_memory(bytes);
    const auto host = b.pinned_memory(bytes, 1);
    const OperationPtr copy = b.copy(b.stream(), device, host, bytes);
    CHECK_FALSE(b.node.is_over(copy, b.thread, b.lock));
    CHECK(b.byte(device + bytes - 1) == 0);
    b.thread.spend(2e6);
    CHECK(b.node.is_over(copy, b.thread, b.lock));
    CHECK(b.byte(device + bytes - 1) == 1);
}

TEST_CASE("a thread behind in time finds the engine free where it was free") {
    Bench b;
    constexpr std::uint64_t bytes = 16 * mib;
    const auto device = b.device_memory(bytes);
    const auto host = b.pinned_memory(bytes, 1);
    b.thread.clock = 1e9;
    b.wait(b.copy(b.stream(), device, host, bytes));
    b.thread.clock = 0;
    const OperationPtr early = b.copy(b.stream(), device, host, bytes);
    b.wait(early);
    CHECK(early->end < 1e9);
}

TEST_CASE("a dead context lets nothing take effect any more and blocks nobody") {
    Bench b;
    const auto device = b.device_memory(mib);
    const auto host = b.pinned_memory(mib, 1);
    Stream& s = b.stream();
    const OperationPtr copy = b.copy(s, device, host, mib);
    b.gpu().sticky = 700;
    b.wait(copy);
    CHECK(b.byte(device) == 0);
}

TEST_CASE("rows are copied without the gaps between them") {
    Bench b;
    const auto device = b.device_memory(mib);
    const auto host = b.pinned_memory(mib, 1);
    auto rows =
        std::make_shared<CopyOperation>(b.node, b.gpu(), device, host, Rows{100, 3, 512, 200});
    b.node.submit(
        b.stream(), [&] { return rows; }, b.thread);
    b.wait(rows);
    CHECK(b.byte(device + 99) == 1);
    CHECK(b.byte(device + 100) == 0);
    CHECK(b.byte(device + 2 * 512 + 99) == 1);
    CHECK(b.byte(device + 3 * 512) == 0);
}

TEST_CASE("host functions run in stream order and at the right time") {
    Bench b;
    constexpr std::uint64_t bytes = 16 * mib;
    const auto device = b.device_memory(bytes);
    const auto host = b.pinned_memory(bytes, 1);
    Stream& s = b.stream();
    int seen = -1;
    double clock = 0;
    const OperationPtr copy = b.copy(s, device, host, bytes);
    auto call = std::make_shared<HostOperation>(b.node, b.gpu(), "call", [&] {
        seen = b.byte(device + bytes - 1);
        clock = this_thread().clock;
    });
    b.node.submit(
        s, [&] { return call; }, b.thread);
    b.wait(call);
    CHECK(seen == 1);
    CHECK(clock == copy->end);
}

TEST_CASE("pool memory is used again in stream order only") {
    Bench b;
    Pool& pool = b.gpu().default_pool();
    Stream& s = b.stream();
    Stream& t = b.stream();
    std::uint64_t grown = 0;
    const auto host = b.pinned_memory(64 * mib, 1);
    const auto allocate = [&](Stream& stream) {
        return *pool.allocate(64 * mib, stream, b.thread.clock, grown);
    };
    const auto free = [&](std::uint64_t begin, Stream& stream) {
        const OperationPtr point = b.mark(stream);
        pool.free(begin, point, stream.id, "test");
        return point;
    };

    const auto first = allocate(s);
    CHECK(grown == 64 * mib);
    b.copy(s, first, host, 64 * mib); // keeps the stream busy
    const OperationPtr freed = free(first, s);
    CHECK(pool.used() == 0);

    SECTION("at once in the same stream") {
        CHECK(allocate(s) == first);
    }
    SECTION("not in another stream") {
        CHECK(allocate(t) != first);
    }
    SECTION("in another stream that waits for it") {
        b.mark(t, {freed});
        CHECK(allocate(t) == first);
    }
    SECTION("in another stream when it is over") {
        b.wait(freed);
        CHECK(allocate(t) == first);
    }
    SECTION("and goes back to the device only when it is over") {
        CHECK(pool.release(0, b.thread.clock) == 0);
        b.wait(freed);
        CHECK(pool.release(0, b.thread.clock) == 64 * mib);
        CHECK(pool.reserved() == 0);
        CHECK_FALSE(b.gpu().memory.mapped(first, 1));
    }
}

TEST_CASE("a pool grows in steps of 32 MiB and joins what was split") {
    Bench b;
    Pool& pool = b.gpu().default_pool();
    Stream& s = b.stream();
    std::uint64_t grown = 0;
    const auto one = *pool.allocate(1000, s, 0, grown);
    CHECK(pool.reserved() == 32 * mib);
    CHECK(pool.used() == 1000);
    const auto two = *pool.allocate(10 * mib, s, 0, grown);
    CHECK(pool.reserved() == 32 * mib);
    pool.free(one, nullptr, 0, "test");
    pool.free(two, nullptr, 0, "test");
    const auto all = *pool.allocate(32 * mib, s, 0, grown);
    CHECK(all == one);
    CHECK(pool.reserved() == 32 * mib);
}
