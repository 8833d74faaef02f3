// Who uses how much of an engine or a link, and when. Virtual time, in nanoseconds.
#pragma once

#include <limits>
#include <map>
#include <span>

namespace sim {

inline constexpr double never = std::numeric_limits<double>::infinity();

/// The used fraction (0 to 1) of one resource over time. A resource can be used in the past: a
/// thread whose clock is behind finds the gaps that others left.
class Timeline {
public:
    /// Unused fraction at `time`.
    double free_at(double time) const;
    /// First time after `time` at which the used fraction changes; `never` when it does not.
    double next_change(double time) const;
    /// Uses `fraction` from `begin` to `end`.
    void use(double begin, double end, double fraction);
    /// Nothing can be used before this time any more.
    double horizon() const { return horizon_; }
    std::size_t segments() const { return used_.size(); }

private:
    std::map<double, double>::iterator split(double time);
    void forget_oldest();

    std::map<double, double> used_{{0.0, 0.0}}; // from this time on, this fraction
    double horizon_ = 0;
};

/// What an operation needs of one resource while it runs at full speed.
struct Demand {
    Timeline* timeline = nullptr;
    double fraction = 0;
};

struct Slot {
    double begin = 0;
    double end = 0;
};

/// Where an operation that would take `duration` alone runs from `ready` on: at every moment at
/// the speed that the scarcest of its resources still allows. Earlier reservations keep what they
/// have. Records the use. No two demands may name the same timeline.
Slot reserve(double ready, double duration, std::span<const Demand> demands);

/// First time from `ready` on at which at least `fraction` of a resource is free.
double first_free(const Timeline& timeline, double ready, double fraction);

} // namespace sim
