#include "both.hpp"

#include <cmath>
#include <numeric>

using test::scrambled;

TEST_CASE("one element a thread, with a tail that is cut off") {
    auto device = test::kernels_of_both();
    const int n = GENERATE(1, 31, 255, 256, 257, 1000, 4099);
    auto x = device.array<float>(n), y = device.array<float>(n + 8);
    std::vector<float> expected(n + 8);
    for (int i = 0; i < n + 8; ++i)
        y[i] = static_cast<float>(scrambled(i) % 1000);
    for (int i = 0; i < n; ++i)
        x[i] = static_cast<float>(scrambled(i + 77) % 1000) * 0.125f;
    for (int i = 0; i < n + 8; ++i)
        expected[i] = i < n ? std::fma(1.7f, x[i], y[i]) : y[i];
    const auto work = device.run("axpy", {{std::uint32_t(n + 255) / 256}, {256}}, x, y, 1.7f, n);
    CHECK(std::vector<float>(y.data, y.data + n + 8) == expected);
    CHECK(work.thread_instructions >= std::uint64_t(n) * 8);
    const std::uint64_t sectors = (std::uint64_t(n) * 4 + 31) / 32;
    CHECK(work.sectors_read[0] == 2 * sectors);
    CHECK(work.sectors_written[0] == sectors);
}

TEST_CASE("blocks of any size") {
    auto device = test::kernels_of_both();
    const std::uint32_t threads = GENERATE(1u, 7u, 32u, 33u, 96u, 300u, 512u, 1000u, 1024u);
    const int n = 2500;
    auto x = device.array<float>(n), y = device.array<float>(n);
    for (int i = 0; i < n; ++i) {
        x[i] = static_cast<float>(i);
        y[i] = 1;
    }
    device.run("axpy", {{(n + threads - 1) / threads}, {threads}}, x, y, 2.0f, n);
    for (int i = 0; i < n; ++i)
        REQUIRE(y[i] == 2.0f * static_cast<float>(i) + 1);
}

TEST_CASE("a grid-stride loop") {
    auto device = test::kernels_of_both();
    const long long n = 10007;
    auto x = device.array<double>(n), y = device.array<double>(n);
    for (int i = 0; i < n; ++i)
        x[i] = static_cast<double>(scrambled(i) % 100000);
    device.run("grid_stride", {{3}, {320}}, x, y, n);
    for (int i = 0; i < n; ++i)
        REQUIRE(y[i] == x[i] * 2 + 1);
}

namespace {
struct Packet {
    char tag;
    short small;
    int count;
    double weight;
    unsigned char bytes[5];
};
} // namespace

TEST_CASE("a struct as argument") {
    auto device = test::kernels_of_both();
    const Packet packet{-3, 1000, 7, 2.5, {1, 2, 3, 4, 250}};
    auto out = device.array<double>(40);
    device.run("struct_argument", {{1}, {40}}, packet, out);
    for (int i = 0; i < 40; ++i)
        REQUIRE(out[i] == -3 + 1000 + 7 * 2.5 + packet.bytes[i % 5]);
}

TEST_CASE("three dimensions") {
    auto device = test::kernels_of_both();
    auto out = device.array<unsigned>(12 * 15 * 8);
    device.run("index_3d", {{3, 5, 2}, {4, 3, 4}}, out);
    for (unsigned z = 0; z < 8; ++z)
        for (unsigned y = 0; y < 15; ++y)
            for (unsigned x = 0; x < 12; ++x)
                REQUIRE(out[(z * 15 + y) * 12 + x] == (x | y << 8 | z << 16));
}

TEST_CASE("types narrower than a register") {
    auto device = test::kernels_of_both();
    const int n = 300;
    auto a = device.array<signed char>(n);
    auto b = device.array<unsigned short>(n);
    auto c = device.array<short>(n);
    auto d = device.array<unsigned char>(n);
    for (int i = 0; i < n; ++i) {
        a[i] = static_cast<signed char>(scrambled(i));
        b[i] = static_cast<unsigned short>(scrambled(i + 1000));
    }
    device.run("narrow_types", {{2}, {160}}, a, b, c, d, n);
    for (int i = 0; i < n; ++i) {
        REQUIRE(c[i] == static_cast<short>(a[i] * b[i]));
        REQUIRE(d[i] == static_cast<unsigned char>(a[i] + b[i]));
    }
}

TEST_CASE("branches that only some threads take") {
    auto device = test::kernels_of_both();
    const int n = 3000;
    auto in = device.array<int>(n), out = device.array<int>(n);
    for (int i = 0; i < n; ++i) {
        in[i] = static_cast<int>(scrambled(i) % 100000);
        out[i] = -5;
    }
    device.run("branches", {{12}, {256}}, in, out, n);
    for (int i = 0; i < n; ++i) {
        int value = in[i];
        if (value % 2 == 0)
            value = value % 3 == 0 ? value * 7 : value - 1000;
        else if (value % 5 == 0)
            value = -5;
        else
            value = -value;
        REQUIRE(out[i] == value);
    }
}

