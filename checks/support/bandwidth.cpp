#include "support/bandwidth.hpp"

#include "support/devices.hpp"
#include "support/report.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace check {

namespace {

constexpr int rounds_on_gpus = 5;
constexpr int tries_on_gpus = 3;
constexpr double tolerated_scatter = 0.25;

double median(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

/// How far the middle half of the times is apart, as a share of the median.
double scatter(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    const std::size_t quarter = times.size() / 4;
    return (times[times.size() - 1 - quarter] - times[quarter]) / times[times.size() / 2];
}

std::optional<Comparison> compare_once(const Timed& reference, const Timed& candidate) {
    reference();
    candidate();
    std::vector<double> of_reference;
    std::vector<double> of_candidate;
    const int rounds = simulated() ? 1 : rounds_on_gpus;
    for (int round = 0; round < rounds; ++round) {
        of_reference.push_back(reference());
        of_candidate.push_back(candidate());
    }
    if (scatter(of_reference) > tolerated_scatter) return std::nullopt;
    return Comparison{median(of_reference), median(of_candidate)};
}

/// The try in which the candidate did best beside its reference. Ends early once it is `enough`.
template <class Enough>
Comparison best_of_tries(const Timed& reference, const Timed& candidate, Enough enough) {
    std::optional<Comparison> best;
    const int tries = simulated() ? 1 : tries_on_gpus;
    for (int attempt = 0; attempt < tries; ++attempt) {
        const std::optional<Comparison> now = compare_once(reference, candidate);
        if (!now) continue;
        const bool better =
            !best || now->candidate * best->reference < best->candidate * now->reference;
        if (better) best = now;
        if (enough(*best)) break;
    }
    if (!best)
        inconclusive("the reference itself scatters by more than " +
                     std::to_string(static_cast<int>(tolerated_scatter * 100)) + " %");
    return *best;
}

} // namespace

Timed timed(int device, std::function<void()> work) {
    return [clock = std::make_shared<Stopwatch>(device), work = std::move(work)] {
        clock->restart();
        work();
        return clock->seconds();
    };
}

Comparison compare(const Timed& reference, const Timed& candidate) {
    return best_of_tries(reference, candidate, [](const Comparison&) { return true; });
}

void compare_rates(const std::string& name, std::size_t bytes, const Timed& reference,
                   const Timed& candidate, double needs_share) {
    const Comparison best = best_of_tries(reference, candidate, [&](const Comparison& now) {
        return now.reference >= needs_share * now.candidate;
    });
    const double gigabytes = static_cast<double>(bytes) / 1e9;
    figure(name, gigabytes / best.candidate, gigabytes / best.reference, "GB/s", needs_share);
}

void compare_times(const std::string& name, const Timed& reference, const Timed& candidate,
                   double at_most_share) {
    const Comparison best = best_of_tries(reference, candidate, [&](const Comparison& now) {
        return now.candidate <= at_most_share * now.reference;
    });
    figure_at_most(name, best.candidate * 1e3, best.reference * 1e3, "ms", at_most_share);
}

} // namespace check
