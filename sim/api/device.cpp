// Devices: choosing, asking, waiting, resetting.
#include "api/call.hpp"

#include <cstdio>
#include <cstring>

using namespace sim;
using namespace sim::api;

namespace {

constexpr int warp_size = 32;
constexpr int most_threads = 1024;
constexpr std::size_t default_shared_bytes = 48 << 10;
constexpr int registers_per_block = 65536;
constexpr std::size_t constant_bytes = 64 << 10;
constexpr std::size_t alignment = 512;
constexpr std::size_t most_pitch = 2147483647;

int bus_number(int device) {
    return first_bus + device;
}

void fill_properties(const NodeFile& file, int device, cudaDeviceProp& p) {
    const GpuFigures& gpu = file.gpu;
    std::snprintf(p.name, sizeof p.name, "%s", gpu.name.c_str());
    std::memset(p.uuid.bytes, device + 1, sizeof p.uuid.bytes);
    p.totalGlobalMem = gpu.memory_bytes;
    p.sharedMemPerBlock = default_shared_bytes;
    p.sharedMemPerBlockOptin = gpu.shared_per_block_optin_bytes;
    p.sharedMemPerMultiprocessor = gpu.shared_per_multiprocessor_bytes;
    p.reservedSharedMemPerBlock = reserved_shared_bytes;
    p.regsPerBlock = registers_per_block;
    p.regsPerMultiprocessor = registers_per_block;
    p.warpSize = warp_size;
    p.memPitch = most_pitch;
    p.maxThreadsPerBlock = most_threads;
    p.maxThreadsDim[0] = p.maxThreadsDim[1] = most_threads;
    p.maxThreadsDim[2] = 64;
    p.maxGridSize[0] = 0x7fffffff;
    p.maxGridSize[1] = p.maxGridSize[2] = 65535;
    p.totalConstMem = constant_bytes;
    p.major = gpu.compute_major;
    p.minor = gpu.compute_minor;
    p.textureAlignment = p.surfaceAlignment = alignment;
    p.texturePitchAlignment = warp_size;
    p.multiProcessorCount = gpu.multiprocessors;
    p.canMapHostMemory = 1;
    p.concurrentKernels = 1;
    p.pciBusID = bus_number(device);
    p.asyncEngineCount = gpu.copy_engines;
    p.unifiedAddressing = 1;
    p.l2CacheSize = static_cast<int>(gpu.l2_bytes);
    p.maxThreadsPerMultiProcessor = gpu.threads_per_multiprocessor;
    p.maxBlocksPerMultiProcessor = gpu.blocks_per_multiprocessor;
    p.streamPrioritiesSupported = 1;
    p.globalL1CacheSupported = p.localL1CacheSupported = 1;
    p.managedMemory = 1;
    p.concurrentManagedAccess = 1;
    p.computePreemptionSupported = 1;
    p.canUseHostPointerForRegisteredMem = 1;
    p.cooperativeLaunch = 1;
    p.hostRegisterSupported = 1;
    p.memoryPoolsSupported = 1;
}

/// Answers `attribute`; false when this node has no figure for it.
bool find_attribute(const NodeFile& file, int device, cudaDeviceAttr attribute, int& value) {
    cudaDeviceProp p{};
    fill_properties(file, device, p);
    const auto as_int = [](std::size_t bytes) { return static_cast<int>(bytes); };
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
        value = p.maxThreadsPerBlock;
        return true;
    case cudaDevAttrMaxBlockDimX:
        value = p.maxThreadsDim[0];
        return true;
    case cudaDevAttrMaxBlockDimY:
        value = p.maxThreadsDim[1];
        return true;
    case cudaDevAttrMaxBlockDimZ:
        value = p.maxThreadsDim[2];
        return true;
    case cudaDevAttrMaxGridDimX:
        value = p.maxGridSize[0];
        return true;
    case cudaDevAttrMaxGridDimY:
        value = p.maxGridSize[1];
        return true;
    case cudaDevAttrMaxGridDimZ:
        value = p.maxGridSize[2];
        return true;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        value = as_int(p.sharedMemPerBlock);
        return true;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        value = as_int(p.sharedMemPerBlockOptin);
        return true;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        value = as_int(p.sharedMemPerMultiprocessor);
        return true;
    case cudaDevAttrReservedSharedMemoryPerBlock:
        value = reserved_shared_bytes;
        return true;
    case cudaDevAttrTotalConstantMemory:
        value = as_int(p.totalConstMem);
        return true;
    case cudaDevAttrWarpSize:
        value = warp_size;
        return true;
    case cudaDevAttrMaxPitch:
        value = as_int(p.memPitch);
        return true;
    case cudaDevAttrMaxRegistersPerBlock:
        value = registers_per_block;
        return true;
    case cudaDevAttrMaxRegistersPerMultiprocessor:
        value = registers_per_block;
        return true;
    case cudaDevAttrClockRate:
        value = as_int(file.gpu.clock_mhz * 1e3);
        return true; // kHz
    case cudaDevAttrTextureAlignment:
        value = as_int(p.textureAlignment);
        return true;
    case cudaDevAttrMultiProcessorCount:
        value = p.multiProcessorCount;
        return true;
    case cudaDevAttrPciBusId:
        value = p.pciBusID;
        return true;
    case cudaDevAttrL2CacheSize:
        value = p.l2CacheSize;
        return true;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        value = p.maxThreadsPerMultiProcessor;
        return true;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
        value = p.maxBlocksPerMultiProcessor;
        return true;
    case cudaDevAttrAsyncEngineCount:
        value = p.asyncEngineCount;
        return true;
    case cudaDevAttrComputeCapabilityMajor:
        value = p.major;
        return true;
    case cudaDevAttrComputeCapabilityMinor:
        value = p.minor;
        return true;
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrComputePreemptionSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrMemoryPoolsSupported:
        value = 1;
        return true;
    case cudaDevAttrKernelExecTimeout:
    case cudaDevAttrIntegrated:
    case cudaDevAttrComputeMode:
    case cudaDevAttrEccEnabled:
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId:
    case cudaDevAttrTccDriver:
    case cudaDevAttrIsMultiGpuBoard:
    case cudaDevAttrMultiGpuBoardGroupID:
    case cudaDevAttrHostNativeAtomicSupported:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
    case cudaDevAttrDirectManagedMemAccessFromHost:
    case cudaDevAttrHostRegisterReadOnlySupported:
    case cudaDevAttrMemoryPoolSupportedHandleTypes:
    case cudaDevAttrMpsEnabled:
        value = 0;
        return true;
    default:
        return false;
    }
}

} // namespace