TEST_CASE("loops of different length") {
    auto device = test::kernels_of_both();
    auto out = device.array<int>(2048);
    device.run("collatz", {{8}, {256}}, out);
    for (int i = 0; i < 2048; ++i) {
        int steps = 0;
        for (std::uint64_t value = i + 1; value != 1;) {
            value = value % 2 == 0 ? value / 2 : 3 * value + 1;
            if (++steps > 300) break;
        }
        REQUIRE(out[i] == steps);
    }
}

TEST_CASE("a switch") {
    auto device = test::kernels_of_both();
    auto in = device.array<int>(257), out = device.array<int>(256);
    std::vector<int> before(256);
    for (int i = 0; i < 257; ++i)
        in[i] = static_cast<int>(scrambled(i) % 10);
    for (int i = 0; i < 256; ++i)
        before[i] = out[i] = static_cast<int>(scrambled(i + 5) % 1000);
    device.run("switch_case", {{1}, {256}}, in, out);
    for (int i = 0; i < 256; ++i) {
        const int old = before[i];
        const int expected[] = {old + 3, old * 5,   old - 7 + 11, 11, old ^ 0x55,
                                old / 3, in[i + 1], ~old,         -1, -1};
        REQUIRE(out[i] == expected[in[i]]);
    }
}

TEST_CASE("vector loads and stores") {
    auto device = test::kernels_of_both();
    const int n = 192;
    auto f = device.array<float>(4 * n), f_out = device.array<float>(4 * n);
    auto d = device.array<double>(2 * n), d_out = device.array<double>(2 * n);
    auto b = device.array<unsigned char>(4 * n), b_out = device.array<unsigned char>(4 * n);
    auto s = device.array<short>(2 * n), s_out = device.array<short>(2 * n);
    for (int i = 0; i < 4 * n; ++i) {
        f[i] = static_cast<float>(i) * 0.5f;
        b[i] = static_cast<unsigned char>(scrambled(i));
    }
    for (int i = 0; i < 2 * n; ++i) {
        d[i] = i * 0.25;
        s[i] = static_cast<short>(scrambled(i));
    }
    device.run("vectors", {{2}, {96}}, f, f_out, d, d_out, b, b_out, s, s_out);
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < 4; ++k)
            REQUIRE(f_out[4 * i + k] == f[4 * i + 3 - k]);
        REQUIRE(d_out[2 * i] == d[2 * i + 1] * 2);
        REQUIRE(d_out[2 * i + 1] == d[2 * i]);
        for (int k = 0; k < 4; ++k)
            REQUIRE(b_out[4 * i + k] == b[4 * i + (k ^ 1)]);
        REQUIRE(s_out[2 * i] == s[2 * i + 1]);
        REQUIRE(s_out[2 * i + 1] == static_cast<short>(-s[2 * i]));
    }
}

TEST_CASE("sectors follow the pattern of access") {
    auto device = test::kernels_of_both();
    const int n = 256;
    auto in = device.array<float>(n * 64), out = device.array<float>(n);
    for (int i = 0; i < n * 64; ++i)
        in[i] = static_cast<float>(i);
    const auto sectors = [&](int stride) {
        const auto work = device.run("strided", {{1}, {n}}, in, out, stride);
        for (int i = 0; i < n; ++i)
            REQUIRE(out[i] == in[i * stride]);
        CHECK(work.sectors_written[0] == n / 8);
        return work.sectors_read[0];
    };
    CHECK(sectors(0) == n / 32);
    CHECK(sectors(1) == n / 8);
    CHECK(sectors(2) == n / 4);
    CHECK(sectors(8) == n);
    CHECK(sectors(64) == n);
    auto one = device.array<int>(1);
    auto many = device.array<int>(n);
    one[0] = 5;
    CHECK(device.run("broadcast", {{1}, {n}}, one, many).sectors_read[0] == n / 32);
    CHECK(std::accumulate(many.data, many.data + n, 0) == 5 * n);
}

TEST_CASE("accesses count for the kind of memory that they go to") {
    auto device = test::kernels_of_both();
    const int n = 1024;
    auto x = device.array<float>(n, sim::ptx::MemoryKind::host);
    auto y = device.array<float>(n, sim::ptx::MemoryKind::peer);
    const auto work = device.run("axpy", {{4}, {256}}, x, y, 2.0f, n);
    CHECK(work.sectors_read[std::size_t(sim::ptx::MemoryKind::host)] == n / 8);
    CHECK(work.sectors_read[std::size_t(sim::ptx::MemoryKind::peer)] == n / 8);
    CHECK(work.sectors_written[std::size_t(sim::ptx::MemoryKind::peer)] == n / 8);
    CHECK(work.sectors_read[0] + work.sectors_written[0] == 0);
}
