// Catch2's program, the same with version 2 and 3.
#define CATCH_CONFIG_RUNNER
#include "support/catch.hpp"

int main(int count, char** arguments) {
    return Catch::Session().run(count, arguments);
}
