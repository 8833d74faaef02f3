// Shared memory, barriers, warps and atomic operations.
#include "both.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

using test::scrambled;

TEST_CASE("a sum over a block") {
    auto device = test::kernels_of_both();
    const std::uint32_t threads = GENERATE(32u, 128u, 256u, 1024u);
    const int n = 5000;
    auto in = device.array<int>(n), out = device.array<int>(1);
    for (int i = 0; i < n; ++i)
        in[i] = static_cast<int>(scrambled(i) % 2001) - 1000;
    out[0] = 9;
    device.run("sum_int", {{(n + threads - 1) / threads}, {threads}}, in, out, n);
    CHECK(out[0] == 9 + std::accumulate(in.data, in.data + n, 0));
}

TEST_CASE("a sum of doubles") {
    auto device = test::kernels_of_both();
    auto in = device.array<double>(2048), out = device.array<double>(4);
    for (int i = 0; i < 2048; ++i)
        in[i] = static_cast<double>(scrambled(i) % 1000);
    device.run("sum_double", {{4}, {512}}, in, out);
    for (int b = 0; b < 4; ++b)
        CHECK(out[b] == std::accumulate(in.data + 512 * b, in.data + 512 * (b + 1), 0.0));
}

TEST_CASE("shared memory whose size the launch gives") {
    auto device = test::kernels_of_both();
    const std::uint32_t threads = GENERATE(64u, 300u, 1024u);
    auto in = device.array<int>(2 * threads), out = device.array<int>(2 * threads);
    for (std::uint32_t i = 0; i < 2 * threads; ++i)
        in[i] = static_cast<int>(scrambled(i));
    device.run("reverse_dynamic", {{2}, {threads}, threads * 4}, in, out);
    for (std::uint32_t b = 0; b < 2; ++b)
        for (std::uint32_t i = 0; i < threads; ++i)
            REQUIRE(out[b * threads + i] == in[b * threads + threads - 1 - i]);
}

TEST_CASE("a transposition through a tile") {
    auto device = test::kernels_of_both();
    const int width = 70, height = 45;
    auto in = device.array<float>(width * height), out = device.array<float>(width * height);
    for (int i = 0; i < width * height; ++i)
        in[i] = static_cast<float>(i);
    device.run("transpose", {{5, 3}, {16, 16}}, in, out, width, height);
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
            REQUIRE(out[x * height + y] == in[y * width + x]);
}

TEST_CASE("pointers to global, shared and local memory") {
    auto device = test::kernels_of_both();
    auto global = device.array<int>(4), out = device.array<int>(64);
    for (int i = 0; i < 4; ++i)
        global[i] = 100 + i;
    for (int which = 0; which < 3; ++which) {
        device.run("generic_pointers", {{1}, {64}}, global, out, which);
        for (int i = 0; i < 64; ++i) {
            const int expected[] = {100 + i % 4, i % 4 * 10, i % 4 + 1};
            REQUIRE(out[i] == expected[(which + i) % 3]);
        }
    }
}

TEST_CASE("barriers that count and combine") {
    auto device = test::kernels_of_both();
    const std::uint32_t threads = GENERATE(64u, 200u, 768u);
    auto out = device.array<int>(3 * threads);
    device.run("barrier_reductions", {{1}, {threads}}, out);
    for (std::uint32_t i = 0; i < threads; ++i) {
        REQUIRE(out[3 * i] == int((threads + 2) / 3));
        REQUIRE((out[3 * i + 1] != 0) == (threads <= 1000));
        REQUIRE((out[3 * i + 2] != 0) == (threads > 77));
    }
}

TEST_CASE("named barriers with a count") {
    auto device = test::kernels_of_both();
    auto out = device.array<int>(64);
    device.run("named_barriers", {{1}, {128}}, out);
    for (int i = 0; i < 64; ++i)
        REQUIRE(out[i] == i / 32 * 64 + 31 - i % 32);
}

TEST_CASE("a barrier does not wait for threads that have ended") {
    auto device = test::kernels_of_both();
    auto out = device.array<int>(40);
    device.run("early_exit", {{1}, {512}}, out);
    for (int i = 0; i < 40; ++i)
        REQUIRE(out[i] == 39 - i);
}

TEST_CASE("shuffles") {
    auto device = test::kernels_of_both();
    const int n = 320;
    auto in = device.array<int>(n), out = device.array<int>(8 * n);
    for (int i = 0; i < n; ++i)
        in[i] = static_cast<int>(scrambled(i));
    device.run("shuffles", {{1}, {n}}, in, out);
    for (int i = 0; i < n; ++i) {
        const int lane = i % 32, base = i - lane;
        REQUIRE(out[i] == in[base + i * 7 % 32]);
        REQUIRE(out[n + i] == in[lane >= 3 ? i - 3 : i]);
        REQUIRE(out[2 * n + i] == in[lane + 5 < 32 ? i + 5 : i]);
        REQUIRE(out[3 * n + i] == in[base + (lane ^ 9)]);
        REQUIRE(out[4 * n + i] == in[i / 8 * 8 + 2]);
        REQUIRE(out[5 * n + i] == in[i % 8 >= 2 ? i - 2 : i]);
        REQUIRE(out[6 * n + i] == in[i % 4 < 3 ? i + 1 : i]);
        REQUIRE(out[7 * n + i] == in[base + (lane ^ 5)]);
    }
}

