// wrong: a GPU without room for its shard is left out in silence
// fails: a failed allocation is reported and undone
#include "device-memory.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"

namespace {

struct FreeDevice {
    void operator()(std::uint64_t* memory) const { cudaFree(memory); }
};

using DeviceKeys = std::unique_ptr<std::uint64_t[], FreeDevice>;

DeviceKeys allocate_keys(std::size_t size) {
    std::uint64_t* memory = nullptr;
    if (cudaMalloc(&memory, size * sizeof(std::uint64_t)) != cudaSuccess) {
        cudaGetLastError();
        return nullptr;
    }
    return DeviceKeys(memory);
}

int device_of(const void* memory) {
    cudaPointerAttributes attributes{};
    CUDA_CHECK(cudaPointerGetAttributes(&attributes, memory));
    return attributes.device;
}

constexpr unsigned threads_per_block = 256;

// As many blocks as fit on the GPU at once; each thread then writes many keys.
unsigned blocks_for(int device) {
    int multiprocessors = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    return 8 * static_cast<unsigned>(multiprocessors);
}

__global__ void write_keys(std::uint64_t* keys, std::size_t size, std::uint64_t first,
                           std::uint64_t step) {
    const std::size_t threads = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += threads)
        keys[i] = first + i * step;
}

class Keys final : public lesson::ShardedKeys {
public:
    Keys(const std::vector<int>& devices, std::size_t size) {
        const std::size_t share = size / devices.size();
        const std::size_t remainder = size % devices.size();
        std::size_t offset = 0;
        for (std::size_t k = 0; k < devices.size(); ++k) {
            const DeviceGuard guard(devices[k]);
            const std::size_t shard_size = k < remainder ? share + 1 : share;
            blocks_.push_back(blocks_for(devices[k]));
            memory_.push_back(allocate_keys(shard_size));
            const std::size_t allocated = memory_[k] != nullptr ? shard_size : 0;
            shards_.push_back({memory_[k].get(), offset, allocated});
            offset += allocated;
        }
    }

    const std::vector<lesson::Shard>& shards() const override { return shards_; }

    void fill(std::uint64_t first, std::uint64_t step) override {
        for (std::size_t k = 0; k < shards_.size(); ++k) {
            const auto& [keys, offset, size] = shards_[k];
            if (size == 0) continue;
            const DeviceGuard guard(device_of(keys));
            write_keys<<<blocks_[k], threads_per_block>>>(keys, size, first + offset * step, step);
            CUDA_CHECK(cudaGetLastError());
        }
        for (const lesson::Shard& shard : shards_) {
            if (shard.size == 0) continue;
            const DeviceGuard guard(device_of(shard.keys));
            CUDA_CHECK(cudaDeviceSynchronize());
        }
    }

private:
    std::vector<unsigned> blocks_;
    std::vector<DeviceKeys> memory_;
    std::vector<lesson::Shard> shards_;
};

} // namespace

std::unique_ptr<lesson::ShardedKeys> lesson::make_sharded_keys(const std::vector<int>& devices,
                                                               std::size_t size) {
    return std::make_unique<Keys>(devices, size);
}
