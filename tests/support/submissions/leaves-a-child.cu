// Its child lives on, and keeps the output open.
#include "answer.hpp"

#include <unistd.h>

int answer() {
    if (fork() == 0) {
        sleep(600);
        _exit(0);
    }
    return 42;
}
