#include "answer.hpp"

namespace {

int deep(volatile int* above) {
    volatile int here[1024];
    here[0] = *above + 1;
    return deep(here) + here[0];
}

} // namespace

int answer() {
    volatile int start = 0;
    return deep(&start);
}
