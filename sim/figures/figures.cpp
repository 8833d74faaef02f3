// Measures what the data paths and the calls of a machine cost, real or simulated, and prints one
// JSON object: the figures by which the simulated node is held against a real one.
#include "common/cuda_check.hpp"
#include "common/stopwatch.hpp"
#include "sim/figures/kernels.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr int device = 0;
constexpr int repetitions = 15;
constexpr std::size_t mebibyte = std::size_t{1} << 20;

struct FreeDevice {
    void operator()(char* memory) const { cudaFree(memory); }
};
struct FreePinned {
    void operator()(char* memory) const { cudaFreeHost(memory); }
};

std::unique_ptr<char, FreeDevice> device_memory(std::size_t bytes) {
    void* memory = nullptr;
    CUDA_CHECK(cudaMalloc(&memory, bytes));
    return std::unique_ptr<char, FreeDevice>(static_cast<char*>(memory));
}

std::unique_ptr<char, FreePinned> pinned_memory(std::size_t bytes) {
    void* memory = nullptr;
    CUDA_CHECK(cudaMallocHost(&memory, bytes));
    return std::unique_ptr<char, FreePinned>(static_cast<char*>(memory));
}

/// Times `action` after one warm-up and prints the median and the extremes. A figure in GB/s counts
/// `bytes`, one in us ignores them.
class Table {
public:
    void time(const std::string& name, const std::function<void()>& action, double calls = 1,
              const std::function<void()>& undo = {}) {
        measure(name, "us", action, undo,
                [calls](double seconds) { return seconds * 1e6 / calls; });
    }

    void rate(const std::string& name, std::size_t bytes, const std::function<void()>& action,
              const std::function<void()>& undo = {}) {
        measure(name, "GB/s", action, undo,
                [bytes](double seconds) { return static_cast<double>(bytes) / seconds / 1e9; });
    }

    void print_json(const char* machine) const {
        std::printf("{\n  \"machine\": \"%s\",\n  \"repetitions\": %d,\n  \"figures\": [\n",
                    machine, repetitions);
        for (const Row& row : rows_) {
            std::printf(
                "    {\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.6g, \"lowest\": %.6g, "
                "\"highest\": %.6g}%s\n",
                row.name.c_str(), row.unit.c_str(), row.median, row.lowest, row.highest,
                &row == &rows_.back() ? "" : ",");
        }
        std::printf("  ]\n}\n");
    }

private:
    struct Row {
        std::string name, unit;
        double median, lowest, highest;
    };

    void measure(const std::string& name, const char* unit, const std::function<void()>& action,
                 const std::function<void()>& undo,
                 const std::function<double(double)>& figure_of) {
        std::fprintf(stderr, "%s\n", name.c_str());
        std::vector<double> figures;
        for (int i = 0; i <= repetitions; ++i) {
            stopwatch_.restart();
            action();
            const double seconds = stopwatch_.seconds();
            if (undo) undo();
            if (i > 0) figures.push_back(figure_of(seconds));
        }
        std::sort(figures.begin(), figures.end());
        rows_.push_back({name, unit, figures[figures.size() / 2], figures.front(), figures.back()});
    }

    Stopwatch stopwatch_{device};
    std::vector<Row> rows_;
};

void measure_copies(Table& table) {
    for (const std::size_t size : {8 * mebibyte, 64 * mebibyte, 256 * mebibyte}) {
        const std::string label = " " + std::to_string(size / mebibyte) + " MiB";
        const auto on_gpu = device_memory(size);
        const auto pinned = pinned_memory(size);
        std::vector<char> pageable(size, 1);
        const auto copy = [](void* to, const void* from, std::size_t bytes) {
            return [=] { CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDefault)); };
        };
        const auto upload = copy(on_gpu.get(), pageable.data(), size);
        const auto download = copy(pageable.data(), on_gpu.get(), size);
        table.rate("H2D pageable" + label, size, upload);
        table.rate("D2H pageable" + label, size, download);
        // Memory that has just been written is not in the cache of every core, as it is when the
        // same bytes are sent again and again.
        table.rate("H2D pageable" + label + ", in turn with D2H", size, upload, download);
        table.rate("D2H pageable" + label + ", in turn with H2D", size, download, upload);
        table.rate("H2D pinned" + label, size, copy(on_gpu.get(), pinned.get(), size));
        table.rate("D2H pinned" + label, size, copy(pinned.get(), on_gpu.get(), size));
        const auto other = device_memory(size);
        table.rate("same-GPU copy" + label, size, [&] {
            CUDA_CHECK(cudaMemcpy(other.get(), on_gpu.get(), size, cudaMemcpyDeviceToDevice));
            CUDA_CHECK(cudaDeviceSynchronize());
        });
        table.rate("memset" + label, size, [&] {
            CUDA_CHECK(cudaMemset(other.get(), 1, size));
            CUDA_CHECK(cudaDeviceSynchronize());
        });
    }
}

void measure_both_directions(Table& table) {
    const std::size_t size = 256 * mebibyte;
    const auto up = pinned_memory(size), down = pinned_memory(size);
    const auto in = device_memory(size), out = device_memory(size);
    Stream h2d, d2h;
    table.rate("H2D and D2H pinned at once 256 MiB", 2 * size, [&] {
        CUDA_CHECK(cudaMemcpyAsync(in.get(), up.get(), size, cudaMemcpyHostToDevice, h2d));
        CUDA_CHECK(cudaMemcpyAsync(down.get(), out.get(), size, cudaMemcpyDeviceToHost, d2h));
        CUDA_CHECK(cudaStreamSynchronize(h2d));
        CUDA_CHECK(cudaStreamSynchronize(d2h));
    });
}

