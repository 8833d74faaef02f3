#include "answer.hpp"

int answer() {
    return 42;
}
