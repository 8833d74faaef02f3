#include "node/operations.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <driver_types.h>

namespace sim {
namespace {

// Warp instructions after which a kernel is taken for one that never ends: a minute or so of a
// single warp, far beyond what a kernel that is only large needs.
constexpr std::uint64_t usual_budget = 2'000'000'000;

std::uint64_t kernel_budget() {
    static const std::uint64_t budget = [] {
        const char* text = std::getenv("SIM_KERNEL_BUDGET");
        const std::uint64_t given = text ? std::strtoull(text, nullptr, 10) : 0;
        return given > 0 ? given : usual_budget;
    }();
    return budget;
}

/// Thread instructions after which a kernel lets others work, because it may wait for them: many
/// for a kernel of many threads, whose instructions are cheap to execute.
std::uint64_t slice_of(const KernelShape& shape) {
    constexpr std::uint64_t least = 1 << 22;
    constexpr std::uint64_t most = 1 << 30;
    constexpr std::uint64_t usual_thread = 256;
    return std::clamp(shape.blocks * shape.threads_per_block * usual_thread, least, most);
}

/// Whether the node may touch [address, address + bytes) now. Pool memory can have been given
/// back between the call and the moment the work takes effect.
bool still_there(Node& node, std::uint64_t address, std::uint64_t bytes) {
    Device* owner = node.owner(address);
    return !owner || owner->memory.mapped(address, bytes);
}

std::uint64_t span_of(std::uint64_t pitch, const Rows& rows) {
    return rows.height == 0 ? 0 : pitch * (rows.height - 1) + rows.width;
}

void report_gone(Node& node, const Operation& operation, std::uint64_t address) {
    std::fprintf(stderr, "sim: %s touches 0x%llx, which is not there any more: %s\n",
                 operation.what.c_str(), static_cast<unsigned long long>(address),
                 node.describe(address).c_str());
    operation.device.sticky = cudaErrorIllegalAddress;
}

const char* category_of_copy(const Place& to, const Place& from) {
    const bool pageable = to.kind == Place::Kind::pageable || from.kind == Place::Kind::pageable;
    if (to.device && from.device) return to.device == from.device ? "D2D" : "P2P";
    if (to.device) return pageable ? "H2D pageable" : "H2D";
    if (from.device) return pageable ? "D2H pageable" : "D2H";
    return "H2H";
}

// A copy is moved in at most so many pieces, none of them tiny.
constexpr std::uint64_t most_pieces = 8;
constexpr std::uint64_t least_piece_bytes = 64 << 10;

} // namespace

CopyOperation::CopyOperation(Node& node, Device& owner, std::uint64_t destination,
                             std::uint64_t source, Rows rows)
    : Operation(owner, copy_name(node.place(destination), node.place(source), rows.bytes())),
      node_(node), destination_(destination), source_(source), rows_(rows),
      to_(node.place(destination)), from_(node.place(source)) {
    category = category_of_copy(to_, from_);
}

CopyOperation::CopyOperation(Node& node, Device& owner, std::uint64_t destination,
                             std::vector<std::byte> source)
    : Operation(owner, copy_name(node.place(destination), {}, source.size())), node_(node),
      destination_(destination), source_(0), rows_{source.size(), 1, 0, 0},
      captured_(std::move(source)),
      to_(node.place(destination)), from_{Place::Kind::pinned, nullptr} {
    category = category_of_copy(to_, {});
}

std::uint64_t CopyOperation::piece_begin(std::uint64_t piece) const {
    constexpr std::uint64_t unit = 64; // no element is torn
    return piece == pieces_ ? rows_.bytes() : rows_.bytes() / pieces_ * piece / unit * unit;
}

double CopyOperation::piece_time(std::uint64_t piece) const {
    return begin + (end_ - begin) * static_cast<double>(piece) / static_cast<double>(pieces_);
}

Progress CopyOperation::advance(double now, Lock&) {
    if (pieces_ == 0) {
        const CopyPath path = copy_path(node_, to_, from_, rows_.bytes());
        const Slot slot = reserve(now, path.ns, path.demands);
        begin = slot.begin;
        end_ = slot.end;
        pieces_ = std::clamp(rows_.bytes() / least_piece_bytes, std::uint64_t{1}, most_pieces);
        return {begin, false, false};
    }
    if (reading_) {
        write_piece();
        ++piece_;
    }
    read_piece();
    reading_ = true;
    return {piece_time(piece_ + 1), piece_ + 1 == pieces_, false};
}

void CopyOperation::finish() {
    write_piece();
    held_ = {};
}

template <class Part>
void CopyOperation::for_each_part(std::uint64_t first, std::uint64_t last, Part part) const {
    for (std::uint64_t at = first; at < last;) {
        const std::uint64_t row = at / rows_.width;
        const std::uint64_t column = at % rows_.width;
        const std::uint64_t bytes = std::min(rows_.width - column, last - at);
        part(row * rows_.destination_pitch + column, row * rows_.source_pitch + column, at - first,
             bytes);
        at += bytes;
    }
}

bool CopyOperation::source_is_there() {
    if (!captured_.empty()) return true;
    if (still_there(node_, source_, span_of(rows_.source_pitch, rows_))) return true;
    report_gone(node_, *this, source_);
    return false;
}

void CopyOperation::read_piece() {
    held_.clear();
    // Alone on the node nothing can change the bytes meanwhile: they are moved in one go later.
    if (node_.engine.is_idle() || !captured_.empty() || !source_is_there()) return;
    const std::uint64_t first = piece_begin(piece_);
    const std::uint64_t last = piece_begin(piece_ + 1);
    held_.resize(last - first);
    const std::byte* from = node_.bytes_at(source_);
    for_each_part(first, last, [&](auto, auto source, auto held, auto bytes) {
        std::memcpy(held_.data() + held, from + source, bytes);
    });
}

void CopyOperation::write_piece() {
    if (device.sticky != 0 || !source_is_there()) return;
    if (!still_there(node_, destination_, span_of(rows_.destination_pitch, rows_)))
        return report_gone(node_, *this, destination_);
    std::byte* to = node_.bytes_at(destination_);
    const std::byte* from = captured_.empty() ? node_.bytes_at(source_) : captured_.data();
    for_each_part(piece_begin(piece_), piece_begin(piece_ + 1),
                  [&](auto destination, auto source, auto held, auto bytes) {
                      const std::byte* bytes_now =
                          held_.empty() ? from + source : held_.data() + held;
                      std::memmove(to + destination, bytes_now, bytes);
                  });
}

FillOperation::FillOperation(Node& node, Device& owner, std::uint64_t destination, unsigned value,
                             Rows rows, unsigned element_bytes)
    : Operation(owner, "fill of " + readable_bytes(rows.bytes())), node_(node),
      destination_(destination), value_(value), rows_(rows), element_bytes_(element_bytes),
      to_(node.place(destination)) {
    category = "fill";
}

Progress FillOperation::advance(double now, Lock&) {
    const CopyPath path = fill_path(node_, to_, device, rows_.bytes());
    const Slot slot = reserve(now, path.ns, path.demands);
    begin = slot.begin;
    return {slot.end, true, false};
}

void FillOperation::finish() {
    if (!still_there(node_, destination_, span_of(rows_.destination_pitch, rows_)))
        return report_gone(node_, *this, destination_);
    std::byte* to = node_.bytes_at(destination_);
    for (std::uint64_t row = 0; row < rows_.height; ++row) {
        std::byte* first = to + row * rows_.destination_pitch;
        if (element_bytes_ == 1)
            std::memset(first, static_cast<int>(value_ & 0xff), rows_.width);
        else
            for (std::uint64_t i = 0; i < rows_.width; i += element_bytes_)
                std::memcpy(first + i, &value_, element_bytes_);
    }
}

KernelOperation::KernelOperation(Node& node, Device& owner, ptx::Launch launch, KernelShape shape,
                                 std::string name)
    : Operation(owner, "kernel " + name + " on GPU " + std::to_string(owner.index)), node_(node),
      launch_(std::move(launch)), shape_(shape), memory_(node, owner, std::move(name)) {
    category = "kernel";
}

std::string KernelOperation::signature() const {
    const auto bytes_of = [](const auto& value) {
        return std::string(reinterpret_cast<const char*>(&value), sizeof value);
    };
    std::string text = bytes_of(device.index) + bytes_of(launch_.kernel) + bytes_of(launch_.grid) +
                       bytes_of(launch_.block) + bytes_of(launch_.dynamic_shared_bytes);
    for (std::size_t i = 0; i < launch_.parameters.size(); i += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, launch_.parameters.data() + i,
                    std::min(sizeof word, launch_.parameters.size() - i));
        const bool address = node_.owner(word) || node_.host.find(word);
        text += bytes_of(address ? std::uint64_t{0} : word);
    }
    return text;
}

