// Limits and preferences of a device. They are remembered; nothing simulated depends on them.
#include "api/call.hpp"

#include <cstdio>

using namespace sim;
using namespace sim::api;

namespace {

constexpr std::size_t usual_stack_bytes = 1024;
constexpr std::size_t usual_printf_bytes = 8 << 20;
constexpr std::size_t usual_heap_bytes = 8 << 20;

std::size_t usual_limit(cudaLimit limit) {
    if (limit == cudaLimitStackSize) return usual_stack_bytes;
    if (limit == cudaLimitPrintfFifoSize) return usual_printf_bytes;
    if (limit == cudaLimitMallocHeapSize) return usual_heap_bytes;
    return 0;
}

} // namespace

cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value) {
    return device_call([&](Call& call) {
        if (limit < 0 || limit > cudaLimitPersistingL2CacheSize) return cudaErrorUnsupportedLimit;
        call.device().limits[limit] = value;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
    return device_call([&](Call& call) {
        if (!value) return cudaErrorInvalidValue;
        if (limit < 0 || limit > cudaLimitPersistingL2CacheSize) return cudaErrorUnsupportedLimit;
        const auto& limits = call.device().limits;
        auto set = limits.find(limit);
        *value = set == limits.end() ? usual_limit(limit) : set->second;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache preference) {
    return device_call([&](Call& call) {
        call.device().cache_preference = preference;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* preference) {
    return device_call([&](Call& call) {
        if (!preference) return cudaErrorInvalidValue;
        *preference = static_cast<cudaFuncCache>(call.device().cache_preference);
        return cudaSuccess;
    });
}

// Banks of four bytes, whatever is asked for: the width is fixed on all GPUs since Maxwell.
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
    return device_call([&](Call&) {
        const bool known =
            config >= cudaSharedMemBankSizeDefault && config <= cudaSharedMemBankSizeEightByte;
        return known ? cudaSuccess : cudaErrorInvalidValue;
    });
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
    return device_call([&](Call&) {
        if (!config) return cudaErrorInvalidValue;
        *config = cudaSharedMemBankSizeFourByte;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
    return host_call([&](Call& call) {
        if (!device || !text) return cudaErrorInvalidValue;
        unsigned domain = 0, bus = 0;
        if (std::sscanf(text, "%x:%x:", &domain, &bus) != 2 || domain != 0)
            return cudaErrorInvalidValue;
        const int index = static_cast<int>(bus) - first_bus;
        if (!call.node.device(index)) return cudaErrorInvalidDevice;
        *device = index;
        return cudaSuccess;
    });
}

// All devices of a node are alike, so the first one fits as well as any.
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* properties) {
    return host_call([&](Call&) {
        if (!device || !properties) return cudaErrorInvalidValue;
        *device = 0;
        return cudaSuccess;
    });
}
