// Sends frames through the pipeline of pinned-memory.cu and sets its rates beside those of plain
// copies on this machine.
#include "pinned-memory.hpp"

#include "common/cuda_check.hpp"
#include "common/stopwatch.hpp"

#include <cstdio>
#include <memory>
#include <vector>

namespace {

constexpr int device = 0;
constexpr int frames = 32;
constexpr std::size_t pixels = 2 << 20;
constexpr std::size_t bytes = pixels * sizeof(float);

struct Seconds {
    double upload = 0;
    double download = 0;
};

double gigabytes_per_second(double seconds) {
    return frames * double{bytes} / seconds / 1e9;
}

void draw_frame(float* frame, int number) {
    for (std::size_t i = 0; i < pixels; ++i)
        frame[i] = static_cast<float>((i * 7 + number) % 1021);
}

bool has_edges_of(const float* edges, int number) {
    std::vector<float> frame(pixels);
    draw_frame(frame.data(), number);
    for (std::size_t i = 1; i < pixels; ++i) {
        if (edges[i] != frame[i] - frame[i - 1]) return false;
    }
    return edges[0] == frame[0];
}

Seconds time_pipeline(int& wrong_frames) {
    Seconds seconds;
    Stopwatch stopwatch(device);
    const auto pipeline = lesson::make_frame_pipeline(device, pixels);
    for (int number = 0; number < frames; ++number) {
        draw_frame(pipeline->next_frame(), number);
        stopwatch.restart();
        pipeline->upload();
        seconds.upload += stopwatch.seconds();
        pipeline->process();
        CUDA_CHECK(cudaDeviceSynchronize());
        stopwatch.restart();
        const float* edges = pipeline->download();
        seconds.download += stopwatch.seconds();
        if (!has_edges_of(edges, number)) ++wrong_frames;
    }
    return seconds;
}

Seconds time_copies(void* on_gpu, void* on_host) {
    Seconds seconds;
    Stopwatch stopwatch(device);
    for (int number = 0; number < frames; ++number) {
        stopwatch.restart();
        CUDA_CHECK(cudaMemcpy(on_gpu, on_host, bytes, cudaMemcpyHostToDevice));
        seconds.upload += stopwatch.seconds();
        stopwatch.restart();
        CUDA_CHECK(cudaMemcpy(on_host, on_gpu, bytes, cudaMemcpyDeviceToHost));
        seconds.download += stopwatch.seconds();
    }
    return seconds;
}

void print_row(const char* name, double pipeline, double pageable, double pinned) {
    std::printf("%-12s %8.1f GB/s %13.1f GB/s %11.1f GB/s\n", name, gigabytes_per_second(pipeline),
                gigabytes_per_second(pageable), gigabytes_per_second(pinned));
}

void run() {
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDeviceProperties(&properties, device));

    void* on_gpu = nullptr;
    void* pinned = nullptr;
    std::vector<char> pageable(bytes);
    CUDA_CHECK(cudaMalloc(&on_gpu, bytes));
    CUDA_CHECK(cudaMallocHost(&pinned, bytes));
    const Seconds with_pageable = time_copies(on_gpu, pageable.data());
    const Seconds with_pinned = time_copies(on_gpu, pinned);
    CUDA_CHECK(cudaFreeHost(pinned));
    CUDA_CHECK(cudaFree(on_gpu));

    int wrong_frames = 0;
    const Seconds with_pipeline = time_pipeline(wrong_frames);

    std::printf("%d frames of %zu MiB on %s\n\n", frames, bytes >> 20, properties.name);
    std::printf("%-12s %13s %18s %16s\n", "", "this pipeline", "pageable copy", "pinned copy");
    print_row("upload", with_pipeline.upload, with_pageable.upload, with_pinned.upload);
    print_row("download", with_pipeline.download, with_pageable.download, with_pinned.download);
    std::printf("\nwrong frames: %d of %d\n", wrong_frames, frames);
    std::printf("error left behind by the pipeline: %s\n", cudaGetErrorName(cudaGetLastError()));
}

} // namespace

int main() {
    try {
        run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "pinned-memory: %s\n", error.what());
        return 1;
    }
}
