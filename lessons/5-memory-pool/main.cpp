// Lets heat spread with the solver of memory-pool.cu on 1, 2, 4 ... GPUs, and sets the time of a
// step beside that of moving as many bytes on this machine.
#include "memory-pool.hpp"

#include "common/cuda_check.hpp"
#include "common/stopwatch.hpp"
#include "common/stream.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>

namespace {

constexpr std::size_t width = 2112;
constexpr std::size_t cells = width * width;
constexpr std::size_t bytes = cells * sizeof(float);
constexpr std::size_t small_width = 512;
constexpr std::size_t small_cells = small_width * small_width;
constexpr int timed_steps = 2;

class PinnedFloats {
public:
    explicit PinnedFloats(std::size_t count) {
        CUDA_CHECK(cudaMallocHost(&memory_, count * sizeof(float)));
    }
    PinnedFloats(const PinnedFloats&) = delete;
    PinnedFloats& operator=(const PinnedFloats&) = delete;
    ~PinnedFloats() { cudaFreeHost(memory_); }

    float* get() const { return memory_; }

private:
    float* memory_ = nullptr;
};

std::vector<float> warm_plate(std::size_t count, int number) {
    std::vector<float> plate(count);
    for (std::size_t i = 0; i < count; ++i)
        plate[i] = static_cast<float>((i * 37 + number * 101) % 1009);
    return plate;
}

std::vector<int> first_devices(int count) {
    std::vector<int> devices(count);
    std::iota(devices.begin(), devices.end(), 0);
    return devices;
}

std::size_t mebibytes(std::size_t count) {
    return (count + (std::size_t{1} << 19)) >> 20;
}

std::size_t pool_bytes(int device, cudaMemPoolAttr attribute) {
    cudaMemPool_t pool = nullptr;
    std::uint64_t value = 0;
    CUDA_CHECK(cudaDeviceGetMemPool(&pool, device));
    CUDA_CHECK(cudaMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

/// A step moves five plates if caches catch every further use of a cell, and nine without any. This
/// moves seven, by copies that read as much as they write.
double seconds_to_move_bytes_of_a_step() {
    const Stream stream;
    float* memory = nullptr;
    CUDA_CHECK(cudaMalloc(&memory, 2 * bytes));
    CUDA_CHECK(cudaMemset(memory, 0, 2 * bytes));
    CUDA_CHECK(cudaDeviceSynchronize());
    Stopwatch stopwatch(0);
    for (int half = 0; half < 5; ++half) {
        CUDA_CHECK(
            cudaMemcpyAsync(memory + cells, memory, bytes / 2, cudaMemcpyDeviceToDevice, stream));
    }
    CUDA_CHECK(cudaStreamSynchronize(stream));
    const double seconds = stopwatch.seconds();
    CUDA_CHECK(cudaFree(memory));
    return seconds;
}

void print_steps(int gpus) {
    const auto solver = lesson::make_heat_solver(first_devices(gpus), width);
    for (int plate = 0; plate < gpus; ++plate)
        solver->load(plate, warm_plate(cells, plate).data());
    solver->step();

    Stopwatch stopwatch(0);
    for (int i = 0; i < timed_steps; ++i)
        solver->step();
    const double milliseconds = stopwatch.seconds() / timed_steps * 1e3;

    const std::size_t peak = pool_bytes(gpus - 1, cudaMemPoolAttrUsedMemHigh);
    const std::size_t kept = pool_bytes(gpus - 1, cudaMemPoolAttrReservedMemCurrent);
    std::printf("%4d %13.3f ms %12.0f %16zu MiB %14zu MiB\n", gpus, milliseconds,
                gpus / milliseconds * 1e3, mebibytes(peak), mebibytes(kept));
}

/// The number of cells of a snapshot that are not as they were when it was taken. The stream that
/// it goes through is busy at first, and meanwhile the solver makes steps.
std::size_t wrong_cells_of_snapshot() {
    const Stream stream;
    float* other_data = nullptr;
    CUDA_CHECK(cudaMalloc(&other_data, bytes));
    CUDA_CHECK(cudaMemset(other_data, 0, bytes));
    const PinnedFloats other_result(cells);
    const PinnedFloats snapshot(small_cells);

    const auto solver = lesson::make_heat_solver({0}, small_width);
    const std::vector<float> plate = warm_plate(small_cells, 0);
    solver->load(0, plate.data());
    CUDA_CHECK(
        cudaMemcpyAsync(other_result.get(), other_data, bytes, cudaMemcpyDeviceToHost, stream));
    solver->snapshot(0, snapshot.get(), stream);
    for (int i = 0; i < 3; ++i)
        solver->step();
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaFree(other_data));

    std::size_t wrong = 0;
    for (std::size_t i = 0; i < small_cells; ++i)
        wrong += snapshot.get()[i] != plate[i];
    return wrong;
}

std::string difference_of_plates(float& expected) {
    const auto solver = lesson::make_heat_solver({0, 1}, small_width);
    const std::vector<float> plate = warm_plate(small_cells, 0);
    const std::vector<float> other = warm_plate(small_cells, 1);
    solver->load(0, plate.data());
    solver->load(1, other.data());
    for (std::size_t i = 0; i < small_cells; ++i)
        expected = std::max(expected, std::fabs(plate[i] - other[i]));
    try {
        return std::to_string(solver->difference(0, 1));
    } catch (const CudaError& error) {
        return cudaGetErrorName(error.code());
    }
}

void print_difference(int gpus) {
    int accessible = 0;
    if (gpus > 1) CUDA_CHECK(cudaDeviceCanAccessPeer(&accessible, 0, 1));
    if (!accessible) {
        std::printf("difference between the plates of GPU 0 and 1: no peer access here\n");
        return;
    }
    float expected = 0;
    const std::string found = difference_of_plates(expected);
    std::printf("difference between the plates of GPU 0 and 1: %s (expected: %f)\n", found.c_str(),
                expected);
}

void run() {
    int gpus = 0;
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDeviceCount(&gpus));
    CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));

    std::printf("a plate of %zu x %zu cells (%zu MiB) on each %s\n\n", width, width,
                mebibytes(bytes), properties.name);
    std::printf("GPUs   time of a step  plates per s  pool: most in use  kept after step\n");
    for (int count = 1; count <= gpus; count *= 2)
        print_steps(count);
    std::printf("\nmoving the bytes of one step inside one GPU: %.3f ms\n",
                seconds_to_move_bytes_of_a_step() * 1e3);
    std::printf("wrong cells in a snapshot: %zu of %zu\n", wrong_cells_of_snapshot(), small_cells);
    print_difference(gpus);
}

} // namespace

int main() {
    try {
        run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "memory-pool: %s\n", error.what());
        return 1;
    }
}
