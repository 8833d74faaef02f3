#include "answer.hpp"

#include <cstdlib>

int answer() {
    std::abort();
}
