#include "answer.hpp"

#include <stdexcept>

int answer() {
    throw std::runtime_error("no answer today");
}
