#pragma once

#include "common/cuda_check.hpp"

/// Makes a GPU the calling thread's current device, and puts the former one back at the end of the
/// scope.
class DeviceGuard {
public:
    explicit DeviceGuard(int device) {
        CUDA_CHECK(cudaGetDevice(&former_));
        CUDA_CHECK(cudaSetDevice(device));
    }
    ~DeviceGuard() { cudaSetDevice(former_); }

    DeviceGuard(const DeviceGuard&) = delete;
    DeviceGuard& operator=(const DeviceGuard&) = delete;

private:
    int former_ = 0;
};
