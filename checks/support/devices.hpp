/// The GPUs of this node, and the orders in which mistakes show.
#pragma once

#include <limits>
#include <vector>

namespace check {

/// Skips the case when there is no driver or no GPU, so it is at least 1.
int device_count();

/// Whether the GPUs are those of the simulated node. Its time is exact, and every instruction costs
/// the CPU something: there, less work says as much.
bool simulated();

/// Skips the case unless the node has at least `n` GPUs.
void require_devices(int n);

/// Skips the case unless GPU `from` can access the memory of GPU `to`.
void require_peer_access(int from, int to);

/// A GPU that is not `device`; `device` itself where there is no other. It has its context, which
/// takes longer to make than the delays that checks put in front of work.
int other_device(int device);

/// Up to `n` different GPUs in an order that is not 0, 1, 2, and that does not start at 0 where
/// there is more than one: 1 0 on a node of two, 3 1 0 2 on a node of four.
std::vector<int> hostile_order(int n = std::numeric_limits<int>::max());

/// The first of hostile_order(): the GPU on which to check code that works on one.
int target_device();

} // namespace check
