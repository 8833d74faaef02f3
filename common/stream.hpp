#pragma once

#include "common/cuda_check.hpp"

#include <utility>

/// Owns a stream of the device that was current at its construction. It does not wait for, nor is
/// waited for by, work in the default stream.
class Stream {
public:
    Stream() {
        CUDA_CHECK(cudaGetDevice(&device_));
        CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    }
    /// Does not wait for work that is left in the stream.
    ~Stream() {
        if (stream_) cudaStreamDestroy(stream_);
    }

    Stream(Stream&& other) noexcept
        : device_(other.device_), stream_(std::exchange(other.stream_, nullptr)) {}
    Stream& operator=(Stream&& other) noexcept {
        std::swap(device_, other.device_);
        std::swap(stream_, other.stream_);
        return *this;
    }

    operator cudaStream_t() const noexcept { return stream_; }
    int device() const noexcept { return device_; }

private:
    int device_ = 0;
    cudaStream_t stream_ = nullptr;
};
