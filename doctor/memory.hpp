// Memory that the doctor measures with, and the pattern by which it knows its bytes again.
#pragma once

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace doctor {

struct FreeDevice {
    void operator()(char* memory) const { cudaFree(memory); }
};
struct FreePinned {
    void operator()(char* memory) const { cudaFreeHost(memory); }
};
using DeviceMemory = std::unique_ptr<char, FreeDevice>;
using PinnedMemory = std::unique_ptr<char, FreePinned>;

inline DeviceMemory device_memory(int device, std::size_t bytes) {
    const DeviceGuard guard(device);
    void* memory = nullptr;
    CUDA_CHECK(cudaMalloc(&memory, bytes));
    return DeviceMemory(static_cast<char*>(memory));
}

inline PinnedMemory pinned_memory(std::size_t bytes) {
    void* memory = nullptr;
    CUDA_CHECK(cudaMallocHost(&memory, bytes));
    return PinnedMemory(static_cast<char*>(memory));
}

/// Fills memory of the host with words that depend on their place and on `id`, and do not repeat.
inline void write_pattern(char* memory, std::size_t bytes, std::uint64_t id) {
    auto* words = reinterpret_cast<std::uint64_t*>(memory);
    for (std::size_t i = 0; i < bytes / sizeof(std::uint64_t); ++i)
        words[i] = (i + 1) * 0x9E3779B97F4A7C15ULL ^ id << 32;
}

inline bool has_pattern(const char* memory, std::size_t bytes, std::uint64_t id) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(memory);
    for (std::size_t i = 0; i < bytes / sizeof(std::uint64_t); ++i) {
        if (words[i] != ((i + 1) * 0x9E3779B97F4A7C15ULL ^ id << 32)) return false;
    }
    return true;
}

} // namespace doctor
