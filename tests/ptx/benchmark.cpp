// How many instructions of threads run in a second of one core's time. Prints figures, decides
// nothing.
#include "harness.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace {

template <class F> void measure(const char* name, F run) {
    run();
    double best = 0;
    std::uint64_t instructions = 0;
    for (int i = 0; i < 5; ++i) {
        const std::clock_t begin = std::clock();
        const sim::ptx::Work work = run();
        const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
        instructions = work.thread_instructions;
        best = std::max(best, static_cast<double>(instructions) / seconds);
    }
    std::printf("%-28s %8.2f G thread-instructions/s  (%.0f M)\n", name, best * 1e-9,
                static_cast<double>(instructions) * 1e-6);
}

} // namespace

int main() {
    constexpr std::uint32_t n = 1 << 22;
    for (const char* architecture : {"75", "100"}) {
        std::printf("compute_%s\n", architecture);
        test::Device device(test::read_kernels("speed", architecture));
        auto a = device.array<float>(n);
        auto b = device.array<float>(n);
        auto out = device.array<float>(n);
        for (std::uint32_t i = 0; i < n; ++i)
            a[i] = b[i] = static_cast<float>(i % 1000);
        const test::Grid grid{{n / 256}, {256}};
        measure("scale", [&] { return device.run("scale", grid, a, 1.000001f, int{n}); });
        measure("saxpy, block of 1024", [&] {
            return device.run("saxpy", {{n / 1024}, {1024}}, a, b, 0.5f, int{n});
        });
        measure("shared reduction", [&] { return device.run("block_sum", grid, a, out, int{n}); });
        measure("shuffle reduction", [&] { return device.run("warp_sum", grid, a, out, int{n}); });
        measure("five-point stencil, 16x16", [&] {
            return device.run("stencil", {{128, 128}, {16, 16}}, a, out, 2048, 2048);
        });
        measure("gather", [&] { return device.run("gather", grid, a, out, int{n}); });
        measure("divergent loop", [&] { return device.run("collatz", {{1024}, {256}}, out); });
        measure("one thread", [&] { return device.run("lonely", {{1}, {1}}, out, 100000); });
    }
}
