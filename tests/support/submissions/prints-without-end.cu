#include "answer.hpp"

#include <cstdio>

int answer() {
    for (;;)
        std::puts("It is right. It is right. It is right. It is right. It is right. It is right.");
}
