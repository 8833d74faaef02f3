// The data paths of a machine.
#pragma once

#include "timing.hpp"

#include <optional>
#include <string>

namespace doctor {

/// Between the host and one GPU, and inside it. Rates in GB/s, 1e9 bytes.
struct GpuPaths {
    Figure h2d_pageable, d2h_pageable, h2d_pinned, d2h_pinned;
    Figure both_ways;                       ///< H2D and D2H pinned at once, bytes of both
    Figure zero_copy_read, zero_copy_write; ///< a kernel on mapped host memory
    Figure inside_copy, inside_kernel;      ///< bytes counted once
    double copy_alone = 0, kernel_alone = 0, copy_and_kernel = 0; ///< ms
    Figure malloc_and_free, pool_trimmed, pool_kept;              ///< us a step with 64 MiB
    double pool_cold = 0;                                         ///< us, the first step
    bool arrived = true; ///< every byte that was copied is right
};

/// From one GPU to another. What there is no way for is left out.
struct PairPaths {
    bool possible = false; ///< the driver offers peer access: `to` can read from `from`
    Figure copy_without_access;
    std::optional<Figure> copy_with_access, kernel_read, both_ways;
    Figure latency; ///< us of a copy of 4 bytes, one after the other
    std::string
        fault; ///< in which way wrong bytes came, or which call failed; empty when all is well
};

GpuPaths measure_gpu(int device);
PairPaths measure_pair(int from, int to);

} // namespace doctor
