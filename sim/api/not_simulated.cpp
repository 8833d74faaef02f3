#include "api/not_simulated.hpp"

#include "api/call.hpp"

#include <cstdio>
#include <set>
#include <string>

namespace sim::api {

int not_simulated(const char* name) {
    return host_call([&](Call&) {
        static std::set<std::string> said; // guarded by the node's lock
        if (said.insert(name).second) std::fprintf(stderr, "sim: %s is not simulated\n", name);
        return cudaErrorNotSupported;
    });
}

} // namespace sim::api