Progress KernelOperation::advance(double now, Lock&) {
    switch (stage_) {
    case Stage::queued:
        return begin_at(now);
    case Stage::expected:
        return start_execution(now);
    case Stage::running:
        break;
    }
    return go_on(now);
}

Progress KernelOperation::begin_at(double now) {
    if (const KernelTime* known = node_.find_kernel_time(signature())) {
        const Slot slot = reserve(now, known->ns, known->demands);
        begin = slot.begin;
        expected_ns_ = known->ns;
        stage_ = Stage::expected;
        return {slot.end, false, false};
    }
    // Some kernels run beside others; a large one waits until half of the GPU is free.
    const double room = std::min(occupied_fraction(node_.file.gpu, shape_), 0.5);
    const double free = first_free(device.resources.compute, now, room);
    if (free > now) return {free, false, false};
    begin = now;
    return start_execution(now);
}

Progress KernelOperation::start_execution(double now) {
    stage_ = Stage::running;
    launch_.memory = &memory_;
    launch_.start_ns = static_cast<std::uint64_t>(begin);
    try {
        execution_ = ptx::Execution::create(launch_);
    } catch (const ptx::Error& error) {
        std::fprintf(stderr, "sim: %s\n", error.what());
        device.sticky = cudaErrorNotSupported;
        return {now, true, false};
    }
    return go_on(now);
}

