/// Data that shows every mix-up: it depends on the position, has no period, and is new in each run.
#pragma once

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "support/report.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include <cuda_runtime_api.h>

namespace check {

/// The seed of this run, printed with a failure. CHECK_SEED=number in the environment repeats one.
std::uint64_t seed();

/// 64 well mixed bits for position `index` of data set `id`; they differ between runs.
std::uint64_t pattern_bits(std::uint64_t id, std::uint64_t index);

/// The value at `index` of data set `id`. Floating-point values are whole numbers from -2048 to
/// 2047, so that sums and differences of a few thousand of them are exact in a float.
template <class T> T pattern(std::uint64_t id, std::uint64_t index) {
    const std::uint64_t bits = pattern_bits(id, index);
    if constexpr (std::is_floating_point_v<T>) {
        return static_cast<T>(static_cast<int>(bits >> 52) - 2048);
    } else {
        return static_cast<T>(bits);
    }
}

/// Fills `n` elements of host memory with data set `id`.
template <class T> void fill_pattern(T* to, std::size_t n, std::uint64_t id) {
    for (std::size_t i = 0; i < n; ++i)
        to[i] = pattern<T>(id, i);
}

template <class T> std::vector<T> make_pattern(std::size_t n, std::uint64_t id) {
    std::vector<T> data(n);
    fill_pattern(data.data(), n, id);
    return data;
}

/// The byte that poisoned memory consists of: a float of such bytes is not a number, and so equals
/// nothing.
inline constexpr unsigned char poison_byte = 0xFF;
inline constexpr unsigned char guard_byte = 0xA7;
inline constexpr std::size_t guard_bytes = 4096;

/// Poisons `n` elements of host memory.
template <class T> void poison(T* to, std::size_t n) {
    if (n > 0) std::memset(static_cast<void*>(to), poison_byte, n * sizeof(T));
}

/// What differs between `n` elements got and expected, in one sentence: how many, the first index,
/// both values. Empty when all agree within `tolerance` (absolute).
template <class T>
std::string difference(const T* got, const T* expected, std::size_t n, double tolerance = 0) {
    std::size_t wrong = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const auto distance = static_cast<double>(got[i]) - static_cast<double>(expected[i]);
        const bool same =
            got[i] == expected[i] || (distance <= tolerance && -distance <= tolerance);
        if (same) continue;
        if (wrong++ == 0) first = i;
    }
    if (wrong == 0) return {};
    std::ostringstream text;
    text << wrong << " of " << n << " elements are wrong, the first at index " << first
         << ": expected " << +expected[first] << ", got " << +got[first];
    return text.str();
}

/// CHECKs that `n` elements are as expected; the report names the first that is not. Returns
/// whether they are.
template <class T>
bool same(const std::string& what, const T* got, const T* expected, std::size_t n,
          double tolerance = 0) {
    const std::string text = difference(got, expected, n, tolerance);
    return expect(text.empty(), what + ": " + text);
}

template <class T>
bool same(const std::string& what, const std::vector<T>& got, const std::vector<T>& expected,
          double tolerance = 0) {
    if (!expect(got.size() == expected.size(), what + ": expected " +
                                                   std::to_string(expected.size()) +
                                                   " elements, got " + std::to_string(got.size())))
        return false;
    return same(what, got.data(), expected.data(), got.size(), tolerance);
}

/// Describes the first byte that is not guard_byte; empty when there is none.
std::string damage(const unsigned char* zone, std::size_t bytes);

/// `n` poisoned elements of pageable host memory between two guard zones.
template <class T> class GuardedHost {
public:
    explicit GuardedHost(std::size_t n)
        : n_(n), bytes_(guard_bytes + n * sizeof(T) + guard_bytes, guard_byte) {
        poison(data(), n);
    }

    T* data() { return reinterpret_cast<T*>(bytes_.data() + guard_bytes); }
    const T* data() const { return reinterpret_cast<const T*>(bytes_.data() + guard_bytes); }
    std::size_t size() const { return n_; }

    /// CHECKs that nothing was written before or behind the elements.
    void check_guards(const std::string& what) const {
        const std::string before = damage(bytes_.data(), guard_bytes);
        expect(before.empty(), what + ": written before its beginning, " + before);
        const unsigned char* end = bytes_.data() + guard_bytes + n_ * sizeof(T);
        const std::string behind = damage(end, guard_bytes);
        expect(behind.empty(), what + ": written behind its end, " + behind);
    }

private:
    std::size_t n_;
    std::vector<unsigned char> bytes_;
};

/// `n` poisoned elements of GPU `device` between two guard zones.
template <class T> class GuardedDevice {
public:
    GuardedDevice(int device, std::size_t n) : device_(device), n_(n) {
        const DeviceGuard guard(device_);
        CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&memory_), bytes()));
        CUDA_CHECK(cudaMemset(memory_, guard_byte, bytes()));
        if (n_ > 0) CUDA_CHECK(cudaMemset(data(), poison_byte, n_ * sizeof(T)));
        CUDA_CHECK(cudaDeviceSynchronize());
    }
    /// With `from`, the elements are a copy of it.
    GuardedDevice(int device, const std::vector<T>& from) : GuardedDevice(device, from.size()) {
        const DeviceGuard guard(device_);
        CUDA_CHECK(
            cudaMemcpy(data(), from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaDeviceSynchronize());
    }
    ~GuardedDevice() {
        if (memory_) cudaFree(memory_);
    }

    GuardedDevice(GuardedDevice&& other) noexcept
        : device_(other.device_), n_(other.n_), memory_(other.memory_) {
        other.memory_ = nullptr;
    }
    GuardedDevice& operator=(GuardedDevice&&) = delete;

    T* data() { return reinterpret_cast<T*>(memory_ + guard_bytes); }
    const T* data() const { return reinterpret_cast<const T*>(memory_ + guard_bytes); }
    std::size_t size() const { return n_; }
    int device() const { return device_; }

    /// The elements, read by the GPU that owns them. Waits for that GPU.
    std::vector<T> read() const {
        std::vector<T> elements(n_);
        copy_out(elements.data(), data(), n_ * sizeof(T));
        return elements;
    }

    /// CHECKs that nothing was written before or behind the elements. Waits for the GPU.
    void check_guards(const std::string& what) const {
        std::vector<unsigned char> zone(guard_bytes);
        copy_out(zone.data(), memory_, guard_bytes);
        const std::string before = damage(zone.data(), guard_bytes);
        expect(before.empty(), what + ": written before its beginning, " + before);
        copy_out(zone.data(), memory_ + guard_bytes + n_ * sizeof(T), guard_bytes);
        const std::string behind = damage(zone.data(), guard_bytes);
        expect(behind.empty(), what + ": written behind its end, " + behind);
    }

private:
    std::size_t bytes() const { return guard_bytes + n_ * sizeof(T) + guard_bytes; }

    void copy_out(void* to, const void* from, std::size_t bytes) const {
        const DeviceGuard guard(device_);
        CUDA_CHECK(cudaDeviceSynchronize());
        CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
    }

    int device_;
    std::size_t n_;
    unsigned char* memory_ = nullptr;
};

} // namespace check
