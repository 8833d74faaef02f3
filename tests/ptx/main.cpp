#define CATCH_CONFIG_RUNNER
#include "support/catch.hpp"

int main(int count, char** arguments) {
    return Catch::Session().run(count, arguments);
}
