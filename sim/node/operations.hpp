// The kinds of work that streams hold.
#pragma once

#include "node/copy_path.hpp"
#include "node/kernel_memory.hpp"
#include "node/kernel_time.hpp"
#include "node/node.hpp"
#include "ptx/ptx.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sim {

/// Rows of `width` bytes; one row for an ordinary copy.
struct Rows {
    std::uint64_t width = 0;
    std::uint64_t height = 1;
    std::uint64_t destination_pitch = 0;
    std::uint64_t source_pitch = 0;
    std::uint64_t bytes() const { return width * height; }
};

/// Moves its bytes piece by piece while it runs: each is read when its time begins and written when
/// its time ends. Who does not wait sees old data, and so does a copy beside the work that it
/// needs.
class CopyOperation : public Operation {
public:
    CopyOperation(Node& node, Device& device, std::uint64_t destination, std::uint64_t source,
                  Rows rows);
    /// A copy whose source was read when the call was made.
    CopyOperation(Node& node, Device& device, std::uint64_t destination,
                  std::vector<std::byte> source);
    Progress advance(double now, Lock& lock) override;
    void finish() override;

private:
    /// Calls `part` with offsets in destination, source and piece, and a number of bytes, for each
    /// row's share of bytes [first, last), counted without the gaps between rows.
    template <class Part>
    void for_each_part(std::uint64_t first, std::uint64_t last, Part part) const;
    bool source_is_there();
    void read_piece();
    void write_piece();
    std::uint64_t piece_begin(std::uint64_t piece) const;
    double piece_time(std::uint64_t piece) const;

    Node& node_;
    std::uint64_t destination_;
    std::uint64_t source_;
    Rows rows_;
    std::vector<std::byte> captured_;
    Place to_;
    Place from_;
    std::uint64_t pieces_ = 0;    // 0: not begun
    std::uint64_t piece_ = 0;     // the present one
    bool reading_ = false;        // its time has begun
    std::vector<std::byte> held_; // its bytes, when others work at the same time
    double end_ = 0;
};

class FillOperation : public Operation {
public:
    /// Elements of 1, 2 or 4 bytes, each of which becomes the low bytes of `value`.
    FillOperation(Node& node, Device& device, std::uint64_t destination, unsigned value, Rows rows,
                  unsigned element_bytes = 1);
    Progress advance(double now, Lock& lock) override;
    void finish() override;

private:
    Node& node_;
    std::uint64_t destination_;
    unsigned value_;
    Rows rows_;
    unsigned element_bytes_;
    Place to_;
};

/// Runs its threads when it begins, because only then one knows how long it takes. A launch like
/// an earlier one runs them when it ends, so that its results appear no earlier than they should.
class KernelOperation : public Operation {
public:
    /// `launch` lacks only what the start of the kernel decides: memory view and time.
    KernelOperation(Node& node, Device& device, ptx::Launch launch, KernelShape shape,
                    std::string name);
    Progress advance(double now, Lock& lock) override;

private:
    enum class Stage { queued, expected, running };

    Progress begin_at(double now);
    Progress start_execution(double now);
    Progress go_on(double now);
    Progress place_in_time(double now);
    void fault(const ptx::Fault& fault);
    /// The same for launches that will do the same amount of work: all but the addresses.
    std::string signature() const;

    Node& node_;
    ptx::Launch launch_;
    KernelShape shape_;
    KernelMemory memory_;
    std::unique_ptr<ptx::Execution> execution_;
    Stage stage_ = Stage::queued;
    double expected_ns_ = 0; // reserved before the threads ran; 0: nothing
    bool suspended_ = false;
};

/// A point in a stream: event records, waits for events.
class MarkerOperation : public Operation {
public:
    using Operation::Operation;
    Progress advance(double now, Lock&) override { return {now, true, false}; }
};

/// Calls the program, on the host thread that happens to run the node.
class HostOperation : public Operation {
public:
    HostOperation(Node& node, Device& device, std::string what, std::function<void()> function);
    Progress advance(double now, Lock& lock) override;

private:
    Node& node_;
    std::function<void()> function_;
};

/// Does something to the node itself when its turn in the stream comes.
class NodeOperation : public Operation {
public:
    NodeOperation(Device& device, std::string what, std::function<void()> action)
        : Operation(device, std::move(what)), action_(std::move(action)) {}
    Progress advance(double now, Lock&) override { return {now, true, false}; }
    void finish() override { action_(); }

private:
    std::function<void()> action_;
};

} // namespace sim
