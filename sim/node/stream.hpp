// Streams and events: what orders work.
#pragma once

#include "node/engine.hpp"
#include "node/graph.hpp"

#include <cstdint>

namespace sim {

class Device;

/// A queue of work of one device. It knows only its last operation; the rest hangs on that.
struct Stream {
    Device* device = nullptr;
    std::uint64_t id = 0;
    unsigned flags = 0;
    int priority = 0;
    bool legacy = false;                   // the default stream that waits for all blocking streams
    bool of_thread = false;                // a thread's own default stream
    bool blocking = true;                  // waits for the legacy default stream and it for this
    OperationPtr tail;                     // last operation issued, null before the first
    std::shared_ptr<Capture> capture;      // the graph that it fills instead of working
    std::vector<GraphNode*> capture_after; // what the next node of that graph waits for
};

/// A point in a stream.
struct Event {
    Device* device = nullptr;
    unsigned flags = 0;
    bool timed = true;
    OperationPtr record;                   // the last record, null before the first
    std::shared_ptr<Capture> capture;      // the last record was captured
    std::vector<GraphNode*> capture_after; // and this is what it stands behind
};

} // namespace sim
