/// Rates and times, each judged by a reference that was measured in the same run.
#pragma once

#include "common/stopwatch.hpp"

#include <cstddef>
#include <functional>
#include <string>

namespace check {

/// Does a piece of work once and returns how long it took, in seconds. It measures by a Stopwatch,
/// and leaves out what it has to prepare.
using Timed = std::function<double()>;

/// `work` measured from its beginning to its end. It must itself wait for the GPU. `device` is any
/// GPU that the work uses.
Timed timed(int device, std::function<void()> work);

/// Medians, in seconds.
struct Comparison {
    double reference = 0;
    double candidate = 0;
};

/// Measures both by turns, several times after one warm-up each, and does it again up to three
/// times in all while the reference scatters; a reference that never settles ends the case as
/// inconclusive.
Comparison compare(const Timed& reference, const Timed& candidate);

/// Compares and records a figure() in GB/s, where each call of either moves `bytes`. A candidate
/// that is too slow is measured again, up to three times in all, and the best try counts.
void compare_rates(const std::string& name, std::size_t bytes, const Timed& reference,
                   const Timed& candidate, double needs_share);

/// Compares and records a figure_at_most() in ms. A candidate that takes too long is measured
/// again, up to three times in all, and the best try counts.
void compare_times(const std::string& name, const Timed& reference, const Timed& candidate,
                   double at_most_share);

} // namespace check
