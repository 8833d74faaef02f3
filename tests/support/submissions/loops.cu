#include "answer.hpp"

int answer() {
    for (volatile int turns = 0;; turns = turns + 1) {
    }
}
