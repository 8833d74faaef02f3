// Cases whose verdict is known, for test_runner.py.
#include "answer.hpp"

#include "support/catch.hpp"
#include "support/report.hpp"

TEST_CASE("the answer is right", "[pts:2]") {
    check::explain("answer() does not return 42.", "README.md");
    CHECK(answer() == 42);
    check::explain("Said after the failure.", "README.md");
}

TEST_CASE("nothing is asserted", "[pts:1]") {
    answer();
}

TEST_CASE("a case that is skipped", "[pts:1]") {
    check::skip("the machine lacks it");
}

TEST_CASE("a skip after a failure", "[pts:1]") {
    check::expect(false, "failed before");
    check::skip("the machine lacks it");
}

TEST_CASE("a case for a thousand GPUs", "[pts:1][gpus:1000]") {
    CHECK(answer() == 42);
}

TEST_CASE("a measurement that scatters", "[pts:1]") {
    check::inconclusive("too noisy");
}

TEST_CASE("a rate that is enough", "[pts:1]") {
    check::figure("upload", 50, 54.9, "GB/s", 0.85);
}

TEST_CASE("a rate that is too low", "[pts:1]") {
    check::figure("upload", 6.2, 54.9, "GB/s", 0.85);
}

TEST_CASE("a rate beyond the link", "[pts:1]") {
    check::figure("upload", 120, 54.9, "GB/s", 0.85);
}

TEST_CASE("a time that is too long", "[pts:1]") {
    check::figure_at_most("step", 3, 2, "ms", 1.2);
}

TEST_CASE("one GPU: names, with [marks] and *stars*", "[pts:1]") {
    CHECK(answer() == 42);
}
