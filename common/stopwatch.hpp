#pragma once

#include "common/device_guard.hpp"
#include "common/event.hpp"
#include "common/stream.hpp"

/// Measures the time between two points of a host program, as a wall clock would, by events in an
/// empty stream of one GPU. Unlike a clock of the C++ library it also works on the simulated node,
/// whose time is virtual. Work of the GPU counts only as far as the host has waited for it.
class Stopwatch {
public:
    explicit Stopwatch(int device) : clock_(make_clock(device)) { restart(); }

    void restart() { CUDA_CHECK(cudaEventRecord(clock_.start, clock_.stream)); }

    /// Seconds since construction or the last restart().
    double seconds() {
        float milliseconds = 0;
        CUDA_CHECK(cudaEventRecord(clock_.stop, clock_.stream));
        CUDA_CHECK(cudaEventSynchronize(clock_.stop));
        CUDA_CHECK(cudaEventElapsedTime(&milliseconds, clock_.start, clock_.stop));
        return milliseconds / 1e3;
    }

private:
    struct Clock {
        Stream stream;
        Event start, stop;
    };

    static Clock make_clock(int device) {
        const DeviceGuard guard(device);
        return Clock{};
    }

    Clock clock_;
};