cudaError_t cudaGetDeviceCount(int* count) {
    return host_call([&](Call& call) {
        if (!count) return cudaErrorInvalidValue;
        *count = call.node.file.gpus;
        return cudaSuccess;
    });
}

cudaError_t cudaSetDevice(int device) {
    return host_call([&](Call& call) {
        Device* found = call.node.device(device);
        if (!found) return cudaErrorInvalidDevice;
        call.thread.device = device;
        // Since CUDA 12 this call makes the context. A dead one is found out by the next call.
        if (found->sticky == 0 && !found->lost) return use_context(call, *found);
        return cudaSuccess;
    });
}

cudaError_t cudaInitDevice(int device, unsigned int, unsigned int) {
    return host_call([&](Call& call) {
        Device* found = call.node.device(device);
        return found ? use_context(call, *found) : cudaErrorInvalidDevice;
    });
}

cudaError_t cudaGetDevice(int* device) {
    return host_call([&](Call& call) {
        if (!device) return cudaErrorInvalidValue;
        *device = call.thread.device;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    return host_call([&](Call& call) {
        if (!properties) return cudaErrorInvalidValue;
        if (!call.node.device(device)) return cudaErrorInvalidDevice;
        *properties = {};
        fill_properties(call.node.file, device, *properties);
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    return host_call([&](Call& call) {
        if (!value) return cudaErrorInvalidValue;
        if (!call.node.device(device)) return cudaErrorInvalidDevice;
        if (attribute <= 0 || attribute >= cudaDevAttrMax) return cudaErrorInvalidValue;
        if (find_attribute(call.node.file, device, attribute, *value)) return cudaSuccess;
        *value = 0; // a feature or a limit of something that is not simulated
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
    return host_call([&](Call& call) {
        if (!text || length <= 0) return cudaErrorInvalidValue;
        if (!call.node.device(device)) return cudaErrorInvalidDevice;
        std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0",
                      static_cast<unsigned>(bus_number(device)));
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSynchronize() {
    return device_call([](Call& call) {
        if (cudaError_t error = not_while_capturing(call)) return error;
        call.node.wait(call.device(), call.thread, call.lock);
        after_synchronization(call, call.device());
        return state_of(call.device());
    });
}

cudaError_t cudaDeviceReset() {
    return host_call([](Call& call) {
        Device& device = call.device();
        call.node.wait(device, call.thread, call.lock);
        call.node.remove_streams_and_events(device);
        device.clear();
        // A context that died of an error is not replaced in the same process.
        device.lost = device.lost || device.sticky != 0;
        device.sticky = 0;
        device.context = false;
        return cudaSuccess;
    });
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
    return host_call([&](Call& call) {
        if (flags & ~static_cast<unsigned>(cudaDeviceMask)) return cudaErrorInvalidValue;
        call.device().flags = flags;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
    return host_call([&](Call& call) {
        if (!flags) return cudaErrorInvalidValue;
        *flags = call.device().flags | cudaDeviceMapHost;
        return cudaSuccess;
    });
}

// The driver of the simulated node has the version of the toolkit that it was built with.
cudaError_t cudaDriverGetVersion(int* version) {
    return host_call([&](Call&) {
        if (!version) return cudaErrorInvalidValue;
        *version = CUDART_VERSION;
        return cudaSuccess;
    });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
    return cudaDriverGetVersion(version);
}

cudaError_t cudaProfilerStart() {
    return device_call([](Call&) { return cudaSuccess; });
}

cudaError_t cudaProfilerStop() {
    return device_call([](Call&) { return cudaSuccess; });
}
