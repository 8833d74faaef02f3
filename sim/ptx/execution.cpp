// One launch of a kernel: which blocks are resident, and in which order they run.
#include "ptx/group.hpp"
#include "ptx/module.hpp"
#include "ptx/ops/operations.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <queue>

namespace sim::ptx {

namespace baseline {
const Operations& table();
}
namespace avx2 {
const Operations& table();
}

const Operations& operations() {
    static const Operations& best = []() -> const Operations& {
        const char* wanted = std::getenv("SIM_PTX_SET");
        const bool plain = wanted != nullptr && std::string_view(wanted) == "baseline";
        // No processor has these without the rest of x86-64-v3, a name that clang 14 does not know.
        const bool modern = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
                            __builtin_cpu_supports("fma");
        return modern && !plain ? avx2::table() : baseline::table();
    }();
    return best;
}

namespace {

/// Instructions that a block may dispatch before another one gets its turn, when there is one.
constexpr std::uint64_t block_quantum = 20000;
constexpr std::uint32_t most_blocks_of_multiprocessor = 32;
constexpr std::uint32_t threads_of_multiprocessor = 2048;
constexpr std::uint32_t shared_of_multiprocessor = 228 << 10;
/// Bounds what resident blocks take of this process's memory.
constexpr std::uint64_t most_resident_bytes = std::uint64_t{1} << 30;

/// When a multiprocessor has room for another block: blocks that wait for the clock hold their
/// place for as long.
class Seats {
public:
    explicit Seats(std::uint64_t count = 1) : untouched_(count) {}

    /// ns after the launch.
    double take() {
        if (untouched_ != 0) {
            --untouched_;
            return 0;
        }
        const double earliest = free_at_.top();
        free_at_.pop();
        return earliest;
    }
    void give_back(double at) {
        if (at == 0)
            ++untouched_;
        else
            free_at_.push(at);
    }

private:
    std::uint64_t untouched_;
    std::priority_queue<double, std::vector<double>, std::greater<>> free_at_;
};

class KernelExecution : public Execution {
public:
    explicit KernelExecution(Launch launch) : launch_(std::move(launch)) {
        const auto& kernel = dynamic_cast<const LoadedKernel&>(*launch_.kernel);
        const Program& program = kernel.program();
        check(program);
        around_.launch = &launch_;
        around_.module = &kernel.module();
        around_.program = &program;
        around_.parameters = launch_.parameters.data();
        around_.parameter_bytes = launch_.parameters.size();
        around_.nanoseconds_per_tick = 1.0 / (launch_.clock_ghz > 0 ? launch_.clock_ghz : 1.0);
        around_.slots.resize(program.window_slots + 1);
        fill_constants(program);
        most_resident_ = most_resident(program);
        seats_ = Seats(most_resident_);
    }

    State run(std::uint64_t instructions) override {
        std::fill(around_.slots.begin(), around_.slots.end(), Slot{});
        const std::uint64_t end = around_.work.thread_instructions + instructions;
        while (!resident_.empty() || next_block_ < launch_.grid.count()) {
            if (!step()) return State::faulted;
            if (around_.work.thread_instructions >= end &&
                (!resident_.empty() || next_block_ < launch_.grid.count())) {
                for (const auto& block : resident_)
                    note_end(*block);
                return State::suspended;
            }
        }
        return State::finished;
    }

    const Work& work() const override { return around_.work; }
    const Fault& fault() const override { return fault_; }

private:
    void check(const Program& program) const {
        const std::uint64_t threads = launch_.block.count();
        if (threads == 0 || threads > 1024 || launch_.grid.count() == 0)
            throw Error(demangle(launch_.kernel->name()) +
                        ": a block has 1 to 1024 threads and a grid at least one block");
        if (launch_.parameters.size() < launch_.kernel->parameter_bytes())
            throw Error(demangle(launch_.kernel->name()) + ": parameters are missing");
        if (program.dynamic_shared_offset + std::uint64_t{launch_.dynamic_shared_bytes} > 1u << 20)
            throw Error(demangle(launch_.kernel->name()) + ": too much shared memory");
    }

