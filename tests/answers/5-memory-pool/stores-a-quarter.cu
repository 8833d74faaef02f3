// wrong: store copies as many bytes as there are cells
// fails at least: plates spread heat as on the host
#include "memory-pool.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "common/event.hpp"
#include "common/stream.hpp"

#include <cstdint>

namespace {

constexpr unsigned threads = 256;
constexpr unsigned blocks = 512;

/// Floats from the pool of the stream's GPU, allocated and freed in the order of the stream.
class PoolArray {
public:
    PoolArray(std::size_t count, cudaStream_t stream) : stream_(stream) {
        CUDA_CHECK(cudaMallocAsync(&memory_, count * sizeof(float), stream));
    }
    PoolArray(const PoolArray&) = delete;
    PoolArray& operator=(const PoolArray&) = delete;
    ~PoolArray() { cudaFreeAsync(memory_, stream_); }

    float* get() const { return memory_; }

    /// From now on `stream` is the last to use the memory, and so the one to free it.
    void hand_over_to(cudaStream_t stream) { stream_ = stream; }

private:
    float* memory_ = nullptr;
    cudaStream_t stream_;
};

struct FreeHost {
    void operator()(float* memory) const { cudaFreeHost(memory); }
};

using HostArray = std::unique_ptr<float[], FreeHost>;

HostArray make_host_array(std::size_t count) {
    float* memory = nullptr;
    CUDA_CHECK(cudaMallocHost(&memory, count * sizeof(float)));
    return HostArray(memory);
}

cudaMemPool_t current_pool(int device) {
    cudaMemPool_t pool = nullptr;
    CUDA_CHECK(cudaDeviceGetMemPool(&pool, device));
    return pool;
}

/// A pool returns what is free to the system at every wait, unless its threshold says otherwise.
void keep_freed_memory(int device) {
    std::uint64_t threshold = UINT64_MAX;
    CUDA_CHECK(
        cudaMemPoolSetAttribute(current_pool(device), cudaMemPoolAttrReleaseThreshold, &threshold));
}

void allow_access(int reader, int owner) {
    int possible = 0;
    CUDA_CHECK(cudaDeviceCanAccessPeer(&possible, reader, owner));
    if (possible == 0) return;
    cudaMemAccessDesc access{};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = reader;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    CUDA_CHECK(cudaMemPoolSetAccess(current_pool(owner), &access, 1));
}

__global__ void find_change(const float* plate, float* change, std::size_t width) {
    for (std::size_t row = blockIdx.x; row < width; row += blocks) {
        for (std::size_t column = threadIdx.x; column < width; column += threads) {
            const std::size_t i = row * width + column;
            const bool inside = column > 0 && row > 0 && column + 1 < width && row + 1 < width;
            change[i] = inside ? lesson::spread * (plate[i - 1] + plate[i + 1] + plate[i - width] +
                                                   plate[i + width] - 4 * plate[i])
                               : 0;
        }
    }
}

/// All threads of a warp call this together. `value` and `*largest` are not negative.
__device__ void raise_to(float* largest, float value) {
    for (int lanes = 16; lanes > 0; lanes /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, lanes));
    // Floats that are not negative have the order of their bits.
    if (threadIdx.x % 32 == 0) atomicMax(reinterpret_cast<int*>(largest), __float_as_int(value));
}

__global__ void add_change(float* plate, const float* change, std::size_t cells, float* largest) {
    float value = 0;
    for (std::size_t i = blockIdx.x * threads + threadIdx.x; i < cells; i += blocks * threads) {
        plate[i] += change[i];
        value = fmaxf(value, fabsf(change[i]));
    }
    raise_to(largest, value);
}

__global__ void compare(const float* plate, const float* other, std::size_t cells, float* largest) {
    float value = 0;
    for (std::size_t i = blockIdx.x * threads + threadIdx.x; i < cells; i += blocks * threads)
        value = fmaxf(value, fabsf(plate[i] - other[i]));
    raise_to(largest, value);
}

struct Plate {
    explicit Plate(std::size_t cells) : memory(cells, stream) {}

    Stream stream;
    PoolArray memory;
};

