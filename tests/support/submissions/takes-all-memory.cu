// Is given 42 only where nothing limits it: hardly any of it is touched, so that this does no harm.
#include "answer.hpp"

#include <cstddef>

int answer() {
    constexpr std::size_t block = std::size_t{1} << 30;
    for (int blocks = 0; blocks < 4096; ++blocks) {
        volatile char* memory = new char[block];
        memory[0] = 1;
    }
    return 42;
}
