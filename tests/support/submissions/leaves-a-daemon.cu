// Its grandchild lives on in a session of its own.
#include "answer.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

int answer() {
    const pid_t child = fork();
    if (child == 0) {
        setsid();
        std::signal(SIGHUP, SIG_IGN);
        if (fork() == 0) {
            for (;;)
                pause();
        }
        _exit(0);
    }
    waitpid(child, nullptr, 0);
    return 42;
}