    std::uint64_t value_of(const Constant& constant) const {
        switch (constant.kind) {
        case Constant::Kind::literal:
            return constant.bits;
        case Constant::Kind::variable:
            if (constant.index >= launch_.variables.size())
                throw Error("the variables of the module have no addresses");
            return launch_.variables[constant.index] + constant.bits;
        case Constant::Kind::parameter:
            break;
        }
        std::uint64_t bits = 0;
        const unsigned size = size_of(constant.type);
        if (constant.bits > launch_.parameters.size() ||
            launch_.parameters.size() - constant.bits < size)
            throw Error(demangle(launch_.kernel->name()) + ": reads outside of its parameters");
        std::memcpy(&bits, launch_.parameters.data() + constant.bits, size);
        if (!is_signed(constant.type) || size == 8) return bits;
        const unsigned shift = 64 - size * 8;
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << shift) >> shift);
    }

    void fill_constants(const Program& program) {
        constants_ = Buffer(program.constants_bytes);
        around_.constants = constants_.data();
        for (const Constant& constant : program.constants) {
            const std::uint64_t value = value_of(constant);
            std::byte* to = constants_.data() + constant.offset;
            for (std::uint32_t lane = 0; lane < group_lanes; ++lane)
                std::memcpy(to + lane * constant.width, &value, constant.width);
        }
    }

    /// As many blocks as the device would hold at a time.
    std::uint64_t most_resident(const Program& program) const {
        const std::uint64_t threads = launch_.block.count();
        const std::uint64_t warps = (threads + warp_lanes - 1) / warp_lanes * warp_lanes;
        std::uint64_t each = std::min<std::uint64_t>(most_blocks_of_multiprocessor,
                                                     threads_of_multiprocessor / warps);
        const std::uint64_t shared = program.dynamic_shared_offset + launch_.dynamic_shared_bytes;
        if (shared != 0) each = std::min(each, shared_of_multiprocessor / shared);
        const std::uint64_t groups = (threads + group_lanes - 1) / group_lanes;
        const std::uint64_t bytes = program.code.front().frame_bytes * groups + shared +
                                    program.local_bytes * threads + 4096;
        const std::uint64_t all = std::max<std::uint64_t>(each, 1) * launch_.multiprocessors;
        return std::clamp<std::uint64_t>(all, 1,
                                         std::max<std::uint64_t>(1, most_resident_bytes / bytes));
    }

    /// Runs one block for a while. False when it stopped the kernel.
    bool step() {
        if (next_block_ < launch_.grid.count() && resident_.size() < most_resident_)
            resident_.push_front(start());
        std::unique_ptr<BlockState> block = std::move(resident_.front());
        resident_.pop_front();
        try {
            if (run_block(*block, block_quantum) != Progress::finished) {
                resident_.push_back(std::move(block));
                return true;
            }
        } catch (const Stopped&) {
            fault_ = block->fault;
            note_end(*block);
            return false;
        }
        seats_.give_back(note_end(*block));
        spare_.push_back(std::move(block));
        return true;
    }

    std::unique_ptr<BlockState> start() {
        std::unique_ptr<BlockState> block;
        if (spare_.empty()) {
            block = std::make_unique<BlockState>();
        } else {
            block = std::move(spare_.back());
            spare_.pop_back();
        }
        block->started = seats_.take();
        start_block(*block, around_, next_block_++);
        return block;
    }

    /// When the block was done waiting, in ns after the launch.
    double note_end(const BlockState& block) {
        const double end = block.started + longest_wait(block);
        around_.work.longest_sleep_ns =
            std::max(around_.work.longest_sleep_ns, static_cast<std::uint64_t>(end));
        return end;
    }

    Launch launch_;
    Surroundings around_;
    Buffer constants_;
    std::uint64_t most_resident_ = 1;
    Seats seats_;
    std::uint64_t next_block_ = 0;
    std::deque<std::unique_ptr<BlockState>> resident_;
    std::vector<std::unique_ptr<BlockState>> spare_;
    Fault fault_;
};

} // namespace

std::unique_ptr<Execution> Execution::create(Launch launch) {
    return std::make_unique<KernelExecution>(std::move(launch));
}

} // namespace sim::ptx
