#include "node/timeline.hpp"

#include <algorithm>
#include <vector>

namespace sim {
namespace {

// Below this speed an operation waits: sums of fractions are not exact, and a transfer that
// trickles at a thousandth of its rate would split the timeline for nothing.
constexpr double least_speed = 0.02;
constexpr std::size_t most_segments = 8192;

double speed_at(double time, std::span<const Demand> demands) {
    double speed = 1;
    for (const Demand& demand : demands)
        speed = std::min(speed, demand.timeline->free_at(time) / demand.fraction);
    return speed < least_speed ? 0 : speed;
}

double next_change(double time, std::span<const Demand> demands) {
    double next = never;
    for (const Demand& demand : demands)
        next = std::min(next, demand.timeline->next_change(time));
    return next;
}

} // namespace

double Timeline::free_at(double time) const {
    if (time < horizon_) return 0;
    return std::clamp(1 - std::prev(used_.upper_bound(std::max(time, 0.0)))->second, 0.0, 1.0);
}

double Timeline::next_change(double time) const {
    if (time < horizon_) return horizon_;
    auto next = used_.upper_bound(time);
    return next == used_.end() ? never : next->first;
}

std::map<double, double>::iterator Timeline::split(double time) {
    auto after = used_.upper_bound(time);
    return used_.emplace_hint(after, time, std::prev(after)->second);
}

void Timeline::use(double begin, double end, double fraction) {
    if (end <= begin) return;
    auto first = split(begin);
    auto last = split(end);
    for (auto segment = first; segment != last; ++segment)
        segment->second += fraction;
    // An equal neighbour in front carries no information.
    if (first != used_.begin() && std::prev(first)->second == first->second) used_.erase(first);
    forget_oldest();
}

void Timeline::forget_oldest() {
    if (used_.size() <= most_segments) return;
    auto keep = std::next(used_.begin(), most_segments / 2);
    horizon_ = keep->first;
    // The entry at zero stays, so that every time has one in front of it.
    used_.erase(std::next(used_.begin()), keep);
}

Slot reserve(double ready, double duration, std::span<const Demand> demands) {
    double now = ready;
    double left = duration;
    double begin = never;
    while (left > 0) {
        const double speed = speed_at(now, demands);
        const double change = next_change(now, demands);
        if (speed == 0) {
            now = change;
            continue;
        }
        begin = std::min(begin, now);
        const double end = std::min(change, now + left / speed);
        if (end <= now) break; // what is left is less than time can tell apart
        for (const Demand& demand : demands)
            demand.timeline->use(now, end, speed * demand.fraction);
        left -= (end - now) * speed;
        if (end < change) left = 0;
        now = end;
    }
    return {std::min(begin, now), now};
}

double first_free(const Timeline& timeline, double ready, double fraction) {
    double now = std::max(ready, timeline.horizon());
    while (timeline.free_at(now) < fraction)
        now = timeline.next_change(now);
    return now;
}

} // namespace sim
