#include "support/catch.hpp"

#include "node/timeline.hpp"

#include <vector>

using namespace sim;

namespace {

Slot reserve_alone(Timeline& timeline, double ready, double duration, double fraction = 1) {
    const std::vector<Demand> demands{{&timeline, fraction}};
    return reserve(ready, duration, demands);
}

} // namespace

TEST_CASE("a free resource is used at once") {
    Timeline engine;
    const Slot slot = reserve_alone(engine, 100, 50);
    CHECK(slot.begin == 100);
    CHECK(slot.end == 150);
    CHECK(engine.free_at(120) == 0);
    CHECK(engine.free_at(150) == 1);
}

TEST_CASE("two copies on one engine follow each other") {
    Timeline engine;
    reserve_alone(engine, 0, 100);
    const Slot second = reserve_alone(engine, 10, 100);
    CHECK(second.begin == 100);
    CHECK(second.end == 200);
}

TEST_CASE("a gap before later work is used") {
    Timeline engine;
    reserve_alone(engine, 1000, 100);
    const Slot early = reserve_alone(engine, 0, 200);
    CHECK(early.begin == 0);
    CHECK(early.end == 200);
}

TEST_CASE("work that does not fit into a gap goes on behind it") {
    Timeline engine;
    reserve_alone(engine, 100, 100);
    const Slot split = reserve_alone(engine, 50, 80);
    CHECK(split.begin == 50);
    CHECK(split.end == 230); // 50 in front, 30 behind
}

TEST_CASE("kernels that need half of the GPU run beside each other") {
    Timeline compute;
    reserve_alone(compute, 0, 100, 0.5);
    const Slot beside = reserve_alone(compute, 0, 100, 0.5);
    CHECK(beside.end == 100);
    const Slot third = reserve_alone(compute, 0, 100, 0.5);
    CHECK(third.begin == 100);
}

TEST_CASE("the scarcest resource sets the speed") {
    Timeline engine, link;
    reserve_alone(link, 0, 1000, 0.75);
    const std::vector<Demand> demands{{&engine, 1}, {&link, 1}};
    const Slot slow = reserve(0, 100, demands);
    CHECK(slow.end == Approx(400)); // a quarter of the link is left
    CHECK(engine.free_at(200) == Approx(0.75));
}

TEST_CASE("work without demands takes its own time") {
    const Slot slot = reserve(5, 10, {});
    CHECK(slot.begin == 5);
    CHECK(slot.end == 15);
}

TEST_CASE("work of no length takes no time and leaves no trace") {
    Timeline engine;
    const Slot slot = reserve_alone(engine, 7, 0);
    CHECK(slot.begin == 7);
    CHECK(slot.end == 7);
    CHECK(engine.segments() == 1);
}

TEST_CASE("a long history is forgotten from its beginning") {
    Timeline engine;
    for (int i = 0; i < 20000; ++i)
        reserve_alone(engine, 10.0 * i, 5);
    CHECK(engine.segments() < 10000);
    CHECK(engine.horizon() > 0);
    // What is forgotten can be used by nobody: it is not known to be free.
    CHECK(reserve_alone(engine, 0, 1).begin >= engine.horizon());
    CHECK(first_free(engine, 0, 0.5) >= engine.horizon());
}
