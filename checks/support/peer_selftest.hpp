/// Whether peer access does what the runtime says it can.
#pragma once

#include <string>

namespace check {

/// On some machines cudaDeviceCanAccessPeer says yes, every call succeeds, and other bytes arrive
/// (an IOMMU or PCIe access control in between). Reads and copies data between the two GPUs with
/// peer access, in each direction that there is, and says in one sentence what went wrong. Empty
/// when the bytes arrive, and where there is no peer access to test.
///
/// Closes the access that it opens: call it before the submission opens any. A GPU can be unusable
/// after a fault, so that skip() is all that is left.
std::string peer_fault(int one, int other);

} // namespace check
