// Measures every data path of this machine, real or simulated, and prints one JSON object. What the
// figures mean is said by doctor.py. Progress
// goes to stderr, to a terminal only.
#include "paths.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace {

using doctor::Figure;
using doctor::GpuPaths;
using doctor::PairPaths;

void print(const char* name, const Figure& figure, const char* end = ",") {
    std::printf("\"%s\": {\"median\": %.6g, \"lowest\": %.6g, \"highest\": %.6g}%s\n", name,
                figure.median, figure.lowest, figure.highest, end);
}

void print(const char* name, const std::optional<Figure>& figure) {
    if (figure) print(name, *figure);
}

void print(const char* name, double value) {
    std::printf("\"%s\": %.6g,\n", name, value);
}

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return result + '"';
}

void print_gpu(int device, const GpuPaths& paths) {
    cudaDeviceProp properties{};
    char bus_id[32] = "";
    CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    CUDA_CHECK(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, device));
    std::printf("{\"gpu\": %d, \"name\": %s, \"pci\": %s, \"copy_engines\": %d,\n", device,
                quoted(properties.name).c_str(), quoted(bus_id).c_str(),
                properties.asyncEngineCount);
    print("h2d_pageable", paths.h2d_pageable);
    print("d2h_pageable", paths.d2h_pageable);
    print("h2d_pinned", paths.h2d_pinned);
    print("d2h_pinned", paths.d2h_pinned);
    print("both_ways", paths.both_ways);
    print("zero_copy_read", paths.zero_copy_read);
    print("zero_copy_write", paths.zero_copy_write);
    print("inside_copy", paths.inside_copy);
    print("inside_kernel", paths.inside_kernel);
    print("copy_ms", paths.copy_alone);
    print("kernel_ms", paths.kernel_alone);
    print("copy_and_kernel_ms", paths.copy_and_kernel);
    print("malloc_and_free_us", paths.malloc_and_free);
    print("pool_trimmed_us", paths.pool_trimmed);
    print("pool_kept_us", paths.pool_kept);
    print("pool_cold_us", paths.pool_cold);
    std::printf("\"arrived\": %s}", paths.arrived ? "true" : "false");
}

void print_pair(int from, int to, const PairPaths& paths) {
    std::printf("{\"from\": %d, \"to\": %d, \"possible\": %s,\n", from, to,
                paths.possible ? "true" : "false");
    print("copy_without_access", paths.copy_without_access);
    print("copy_with_access", paths.copy_with_access);
    print("kernel_read", paths.kernel_read);
    print("both_ways", paths.both_ways);
    print("latency_us", paths.latency);
    std::printf("\"fault\": %s}", quoted(paths.fault).c_str());
}

/// What goes on, where a person watches.
void show(const std::string& text) {
    if (isatty(STDERR_FILENO)) std::fprintf(stderr, "\r%-40s\r", text.c_str());
}

void run() {
    int gpus = 0;
    int runtime = 0;
    CUDA_CHECK(cudaGetDeviceCount(&gpus));
    CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
    std::printf("{\"runtime\": %d, \"bytes\": %zu, \"repetitions\": %d,\n\"gpus\": [\n", runtime,
                doctor::effort().bytes, doctor::effort().repetitions);
    for (int gpu = 0; gpu < gpus; ++gpu) {
        show("measuring GPU " + std::to_string(gpu) + " of " + std::to_string(gpus));
        const GpuPaths paths = doctor::measure_gpu(gpu);
        print_gpu(gpu, paths);
        std::printf("%s\n", gpu + 1 < gpus ? "," : "");
    }
    std::printf("],\n\"pairs\": [\n");
    const char* separator = "";
    for (int from = 0; from < gpus; ++from) {
        for (int to = 0; to < gpus; ++to) {
            if (from == to) continue;
            show("measuring from GPU " + std::to_string(from) + " to GPU " + std::to_string(to));
            const PairPaths paths = doctor::measure_pair(from, to);
            std::printf("%s", separator);
            print_pair(from, to, paths);
            separator = ",\n";
        }
    }
    std::printf("\n]}\n");
    show("");
}

} // namespace

int main() {
    try {
        run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "doctor: %s\n", error.what());
        return 1;
    }
}