Progress KernelOperation::go_on(double now) {
    switch (execution_->run(slice_of(shape_))) {
    case ptx::Execution::State::finished:
        return place_in_time(now);
    case ptx::Execution::State::faulted:
        fault(execution_->fault());
        return {now, true, false};
    case ptx::Execution::State::suspended:
        break;
    }
    suspended_ = suspended_ || !node_.engine.is_idle();
    if (execution_->work().warp_instructions > kernel_budget()) {
        std::fprintf(stderr,
                     "sim: %s has executed %llu warp instructions and does not end: it waits for "
                     "something that never comes (SIM_KERNEL_BUDGET sets the limit)\n",
                     what.c_str(),
                     static_cast<unsigned long long>(execution_->work().warp_instructions));
        std::abort();
    }
    const double so_far = kernel_time(device, shape_, execution_->work()).ns;
    return {std::max(now, begin + so_far), false, true};
}

Progress KernelOperation::place_in_time(double now) {
    const KernelTime time = kernel_time(device, shape_, execution_->work());
    execution_.reset();
    // How long a kernel waited for others says nothing about the next time.
    if (!suspended_) node_.remember_kernel_time(signature(), time);
    if (expected_ns_ == 0)
        return {std::max(now, reserve(begin, time.ns, time.demands).end), true, false};
    const double missing = time.ns - expected_ns_;
    if (missing <= 0) return {now, true, false};
    return {reserve(now, missing, time.demands).end, true, false};
}

void KernelOperation::fault(const ptx::Fault& fault) {
    const auto at = [](const ptx::Dim3& d) {
        return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) +
               ")";
    };
    std::fprintf(stderr, "sim: kernel %s on GPU %d stopped: %s\n", fault.kernel.c_str(),
                 device.index, fault.message.c_str());
    std::fprintf(stderr, "sim:   block %s thread %s", at(fault.block).c_str(),
                 at(fault.thread).c_str());
    if (!fault.location.empty()) std::fprintf(stderr, ", %s", fault.location.c_str());
    if (!fault.instruction.empty()) std::fprintf(stderr, ", %s", fault.instruction.c_str());
    std::fprintf(stderr, "\n");
    if (fault.error == cudaErrorIllegalAddress)
        std::fprintf(stderr, "sim:   %s\n", memory_.why_not(fault.address).c_str());
    device.sticky = fault.error;
    execution_.reset();
}

HostOperation::HostOperation(Node& node, Device& owner, std::string text,
                             std::function<void()> function)
    : Operation(owner, std::move(text)), node_(node), function_(std::move(function)) {
    category = "host function";
}

Progress HostOperation::advance(double now, Lock& lock) {
    HostThread& thread = this_thread();
    const double clock = std::exchange(thread.clock, now);
    const bool outer = std::exchange(thread.in_host_function, true);
    lock.unlock();
    function_();
    lock.lock();
    thread.in_host_function = outer;
    thread.clock = clock;
    return {now + node_.file.api.host_function.of(0), true, false};
}

} // namespace sim
