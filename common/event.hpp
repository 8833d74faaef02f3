#pragma once

#include "common/cuda_check.hpp"

#include <utility>

/// Owns an event of the device that was current at its construction.
class Event {
public:
    Event() : Event(cudaEventDefault) {}
    /// Pass cudaEventDisableTiming for an event that only orders work.
    explicit Event(unsigned flags) { CUDA_CHECK(cudaEventCreateWithFlags(&event_, flags)); }
    ~Event() {
        if (event_) cudaEventDestroy(event_);
    }

    Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    Event& operator=(Event&& other) noexcept {
        std::swap(event_, other.event_);
        return *this;
    }

    operator cudaEvent_t() const noexcept { return event_; }

private:
    cudaEvent_t event_ = nullptr;
};
