// Calls that the runtime has and the simulated node has not.
#pragma once

namespace sim::api {

/// Says once on stderr that `name` is not simulated; returns cudaErrorNotSupported.
int not_simulated(const char* name);

} // namespace sim::api
