// A fork bomb that stops at some hundreds, for the sake of the machine that tests it.
#include "answer.hpp"

#include <unistd.h>

int answer() {
    for (int generation = 0; generation < 8; ++generation) {
        if (fork() == 0 && generation % 2 == 0) setsid();
    }
    for (;;)
        pause();
}
