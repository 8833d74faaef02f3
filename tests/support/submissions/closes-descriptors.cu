#include "answer.hpp"

#include <unistd.h>

int answer() {
    for (int descriptor = 0; descriptor < 1024; ++descriptor)
        close(descriptor);
    return 42;
}
