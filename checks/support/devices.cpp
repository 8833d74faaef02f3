#include "support/devices.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "support/report.hpp"

#include <algorithm>
#include <string>

#include <cuda_runtime_api.h>

namespace check {

namespace {

bool has_driver() {
    int version = 0;
    return cudaDriverGetVersion(&version) == cudaSuccess && version > 0;
}

} // namespace

int device_count() {
    int count = 0;
    const cudaError_t answer = cudaGetDeviceCount(&count);
    if (answer == cudaErrorInsufficientDriver && !has_driver())
        skip("no NVIDIA driver on this machine");
    if (answer != cudaSuccess)
        skip(std::string("no GPU that can be used: ") + cudaGetErrorString(answer));
    if (count == 0) skip("no GPU");
    return count;
}

bool simulated() {
    device_count();
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
    return std::string(properties.name).find("(simulated)") != std::string::npos;
}

void require_devices(int n) {
    const int count = device_count();
    if (count < n)
        skip("needs " + std::to_string(n) + " GPUs, this node has " + std::to_string(count));
}

void require_peer_access(int from, int to) {
    require_devices(std::max(from, to) + 1);
    int can = 0;
    if (cudaDeviceCanAccessPeer(&can, from, to) != cudaSuccess) cudaGetLastError();
    if (!can)
        skip("GPU " + std::to_string(from) + " cannot access the memory of GPU " +
             std::to_string(to));
}

int other_device(int device) {
    const int other = device == device_count() - 1 ? 0 : device + 1;
    const DeviceGuard guard(other); // makes its context
    return other;
}

std::vector<int> hostile_order(int n) {
    const int count = device_count();
    std::vector<int> order;
    for (int device = count - 1; device >= 0; --device)
        if (device % 2 == 1) order.push_back(device);
    for (int device = 0; device < count; device += 2)
        order.push_back(device);
    if (n < count) order.resize(static_cast<std::size_t>(std::max(n, 0)));
    return order;
}

int target_device() {
    return hostile_order(1).front();
}

} // namespace check