TEST_CASE("a sum of doubles by shuffles") {
    auto device = test::kernels_of_both();
    auto in = device.array<double>(64), out = device.array<double>(64);
    for (int i = 0; i < 64; ++i)
        in[i] = i * 1.5;
    device.run("shuffle_wide", {{1}, {64}}, in, out);
    for (int i = 0; i < 64; ++i)
        REQUIRE(out[i] == std::accumulate(in.data + i / 32 * 32, in.data + i / 32 * 32 + 32, 0.0));
}

TEST_CASE("votes and matches") {
    auto device = test::kernels_of_both();
    auto in = device.array<int>(96);
    auto out = device.array<unsigned>(5 * 96);
    for (int i = 0; i < 96; ++i)
        in[i] = i < 32 ? 7 : static_cast<int>(scrambled(i) % 100);
    device.run("votes", {{1}, {96}}, in, out);
    for (int i = 0; i < 96; ++i) {
        const int base = i / 32 * 32;
        unsigned ballot = 0, any = 0, same = 0;
        for (int k = 0; k < 32; ++k) {
            ballot |= unsigned(in[base + k] > 5) << k;
            any |= in[base + k] > 90;
            same |= unsigned(in[base + k] % 4 == in[i] % 4) << k;
        }
        REQUIRE(out[5 * i] == ballot);
        REQUIRE(out[5 * i + 1] == any);
        REQUIRE(out[5 * i + 2] == 1);
        REQUIRE(out[5 * i + 3] == same);
        REQUIRE(out[5 * i + 4] == 0xffffffffu + 1u);
    }
}

TEST_CASE("part of a warp") {
    auto device = test::kernels_of_both();
    auto in = device.array<int>(64), out = device.array<int>(64);
    for (int i = 0; i < 64; ++i)
        in[i] = static_cast<int>(scrambled(i) % 1000);
    device.run("partial_warp", {{1}, {64}}, in, out);
    for (int i = 0; i < 64; ++i) {
        const int base = i / 32 * 32;
        const auto even = std::count_if(in.data + base, in.data + base + 20,
                                        [](int value) { return value % 2 == 0; });
        REQUIRE(out[i] == (i % 32 < 20 ? even * 1000 + in[base + 19] : 12));
    }
}

TEST_CASE("lanes wait for each other where a shuffle needs them") {
    auto device = test::kernels_of_both();
    auto out = device.array<int>(128);
    device.run("meeting", {{1}, {128}}, out);
    for (int i = 0; i < 128; ++i) {
        int value = i ^ 1;
        for (int k = 0; k < (i ^ 1) % 7; ++k)
            value = value * 3 + k;
        REQUIRE(out[i] == value);
    }
}

TEST_CASE("atomic operations of every kind") {
    auto device = test::kernels_of_both();
    auto words = device.array<int>(9);
    auto unsigned_words = device.array<unsigned>(4);
    auto wide = device.array<unsigned long long>(2);
    auto f = device.array<float>(1);
    auto d = device.array<double>(1);
    words[2] = 50;
    words[3] = -50;
    words[4] = 0xfff;
    unsigned_words[1] = 200;
    unsigned_words[2] = ~0u;
    const int n = 1000;
    const auto work = device.run("atomics", {{4}, {250}}, words, unsigned_words, wide, f, d);
    CHECK(words[0] == n * (n - 1) / 2);
    CHECK(words[1] == -3 * n);
    CHECK(words[2] == -(n - 1));
    CHECK(words[3] == n - 1);
    CHECK(words[4] == 0xf00);
    CHECK(words[5] == 0xffff);
    int exclusive = 0;
    for (int i = 0; i < n; ++i)
        exclusive ^= i;
    CHECK(words[6] == exclusive);
    CHECK(words[7] == n);
    CHECK(words[8] == 2 * n);
    CHECK(unsigned_words[0] == n % 100);
    // the first one finds 200, beyond the bound, and starts again from 99
    CHECK(unsigned_words[1] == 99 - (n - 1) % 100);
    CHECK(unsigned_words[2] == 0x80000000u - (n - 1));
    CHECK(unsigned_words[3] == 0x80000000u + (n - 1));
    CHECK(wide[0] == 0x100000000ull * n);
    CHECK(wide[1] == (n - 1ull) << 33);
    CHECK(f[0] == 0.5f * n);
    CHECK(d[0] == 0.25 * n);
    CHECK(work.atomics == 17u * n);
}

TEST_CASE("atomic operations return what was there before") {
    auto device = test::kernels_of_both();
    auto counter = device.array<unsigned>(1);
    auto order = device.array<unsigned>(600);
    auto lock = device.array<int>(1);
    auto swapped = device.array<int>(600);
    device.run("atomic_results", {{2}, {300}}, counter, order, lock, swapped);
    CHECK(counter[0] == 600);
    std::vector<unsigned> sorted(order.data, order.data + 600);
    std::sort(sorted.begin(), sorted.end());
    for (unsigned i = 0; i < 600; ++i)
        REQUIRE(sorted[i] == i);
    CHECK(lock[0] >= 1);
    for (int i = 0; i < 600; ++i)
        if (i % 300 == 0)
            REQUIRE(swapped[i] == 300);
        else
            REQUIRE(swapped[i] == (i + 1 == lock[0] ? 0 : lock[0]));
}

TEST_CASE("locks taken by lanes of the same warp") {
    auto device = test::kernels_of_both();
    const std::string kernel = GENERATE(as<std::string>{}, "spin_lock", "naive_lock");
    auto lock = device.array<int>(1), total = device.array<int>(1);
    device.run(kernel, {{3}, {70}}, lock, total);
    CHECK(total[0] == 210);
    CHECK(lock[0] == 0);
}
