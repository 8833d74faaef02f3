// Makes a vector over all GPUs with device-memory.cu, and shows where its shards lie, whether its
// keys are right, and how much faster all GPUs fill it than one.
#include "device-memory.hpp"

#include "common/cuda_check.hpp"
#include "common/stopwatch.hpp"

#include <cstdio>
#include <memory>
#include <vector>

namespace {

constexpr std::uint64_t golden_step = 0x9e3779b97f4a7c15;
constexpr std::size_t keys_per_device = std::size_t{16} << 20;
constexpr std::size_t few = 11; // the vector has a few more, so that it can't be split evenly

// On a machine with a single GPU, that one gets four shards.
std::vector<int> devices_to_use() {
    int count = 0;
    CUDA_CHECK(cudaGetDeviceCount(&count));
    if (count == 1) return {0, 0, 0, 0};
    std::vector<int> devices;
    for (int device = 0; device < count; ++device)
        devices.push_back(device);
    return devices;
}

int owner_of(const void* memory) {
    cudaPointerAttributes attributes{};
    CUDA_CHECK(cudaPointerGetAttributes(&attributes, memory));
    return attributes.device;
}

std::size_t count_wrong_keys(const lesson::Shard& shard, std::uint64_t first, std::uint64_t step) {
    std::vector<std::uint64_t> keys(shard.size);
    CUDA_CHECK(cudaMemcpy(keys.data(), shard.keys, shard.size * sizeof(std::uint64_t),
                          cudaMemcpyDeviceToHost));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < shard.size; ++i)
        wrong += keys[i] != first + (shard.offset + i) * step;
    return wrong;
}

void print_shards(const lesson::ShardedKeys& vector, const std::vector<int>& devices) {
    std::printf("shard  meant for  lies on       first key       keys\n");
    for (std::size_t k = 0; k < vector.shards().size(); ++k) {
        const lesson::Shard& shard = vector.shards()[k];
        std::printf("%5zu      GPU %d    GPU %d  %14zu %10zu\n", k, devices[k],
                    owner_of(shard.keys), shard.offset, shard.size);
    }
}

void print_keys(const lesson::ShardedKeys& vector, std::size_t size, std::uint64_t first) {
    std::size_t held = 0, wrong = 0;
    for (const lesson::Shard& shard : vector.shards()) {
        held += shard.size;
        wrong += count_wrong_keys(shard, first, golden_step);
    }
    std::printf("\n%-34s %zu of %zu, %zu of them wrong\n", "keys in the shards", held, size, wrong);
}

double time_fill(lesson::ShardedKeys& vector) {
    vector.fill(0, golden_step); // the first kernel on a GPU takes longer
    Stopwatch stopwatch(0);
    vector.fill(1, golden_step);
    return stopwatch.seconds();
}

void print_rate(const char* what, double bytes, double seconds) {
    std::printf("%-34s %.0f us, %.0f GB/s\n", what, seconds * 1e6, bytes / seconds / 1e9);
}

// Another part of the program works with the last GPU, and calls us.
void print_current_device(lesson::ShardedKeys& vector, int last) {
    int found = -1;
    CUDA_CHECK(cudaSetDevice(last));
    vector.fill(2, golden_step);
    CUDA_CHECK(cudaGetDevice(&found));
    std::printf("%-34s GPU %d before, GPU %d after\n", "the caller's current device", last, found);
}

void run() {
    const std::vector<int> devices = devices_to_use();
    const std::size_t size = devices.size() * keys_per_device + few;
    const auto vector = lesson::make_sharded_keys(devices, size);

    std::printf("a vector of %zu keys, %zu MiB for each GPU\n\n", size,
                keys_per_device * sizeof(std::uint64_t) >> 20);
    print_shards(*vector, devices);

    const auto on_one = lesson::make_sharded_keys({0}, keys_per_device);
    const double one = time_fill(*on_one);
    const double all = time_fill(*vector);
    print_keys(*vector, size, 1);
    print_rate("fill, one GPU, one shard", keys_per_device * sizeof(std::uint64_t), one);
    print_rate("fill, the whole vector", static_cast<double>(size * sizeof(std::uint64_t)), all);
    print_current_device(*vector, devices.back());
}

} // namespace

int main() {
    try {
        run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "device-memory: %s\n", error.what());
        return 1;
    }
}
