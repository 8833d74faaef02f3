#include "support/delay.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"

#include <cstdint>

namespace {

__device__ std::uint64_t now_ns() {
    std::uint64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

__global__ void do_nothing_for(std::uint64_t ns) {
    const std::uint64_t end = now_ns() + ns;
    while (now_ns() < end)
        __nanosleep(10000);
}

} // namespace

void check::delay(int device, cudaStream_t stream, std::chrono::microseconds time) {
    const DeviceGuard guard(device);
    const auto ns = static_cast<std::uint64_t>(time.count()) * 1000;
    do_nothing_for<<<1, 1, 0, stream>>>(ns);
    CUDA_CHECK(cudaGetLastError());
}