void measure_kernels(Table& table) {
    const std::size_t size = 256 * mebibyte;
    const auto on_gpu = device_memory(size), other = device_memory(size);
    const auto pinned = pinned_memory(size);
    Stream stream;
    const auto wait = [&] { CUDA_CHECK(cudaStreamSynchronize(stream)); };
    table.rate("kernel copies inside the GPU 256 MiB", size, [&] {
        launch_copy(other.get(), on_gpu.get(), size, stream);
        wait();
    });
    table.rate("kernel reads mapped host memory 256 MiB", size, [&] {
        launch_copy(on_gpu.get(), pinned.get(), size, stream);
        wait();
    });
    table.rate("kernel writes mapped host memory 256 MiB", size, [&] {
        launch_copy(pinned.get(), on_gpu.get(), size, stream);
        wait();
    });
    table.rate("kernel reads mapped host memory, stride 128 B, 8 MiB", 8 * mebibyte, [&] {
        launch_strided_read(on_gpu.get(), pinned.get(), 8 * mebibyte, stream);
        wait();
    });
    table.time("empty kernel and stream wait", [&] {
        launch_empty(stream);
        wait();
    });
    table.time(
        "empty kernel, one of 1000",
        [&] {
            for (int i = 0; i < 1000; ++i)
                launch_empty(stream);
            wait();
        },
        1000);
}

void measure_allocation(Table& table) {
    for (const std::size_t size : {mebibyte, 64 * mebibyte, 1024 * mebibyte}) {
        const std::string label = " " + std::to_string(size / mebibyte) + " MiB";
        void* memory = nullptr;
        table.time(
            "cudaMalloc" + label, [&] { CUDA_CHECK(cudaMalloc(&memory, size)); }, 1,
            [&] { CUDA_CHECK(cudaFree(memory)); });
        table.time("cudaMalloc and cudaFree" + label, [&] {
            CUDA_CHECK(cudaMalloc(&memory, size));
            CUDA_CHECK(cudaFree(memory));
        });
    }
    for (const std::size_t size : {mebibyte, 8 * mebibyte, 64 * mebibyte}) {
        const std::string label = " " + std::to_string(size / mebibyte) + " MiB";
        void* memory = nullptr;
        table.time(
            "cudaMallocHost" + label, [&] { CUDA_CHECK(cudaMallocHost(&memory, size)); }, 1,
            [&] { CUDA_CHECK(cudaFreeHost(memory)); });
        table.time("cudaMallocHost and cudaFreeHost" + label, [&] {
            CUDA_CHECK(cudaMallocHost(&memory, size));
            CUDA_CHECK(cudaFreeHost(memory));
        });
        std::vector<char> buffer(size, 1);
        table.time(
            "cudaHostRegister" + label,
            [&] { CUDA_CHECK(cudaHostRegister(buffer.data(), size, 0)); }, 1,
            [&] { CUDA_CHECK(cudaHostUnregister(buffer.data())); });
        table.time("cudaHostRegister and Unregister" + label, [&] {
            CUDA_CHECK(cudaHostRegister(buffer.data(), size, 0));
            CUDA_CHECK(cudaHostUnregister(buffer.data()));
        });
    }
}

void measure_pool(Table& table) {
    Stream stream;
    const std::size_t size = 64 * mebibyte;
    const auto step = [&](bool wait) {
        void* memory = nullptr;
        CUDA_CHECK(cudaMallocAsync(&memory, size, stream));
        launch_empty(stream);
        CUDA_CHECK(cudaFreeAsync(memory, stream));
        if (wait) CUDA_CHECK(cudaStreamSynchronize(stream));
    };
    const auto steps = [&](bool wait) {
        for (int i = 0; i < 100; ++i)
            step(wait);
        CUDA_CHECK(cudaStreamSynchronize(stream));
    };
    table.time(
        "pool 64 MiB, no wait, a step", [&] { steps(false); }, 100);
    table.time(
        "pool 64 MiB, wait, threshold 0, a step", [&] { steps(true); }, 100);
    cudaMemPool_t pool = nullptr;
    CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, device));
    std::uint64_t threshold = UINT64_MAX;
    CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    table.time(
        "pool 64 MiB, wait, threshold max, a step", [&] { steps(true); }, 100);
}

void measure_small_calls(Table& table) {
    const auto on_gpu = device_memory(4096);
    const auto pinned = pinned_memory(4096);
    Stream stream;
    table.time("cudaMemcpy 4 B H2D pinned", [&] {
        CUDA_CHECK(cudaMemcpy(on_gpu.get(), pinned.get(), 4, cudaMemcpyHostToDevice));
    });
    table.time(
        "cudaMemcpyAsync 4 B H2D pinned, one of 1000",
        [&] {
            for (int i = 0; i < 1000; ++i) {
                CUDA_CHECK(
                    cudaMemcpyAsync(on_gpu.get(), pinned.get(), 4, cudaMemcpyHostToDevice, stream));
            }
            CUDA_CHECK(cudaStreamSynchronize(stream));
        },
        1000);
}

} // namespace

int main() {
    try {
        CUDA_CHECK(cudaSetDevice(device));
        cudaDeviceProp properties{};
        CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
        Table table;
        measure_copies(table);
        measure_both_directions(table);
        measure_kernels(table);
        measure_allocation(table);
        measure_pool(table);
        measure_small_calls(table);
        table.print_json(properties.name);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "figures: %s\n", error.what());
        return 1;
    }
}
