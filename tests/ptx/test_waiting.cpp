// Kernels that wait: for each other, for the host, for the clock.
#include "both.hpp"

#include <chrono>

using State = sim::ptx::Execution::State;

TEST_CASE("blocks that wait for each other make progress") {
    auto device = test::kernels_of_both();
    auto turn = device.array<int>(1);
    auto log = device.array<int>(40);
    device.run("ping_pong", {{2}, {1}}, turn, 20, log);
    for (int i = 0; i < 40; ++i)
        REQUIRE(log[i] == i);
}

TEST_CASE("a barrier over all blocks, made of an atomic counter") {
    auto device = test::kernels_of_both();
    auto arrived = device.array<unsigned>(1);
    auto out = device.array<int>(8 * 128);
    device.run("block_barrier", {{8}, {128}}, arrived, out);
    for (int i = 0; i < 8 * 128; ++i)
        REQUIRE(out[i] == 8);
}

TEST_CASE("grid.sync() of a cooperative launch") {
    auto device = test::kernels_of_both();
    auto a = device.array<int>(16 * 96);
    CHECK(device.fault("cooperative", {{16}, {96}}, a).error == 719);
    device.cooperative = true;
    for (int round = 0; round < 2; ++round) {
        device.run("cooperative", {{16}, {96}}, a);
        for (int i = 0; i < 16 * 96; ++i)
            REQUIRE(a[i] == i * 2 + (i + 1000) % (16 * 96));
    }
}

TEST_CASE("a kernel that waits for the host is suspended") {
    auto device = test::kernels_of_both();
    auto flag = device.array<int>(1);
    auto out = device.array<int>(64);
    const auto execution = device.start("wait_for_flag", {{1}, {64}}, flag, out);
    for (int i = 0; i < 5; ++i)
        REQUIRE(execution->run(100000) == State::suspended);
    const auto before = execution->work().thread_instructions;
    CHECK(before >= 500000);
    CHECK(before < 1000000);
    CHECK(execution->work().longest_sleep_ns > 0);
    flag[0] = 9;
    REQUIRE(execution->run(100000) == State::finished);
    CHECK(out[63] == 9);
}

TEST_CASE("sleeping advances the clock and costs little") {
    auto device = test::kernels_of_both();
    device.start_ns = 123456789;
    auto out = device.array<unsigned long long>(4);
    const auto begin = std::chrono::steady_clock::now();
    const auto work = device.run("sleeper", {{4}, {128}}, 30'000'000ull, out);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    CHECK(time.count() < 1);
    CHECK(work.longest_sleep_ns >= 30'000'000);
    CHECK(work.longest_sleep_ns < 30'100'000);
    CHECK(work.warp_instructions < 4 * 4 * 1600 * 12);
    for (int i = 0; i < 4; ++i) {
        CHECK(out[i] >= 30'000'000);
        CHECK(out[i] < 30'100'000);
    }
}

TEST_CASE("blocks that do not fit at a time sleep one after the other") {
    auto device = test::kernels_of_both();
    device.multiprocessors = 1; // two blocks of 1024 threads
    auto out = device.array<unsigned long long>(6);
    const auto work = device.run("sleeper", {{6}, {1024}}, 1'000'000ull, out);
    CHECK(work.longest_sleep_ns >= 3'000'000);
    CHECK(work.longest_sleep_ns < 3'300'000);
}

TEST_CASE("waiting for a clock without sleep counts as waiting") {
    auto device = test::kernels_of_both();
    const auto work = device.run("busy_timer", {{1}, {1}}, 5'000'000ull);
    CHECK(work.longest_sleep_ns >= 5'000'000);
    CHECK(work.longest_sleep_ns < 5'010'000);
    auto out = device.array<long long>(1);
    const auto ticks = device.run("busy_clock", {{1}, {32}}, 1'000'000ll, out);
    CHECK(out[0] >= 1'000'000);
    CHECK(out[0] < 1'001'000);
    CHECK(ticks.longest_sleep_ns >= 1'000'000);
    CHECK(ticks.longest_sleep_ns < 1'010'000);
}

TEST_CASE("a kernel that is cut into pieces does the same") {
    auto device = test::kernels_of_both();
    const int n = 4000;
    auto in = device.array<int>(n), out = device.array<int>(2);
    for (int i = 0; i < n; ++i)
        in[i] = static_cast<int>(test::scrambled(i) % 1000);
    device.run("sum_int", {{8}, {512}}, in, out, n);
    const auto execution = device.start("sum_int", {{8}, {512}}, in, out.address + 4, n);
    int pieces = 1;
    while (execution->run(1) == State::suspended)
        ++pieces;
    CHECK(pieces == 8);
    CHECK(out[0] == out[1]);
}

TEST_CASE("windows are asked for again after every suspension, and seldom otherwise") {
    auto device = test::kernels_of_both();
    const int n = 100000;
    auto x = device.array<float>(n), y = device.array<float>(n);
    device.memory.questions = 0;
    device.run("axpy", {{(n + 255) / 256}, {256}}, x, y, 1.0f, n);
    CHECK(device.memory.questions <= 3);
}
