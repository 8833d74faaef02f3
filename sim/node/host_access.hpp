// What happens when the host program touches a device pointer.
#pragma once

namespace sim {

/// From now on such an access ends with a message that says whose memory it was. Other faults go
/// to the handler that was there before.
void watch_host_access();

} // namespace sim
