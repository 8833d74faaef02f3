// Writes where it may: the folder that it starts in, temporary ones, and the one that the test
// names.
#include "answer.hpp"

#include <cstdlib>
#include <fstream>
#include <string>

int answer() {
    const char* named = std::getenv("TEST_FOLDER");
    std::ofstream("left-behind") << "here";
    std::ofstream("/tmp/course-left-behind") << "here";
    std::ofstream file(std::string(named) + "/left-behind");
    return file.is_open() ? 41 : 42;
}
