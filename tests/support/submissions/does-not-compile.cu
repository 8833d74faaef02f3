#include "answer.hpp"

int answer() {
    return forty_two;
}