class Solver final : public lesson::HeatSolver {
public:
    Solver(const std::vector<int>& devices, std::size_t width)
        : width_(width), largest_(make_host_array(devices.size())) {
        for (int owner : devices) {
            keep_freed_memory(owner);
            for (int reader : devices)
                allow_access(reader, owner);
        }
        for (int device : devices) {
            const DeviceGuard guard(device);
            plates_.push_back(std::make_unique<Plate>(cells()));
        }
    }

    void load(std::size_t plate, const float* from) override {
        copy_and_wait(*plates_[plate], plates_[plate]->memory.get(), from);
    }

    std::vector<float> step() override {
        for (std::size_t plate = 0; plate < plates_.size(); ++plate)
            queue_step(plate);
        for (const auto& plate : plates_)
            CUDA_CHECK(cudaStreamSynchronize(plate->stream));
        return {largest_.get(), largest_.get() + plates_.size()};
    }

    void snapshot(std::size_t plate, float* to, cudaStream_t stream) override {
        const Plate& from = *plates_[plate];
        const DeviceGuard guard(from.stream.device());
        const Event copied(cudaEventDisableTiming);
        PoolArray copy(cells(), from.stream);
        CUDA_CHECK(cudaMemcpyAsync(copy.get(), from.memory.get(), bytes(), cudaMemcpyDeviceToDevice,
                                   from.stream));
        CUDA_CHECK(cudaEventRecord(copied, from.stream));
        CUDA_CHECK(cudaStreamWaitEvent(stream, copied, 0));
        copy.hand_over_to(stream);
        CUDA_CHECK(cudaMemcpyAsync(to, copy.get(), bytes(), cudaMemcpyDeviceToHost, stream));
    }

    void store(std::size_t plate, float* to) override {
        const Stream& stream = plates_[plate]->stream;
        const DeviceGuard guard(stream.device());
        CUDA_CHECK(
            cudaMemcpyAsync(to, plates_[plate]->memory.get(), cells(), cudaMemcpyDefault, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
    }

    float difference(std::size_t plate, std::size_t other) override {
        const Stream& stream = plates_[plate]->stream;
        const DeviceGuard guard(stream.device());
        const PoolArray largest(1, stream);
        CUDA_CHECK(cudaMemsetAsync(largest.get(), 0, sizeof(float), stream));
        compare<<<blocks, threads, 0, stream>>>(
            plates_[plate]->memory.get(), plates_[other]->memory.get(), cells(), largest.get());
        CUDA_CHECK(cudaGetLastError());
        bring_back(largest.get(), plate);
        CUDA_CHECK(cudaStreamSynchronize(stream));
        return largest_[plate];
    }

private:
    std::size_t cells() const { return width_ * width_; }
    std::size_t bytes() const { return cells() * sizeof(float); }

    void copy_and_wait(const Plate& plate, float* to, const float* from) const {
        const DeviceGuard guard(plate.stream.device());
        CUDA_CHECK(cudaMemcpyAsync(to, from, bytes(), cudaMemcpyDefault, plate.stream));
        CUDA_CHECK(cudaStreamSynchronize(plate.stream));
    }

    void queue_step(std::size_t plate) {
        const Stream& stream = plates_[plate]->stream;
        float* cells_on_gpu = plates_[plate]->memory.get();
        const DeviceGuard guard(stream.device());
        const PoolArray change(cells(), stream);
        const PoolArray largest(1, stream);
        CUDA_CHECK(cudaMemsetAsync(largest.get(), 0, sizeof(float), stream));
        find_change<<<blocks, threads, 0, stream>>>(cells_on_gpu, change.get(), width_);
        add_change<<<blocks, threads, 0, stream>>>(cells_on_gpu, change.get(), cells(),
                                                   largest.get());
        CUDA_CHECK(cudaGetLastError());
        bring_back(largest.get(), plate);
    }

    void bring_back(const float* largest, std::size_t plate) {
        CUDA_CHECK(cudaMemcpyAsync(&largest_[plate], largest, sizeof(float), cudaMemcpyDeviceToHost,
                                   plates_[plate]->stream));
    }

    std::size_t width_;
    HostArray largest_;
    std::vector<std::unique_ptr<Plate>> plates_;
};

} // namespace

std::unique_ptr<lesson::HeatSolver> lesson::make_heat_solver(const std::vector<int>& devices,
                                                             std::size_t width) {
    return std::make_unique<Solver>(devices, width);
}
