#include "answer.hpp"

int anwser() {
    return 42;
}
