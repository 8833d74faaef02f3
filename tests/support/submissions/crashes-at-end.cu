#include "answer.hpp"

#include <csignal>

namespace {

struct Guest {
    ~Guest() { std::raise(SIGSEGV); }
};

Guest guest;

} // namespace

int answer() {
    return 42;
}
