// wrong: the keys are made on the host and copied
// fails at least: all GPUs are put to work before one is waited for
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
    CUDA_CHECK(cudaMalloc(&memory, size * sizeof(std::uint64_t)));
    return DeviceKeys(memory);
}

int device_of(const void* memory) {
    cudaPointerAttributes attributes{};
    CUDA_CHECK(cudaPointerGetAttributes(&attributes, memory));
    return attributes.device;
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
            memory_.push_back(allocate_keys(shard_size));
            shards_.push_back({memory_[k].get(), offset, shard_size});
            offset += shard_size;
        }
    }

    const std::vector<lesson::Shard>& shards() const override { return shards_; }

    void fill(std::uint64_t first, std::uint64_t step) override {
        for (std::size_t k = 0; k < shards_.size(); ++k) {
            const auto& [keys, offset, size] = shards_[k];
            if (size == 0) continue;
            const DeviceGuard guard(device_of(keys));
            std::vector<std::uint64_t> made(size);
            for (std::size_t i = 0; i < size; ++i)
                made[i] = first + (offset + i) * step;
            CUDA_CHECK(cudaMemcpy(keys, made.data(), size * sizeof made[0], cudaMemcpyDefault));
        }
    }

private:
    std::vector<DeviceKeys> memory_;
    std::vector<lesson::Shard> shards_;
};

} // namespace

std::unique_ptr<lesson::ShardedKeys> lesson::make_sharded_keys(const std::vector<int>& devices,
                                                               std::size_t size) {
    return std::make_unique<Keys>(devices, size);
}
