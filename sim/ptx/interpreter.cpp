// Runs the groups of a block: basic block after basic block, the lanes that are furthest behind
// first, so that lanes which went different ways meet again.
#include "ptx/group.hpp"
#include "ptx/ops/operations.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sim::ptx {
namespace {

/// How long one fragment may run while others could, before they get a turn. Large enough that
/// ordinary loops end first, small enough that a lane which waits for another one does not hang.
constexpr std::uint32_t longest_turn = 4096;
constexpr std::uint32_t favour = 256;
/// Ticks from one instruction of a warp to its next.
constexpr std::uint64_t ticks_per_instruction = 4;
constexpr std::uint32_t deepest_call = 1024;
constexpr int launch_failure = 719;
constexpr int launch_timeout = 702;
constexpr int invalid_counter = 718;

Lanes lanes_of(Group& group, const Fragment& fragment) {
    Lanes lanes;
    lanes.base[0] = fragment.frame->registers.data();
    lanes.base[1] = group.around->constants;
    lanes.low = fragment.mask.low;
    lanes.high = fragment.mask.high;
    lanes.mask = fragment.mask.dense() ? nullptr : fragment.mask.lane;
    lanes.group = &group;
    lanes.frame = fragment.frame;
    return lanes;
}

/// Members of a mask that belong to one warp, one bit each.
std::uint32_t members_of(const Mask& mask, std::uint32_t warp) {
    const std::uint32_t begin = std::max(mask.low, warp * warp_lanes);
    const std::uint32_t end = std::min(mask.high, (warp + 1) * warp_lanes);
    if (begin >= end) return 0;
    if (mask.dense())
        return ~std::uint32_t{0} >> (warp_lanes - (end - begin)) << (begin % warp_lanes);
    std::uint32_t bits = 0;
    for (std::uint32_t i = begin; i < end; ++i)
        bits |= std::uint32_t{mask.lane[i]} << (i % warp_lanes);
    return bits;
}

/// Computes all lanes of the range and puts back what the inactive ones held.
void run_blended(const Instruction& in, Lanes& lanes) {
    constexpr std::size_t most_writes = 4;
    alignas(64) std::byte before[most_writes][group_lanes * 8];
    const std::uint8_t* mask = lanes.mask;
    const std::size_t count = lanes.high - lanes.low;
    for (unsigned k = 0; k < in.writes; ++k) {
        const std::size_t skip = std::size_t{lanes.low} * in.width[k];
        std::memcpy(before[k] + skip, array_of<std::byte>(lanes, in.operand[k]) + skip,
                    count * in.width[k]);
    }
    lanes.mask = nullptr;
    in.run(in, lanes);
    lanes.mask = mask;
    for (unsigned k = 0; k < in.writes; ++k)
        operations().keep_inactive(array_of<std::byte>(lanes, in.operand[k]), before[k],
                                   in.width[k], mask, lanes.low, lanes.high);
}

void run_active(const Instruction& in, Lanes& lanes) {
    if (lanes.mask != nullptr && in.elementwise)
        run_blended(in, lanes);
    else
        in.run(in, lanes);
}

void run_predicated(const Instruction& in, const Fragment& fragment, Lanes& lanes) {
    Mask taken;
    operations().split(fragment.mask, array_of<std::uint8_t>(lanes, in.predicate),
                       in.predicate_negated, taken);
    if (taken.count == 0) return;
    Lanes some = lanes;
    some.low = taken.low;
    some.high = taken.high;
    some.mask = taken.dense() ? nullptr : taken.lane;
    run_active(in, some);
}

class GroupRunner {
public:
    GroupRunner(Group& group, std::uint64_t& quantum) : group_(group), quantum_(quantum) {}

    /// Until the group is finished, all its lanes wait, it paused, or the quantum is used.
    Progress run() {
        while (!group_.fragments.empty()) {
            if (quantum_ == 0) return Progress::paused;
            Fragment* fragment = choose();
            if (fragment == nullptr) return Progress::blocked;
            if (run_fragment(*fragment) == Progress::paused) return Progress::paused;
        }
        return Progress::finished;
    }

private:
    /// Deepest call first, then the earliest block; a favoured fragment before all.
    Fragment* choose() {
        auto& fragments = group_.fragments;
        if (fragments.size() == 1) {
            Fragment* only = fragments.front().get();
            if (only->state == Fragment::State::waiting) return nullptr;
            only->state = Fragment::State::ready;
            return only;
        }
        merge();
        Fragment* best = nullptr;
        Fragment* parked = nullptr;
        unsigned ready = 0;
        for (const auto& candidate : fragments) {
            if (candidate->state == Fragment::State::parked) parked = candidate.get();
            if (candidate->state != Fragment::State::ready) continue;
            ++ready;
            if (best == nullptr || before(*candidate, *best)) best = candidate.get();
        }
        if (best == nullptr && parked != nullptr) {
            parked->forced = true;
            parked->state = Fragment::State::ready;
            return parked;
        }
        if (ready < 2) return best;
        return fair(best);
    }

    static bool before(const Fragment& a, const Fragment& b) {
        return a.frame->depth != b.frame->depth ? a.frame->depth > b.frame->depth
                                                : a.block < b.block;
    }

    Fragment* fair(Fragment* best) {
        if (group_.favoured != nullptr && group_.favoured_turns > 0) {
            for (const auto& candidate : group_.fragments)
                if (candidate.get() == group_.favoured &&
                    candidate->state == Fragment::State::ready) {
                    --group_.favoured_turns;
                    return candidate.get();
                }
            group_.favoured = nullptr;
        }
        if (++group_.turns_of_one > longest_turn) favour_next(best);
        return best;
    }

    void favour_next(const Fragment* current) {
        group_.turns_of_one = 0;
        auto& fragments = group_.fragments;
        std::size_t at = 0;
        while (at < fragments.size() && fragments[at].get() != current)
            ++at;
        for (std::size_t step = 1; step < fragments.size(); ++step) {
            Fragment* other = fragments[(at + step) % fragments.size()].get();
            if (other->state != Fragment::State::ready) continue;
            // to the end, so that it is another one's turn next time
            std::rotate(fragments.begin(), fragments.begin() + 1, fragments.end());
            group_.favoured = other;
            group_.favoured_turns = favour;
            return;
        }
    }

    void merge() {
        auto& fragments = group_.fragments;
        for (std::size_t i = 0; i < fragments.size(); ++i)
            for (std::size_t k = i + 1; k < fragments.size();) {
                Fragment& a = *fragments[i];
                Fragment& b = *fragments[k];
                const bool same = a.frame == b.frame && a.block == b.block &&
                                  a.state != Fragment::State::waiting &&
                                  b.state != Fragment::State::waiting;
                if (!same) {
                    ++k;
                    continue;
                }
                for (std::uint32_t lane = 0; lane < group_lanes; ++lane)
                    a.mask.lane[lane] |= b.mask.lane[lane];
                operations().summarise(a.mask);
                a.state = Fragment::State::ready;
                a.forced = false;
                if (group_.favoured == &b) group_.favoured = &a;
                release(b.frame);
                remove(k);
            }
    }

    void remove(std::size_t index) {
        auto& fragments = group_.fragments;
        group_.spare_fragments.push_back(std::move(fragments[index]));
        fragments.erase(fragments.begin() + static_cast<std::ptrdiff_t>(index));
        group_.turns_of_one = 0;
    }

    void remove(const Fragment& fragment) {
        for (std::size_t i = 0; i < group_.fragments.size(); ++i)
            if (group_.fragments[i].get() == &fragment) {
                if (group_.favoured == &fragment) group_.favoured = nullptr;
                return remove(i);
            }
    }

    Fragment& new_fragment(Frame* frame, std::uint32_t block) {
        std::unique_ptr<Fragment> fragment;
        if (group_.spare_fragments.empty()) {
            fragment = std::make_unique<Fragment>();
        } else {
            fragment = std::move(group_.spare_fragments.back());
            group_.spare_fragments.pop_back();
        }
        fragment->frame = frame;
        fragment->block = block;
        fragment->state = Fragment::State::ready;
        fragment->forced = false;
        ++frame->users;
        group_.fragments.push_back(std::move(fragment));
        group_.turns_of_one = 0;
        return *group_.fragments.back();
    }

    void release(Frame* frame) {
        if (--frame->users != 0 || frame->parent == nullptr) return;
        Frame* parent = frame->parent;
        for (auto& owned : group_.frames)
            if (owned.get() == frame) {
                group_.spare_frames.push_back(std::move(owned));
                owned = std::move(group_.frames.back());
                group_.frames.pop_back();
                break;
            }
        release(parent);
    }

    /// All that a fragment may do without asking whose turn it is.
    Progress run_fragment(Fragment& fragment) {
        for (;;) {
            const Block& block = fragment.frame->code->blocks[fragment.block];
            if (block.members != no_operand && group_.fragments.size() > 1 && !fragment.forced &&
                lanes_missing(fragment, block)) {
                fragment.state = Fragment::State::parked;
                return Progress::blocked;
            }
            fragment.forced = false;
            run_instructions(fragment, block);
            const Progress progress = end_block(fragment, block);
            if (progress != Progress::finished) return progress;
            if (group_.fragments.size() != 1 || quantum_ == 0) return Progress::blocked;
        }
    }

    /// Whether a lane that the instruction waits for is alive and elsewhere.
    bool lanes_missing(const Fragment& fragment, const Block& block) {
        const Lanes lanes = lanes_of(group_, fragment);
        const std::uint32_t* members = array_of<std::uint32_t>(lanes, block.members);
        for (std::uint32_t warp = 0; warp < group_warps; ++warp) {
            std::uint32_t here = 0, wanted = 0;
            for (std::uint32_t i = 0; i < warp_lanes; ++i) {
                const std::uint32_t lane = warp * warp_lanes + i;
                if (!fragment.mask.has(lane)) continue;
                here |= std::uint32_t{1} << i;
                wanted |= members[lane];
            }
            if ((wanted & group_.alive[warp] & ~here) != 0) return true;
        }
        return false;
    }

    void run_instructions(Fragment& fragment, const Block& block) {
        Lanes lanes = lanes_of(group_, fragment);
        const Instruction* const all = fragment.frame->code->instructions.data();
        Work& work = group_.around->work;
        work.thread_instructions += std::uint64_t{block.counted} * fragment.mask.count;
        work.warp_instructions += std::uint64_t{block.counted} * fragment.mask.warps;
        group_.ticks += ticks_per_instruction * block.counted;
        quantum_ -= std::min<std::uint64_t>(quantum_, block.counted + 1);
        const Instruction* const last = all + block.last;
        for (const Instruction* in = all + block.first; in != last; ++in) {
            if (in->predicate != no_operand)
                run_predicated(*in, fragment, lanes);
            else
                run_active(*in, lanes);
        }
    }

    /// finished: the fragment may go on.
    Progress end_block(Fragment& fragment, const Block& block) {
        switch (block.ending) {
        case Ending::fall:
            ++fragment.block;
            return Progress::finished;
        case Ending::pause:
            return pause(fragment);
        case Ending::branch:
            branch(fragment, block);
            return Progress::finished;
        default:
            break;
        }
        if (block.predicate == no_operand) return end_all(fragment, block);
        Lanes lanes = lanes_of(group_, fragment);
        Mask taken;
        operations().split(fragment.mask, array_of<std::uint8_t>(lanes, block.predicate),
                           block.predicate_negated, taken);
        if (taken.count == 0) {
            ++fragment.block;
            return Progress::finished;
        }
        if (taken.count == fragment.mask.count) return end_all(fragment, block);
        Fragment& rest = new_fragment(fragment.frame, fragment.block + 1);
        subtract(fragment.mask, taken, rest.mask);
        fragment.mask = taken;
        end_all(fragment, block);
        return Progress::blocked;
    }

    Progress end_all(Fragment& fragment, const Block& block) {
        switch (block.ending) {
        case Ending::table:
            jump(fragment, block);
            return Progress::finished;
        case Ending::call:
            return call(fragment, block);
        case Ending::leave:
            return leave(fragment);
        case Ending::exit:
            return finish_threads(fragment);
        default:
            return wait(fragment, block);
        }
    }

    static void subtract(const Mask& all, const Mask& taken, Mask& rest) {
        for (std::uint32_t i = 0; i < group_lanes; ++i)
            rest.lane[i] = static_cast<std::uint8_t>(all.lane[i] & ~taken.lane[i]);
        operations().summarise(rest);
    }

    Progress pause(Fragment& fragment) {
        ++fragment.block;
        if (group_.fragments.size() > 1) favour_next(&fragment);
        return Progress::paused;
    }

    void branch(Fragment& fragment, const Block& block) {
        if (block.predicate == no_operand) {
            fragment.block = block.target;
            return;
        }
        const Lanes lanes = lanes_of(group_, fragment);
        Mask taken;
        operations().split(fragment.mask, array_of<std::uint8_t>(lanes, block.predicate),
                           block.predicate_negated, taken);
        if (taken.count == fragment.mask.count) {
            fragment.block = block.target;
        } else if (taken.count == 0) {
            ++fragment.block;
        } else {
            Fragment& other = new_fragment(fragment.frame, block.target);
            Mask rest;
            subtract(fragment.mask, taken, rest);
            other.mask = taken;
            fragment.mask = rest;
            ++fragment.block;
        }
    }

    void jump(Fragment& fragment, const Block& block) {
        const Lanes lanes = lanes_of(group_, fragment);
        const std::uint32_t* index = array_of<std::uint32_t>(lanes, block.index);
        const auto& table = fragment.frame->code->tables[block.target];
        const Mask all = fragment.mask;
        Mask rest = all;
        bool first = true;
        while (rest.count != 0) {
            const std::uint32_t wanted = index[rest.low];
            if (wanted >= table.size())
                fail(fragment, block, rest.low, launch_failure,
                     "The kernel jumps outside of a table of labels.");
            Mask taken = {};
            for (std::uint32_t i = rest.low; i < rest.high; ++i)
                taken.lane[i] = rest.lane[i] & (index[i] == wanted);
            operations().summarise(taken);
            Fragment& to = first ? fragment : new_fragment(fragment.frame, 0);
            first = false;
            Mask left;
            subtract(rest, taken, left);
            rest = left;
            to.mask = taken;
            to.block = table[wanted];
        }
    }

    [[noreturn]] void fail(const Fragment& fragment, const Block& block, std::uint32_t lane,
                           int error, const std::string& message) {
        Instruction in;
        in.statement = block.statement;
        stop(in, lanes_of(group_, fragment), lane, error, message);
    }

    Progress call(Fragment& fragment, const Block& block) {
        const Call& call = fragment.frame->code->calls[block.target];
        if (call.function >= 0) {
            enter(fragment, block, call, static_cast<std::uint32_t>(call.function));
            return Progress::finished;
        }
        // lanes that call the same function go together, the others one function after the other
        const Lanes lanes = lanes_of(group_, fragment);
        const std::uint64_t* pointer = array_of<std::uint64_t>(lanes, call.pointer);
        const std::uint64_t wanted = pointer[fragment.mask.low];
        Mask taken = {};
        for (std::uint32_t i = fragment.mask.low; i < fragment.mask.high; ++i)
            taken.lane[i] = fragment.mask.lane[i] & (pointer[i] == wanted);
        operations().summarise(taken);
        const auto& known = group_.around->program->code_of_function;
        const auto found = known.find(
            static_cast<std::uint32_t>((wanted - function_addresses) / function_spacing));
        if (wanted < function_addresses || found == known.end())
            fail(fragment, block, fragment.mask.low, invalid_counter,
                 "The kernel calls through a pointer that is no function's address.");
        const bool all = taken.count == fragment.mask.count;
        if (!all) {
            Fragment& rest = new_fragment(fragment.frame, fragment.block);
            subtract(fragment.mask, taken, rest.mask);
            fragment.mask = taken;
        }
        enter(fragment, block, call, found->second);
        return all ? Progress::finished : Progress::blocked;
    }

    void enter(Fragment& fragment, const Block& block, const Call& call, std::uint32_t index) {
        const Code& code = group_.around->program->code[index];
        Frame* parent = fragment.frame;
        const std::uint32_t local_base = parent->local_base + parent->code->local_bytes;
        if (parent->depth >= deepest_call || local_base + code.local_bytes > group_.local_bytes)
            fail(fragment, block, fragment.mask.low, launch_failure,
                 "Functions call each other so deeply that the stack overflows.");
        if (call.arguments.size() != code.parameters.size() ||
            call.results.size() != code.results.size())
            fail(fragment, block, fragment.mask.low, invalid_counter,
                 "A function is called with other parameters than it has.");
        Frame& frame = new_frame(code);
        frame.parent = parent;
        frame.call = &call;
        frame.return_block = fragment.block + 1;
        frame.depth = parent->depth + 1;
        frame.local_base = local_base;
        frame.users = 1;
        for (std::size_t i = 0; i < call.arguments.size(); ++i)
            copy_piece(fragment.mask, parent->registers.data() + call.arguments[i],
                       frame.registers.data() + code.parameters[i]);
        // the fragment's hold on the caller's frame passes to the new frame
        fragment.frame = &frame;
        fragment.block = 0;
    }

    Frame& new_frame(const Code& code) {
        auto& spare = group_.spare_frames;
        for (std::size_t i = spare.size(); i-- > 0;)
            if (spare[i]->code == &code) {
                group_.frames.push_back(std::move(spare[i]));
                spare.erase(spare.begin() + static_cast<std::ptrdiff_t>(i));
                return *group_.frames.back();
            }
        auto frame = std::make_unique<Frame>();
        frame->code = &code;
        frame->registers = Buffer(code.frame_bytes);
        group_.frames.push_back(std::move(frame));
        return *group_.frames.back();
    }

    static void copy_piece(const Mask& mask, const std::byte* from, std::byte* to) {
        constexpr std::size_t piece = 8;
        for (std::uint32_t i = mask.low; i < mask.high; ++i)
            if (mask.has(i)) std::memcpy(to + i * piece, from + i * piece, piece);
    }

    Progress leave(Fragment& fragment) {
        Frame* frame = fragment.frame;
        if (frame->parent == nullptr) return finish_threads(fragment);
        for (std::size_t i = 0; i < frame->call->results.size(); ++i)
            copy_piece(fragment.mask, frame->registers.data() + frame->code->results[i],
                       frame->parent->registers.data() + frame->call->results[i]);
        fragment.frame = frame->parent;
        fragment.block = frame->return_block;
        ++frame->parent->users;
        release(frame);
        return group_.fragments.size() > 1 ? Progress::blocked : Progress::finished;
    }

    Progress finish_threads(Fragment& fragment) {
        for (std::uint32_t warp = 0; warp < group_warps; ++warp)
            group_.alive[warp] &= ~members_of(fragment.mask, warp);
        release(fragment.frame);
        remove(fragment);
        return Progress::blocked;
    }

    Progress wait(Fragment& fragment, const Block& block) {
        const Barrier& barrier = fragment.frame->code->barriers[block.target];
        const Lanes lanes = lanes_of(group_, fragment);
        const std::uint32_t first = fragment.mask.low;
        fragment.barrier = array_of<std::uint32_t>(lanes, barrier.id)[first];
        fragment.expected = barrier.threads == no_operand
                                ? 0
                                : array_of<std::uint32_t>(lanes, barrier.threads)[first];
        if (fragment.barrier >= std::size(group_.block->arrived))
            fail(fragment, block, first, launch_failure, "There are only 16 barriers.");
        ++fragment.block;
        if (barrier.kind == Barrier::Kind::arrive) {
            group_.block->arrived[fragment.barrier] += fragment.mask.warps * warp_lanes;
            return Progress::finished;
        }
        fragment.waits_at = &barrier;
        fragment.state = Fragment::State::waiting;
        return Progress::blocked;
    }

    Group& group_;
    std::uint64_t& quantum_;
};

/// Threads of one barrier, counted as the hardware does: a warp that has arrived with all the
/// threads that it still has counts in full.
struct Arrivals {
    std::uint32_t lanes = 0;   // that really wait
    std::uint32_t counted = 0; // with what their warps lack
    std::uint32_t expected = 0;
};

void add_arrivals(const Group& group, std::uint32_t barrier, Arrivals& arrivals) {
    std::uint32_t here[group_warps] = {};
    for (const auto& fragment : group.fragments) {
        if (fragment->state != Fragment::State::waiting || fragment->barrier != barrier) continue;
        arrivals.expected = std::max(arrivals.expected, fragment->expected);
        for (std::uint32_t warp = 0; warp < group_warps; ++warp)
            here[warp] |= members_of(fragment->mask, warp);
    }
    for (std::uint32_t warp = 0; warp < group_warps; ++warp) {
        const auto count = static_cast<std::uint32_t>(std::popcount(here[warp]));
        arrivals.lanes += count;
        arrivals.counted += count != 0 && here[warp] == group.alive[warp] ? warp_lanes : count;
    }
}

void finish_reduction(BlockState& block, std::uint32_t barrier) {
    std::uint32_t yes = 0, all = 0;
    const auto for_each = [&](auto f) {
        for (const auto& group : block.groups)
            for (const auto& fragment : group->fragments)
                if (fragment->state == Fragment::State::waiting && fragment->barrier == barrier &&
                    fragment->waits_at->destination != no_operand)
                    f(*fragment, lanes_of(*group, *fragment));
    };
    for_each([&](Fragment& fragment, const Lanes& lanes) {
        const std::uint8_t* p = array_of<std::uint8_t>(lanes, fragment.waits_at->predicate);
        for (std::uint32_t i = lanes.low; i < lanes.high; ++i)
            if (lanes.has(i)) {
                yes += p[i];
                ++all;
            }
    });
    for_each([&](Fragment& fragment, const Lanes& lanes) {
        const Barrier& at = *fragment.waits_at;
        for (std::uint32_t i = lanes.low; i < lanes.high; ++i) {
            if (!lanes.has(i)) continue;
            if (at.kind == Barrier::Kind::popc)
                array_of<std::uint32_t>(lanes, at.destination)[i] = yes;
            else
                array_of<std::uint8_t>(lanes, at.destination)[i] =
                    at.kind == Barrier::Kind::all ? yes == all : yes != 0;
        }
    });
}

/// Lets go whoever waits at a barrier that everybody has reached. True when somebody went.
bool open_barriers(BlockState& block) {
    std::uint32_t alive = 0;
    for (const auto& group : block.groups)
        for (const std::uint32_t warp : group->alive)
            alive += static_cast<std::uint32_t>(std::popcount(warp));
    bool opened = false;
    for (std::uint32_t barrier = 0; barrier < std::size(block.arrived); ++barrier) {
        Arrivals arrivals;
        for (const auto& group : block.groups)
            add_arrivals(*group, barrier, arrivals);
        if (arrivals.lanes == 0) continue;
        const bool open = arrivals.expected == 0
                              ? arrivals.lanes + block.arrived[barrier] >= alive
                              : arrivals.counted + block.arrived[barrier] >= arrivals.expected;
        if (!open) continue;
        finish_reduction(block, barrier);
        block.arrived[barrier] = 0;
        opened = true;
        for (const auto& group : block.groups)
            for (const auto& fragment : group->fragments)
                if (fragment->state == Fragment::State::waiting && fragment->barrier == barrier)
                    fragment->state = Fragment::State::ready;
    }
    return opened;
}

[[noreturn]] void deadlock(BlockState& block) {
    for (const auto& group : block.groups)
        for (const auto& fragment : group->fragments) {
            const Block& at = fragment->frame->code->blocks[fragment->block - 1];
            Instruction in;
            in.statement = at.statement;
            stop(in, lanes_of(*group, *fragment), fragment->mask.low, launch_timeout,
                 "Threads of the block wait at a barrier that the others never reach; a GPU would "
                 "hang.");
        }
    throw Stopped{};
}

void start_group(Group& group, std::uint32_t first_thread, std::uint32_t lanes) {
    const Code& code = group.around->program->code.front();
    group.first_thread = first_thread;
    group.lanes = lanes;
    while (!group.fragments.empty()) {
        group.spare_fragments.push_back(std::move(group.fragments.back()));
        group.fragments.pop_back();
    }
    while (group.frames.size() > 1) {
        group.spare_frames.push_back(std::move(group.frames.back()));
        group.frames.pop_back();
    }
    if (group.frames.empty()) {
        auto frame = std::make_unique<Frame>();
        frame->registers = Buffer(code.frame_bytes);
        frame->code = &code;
        group.frames.push_back(std::move(frame));
    }
    Frame& frame = *group.frames.front();
    frame.users = 1;
    if (group.spare_fragments.empty())
        group.spare_fragments.push_back(std::make_unique<Fragment>());
    group.fragments.push_back(std::move(group.spare_fragments.back()));
    group.spare_fragments.pop_back();
    Fragment& fragment = *group.fragments.back();
    fragment.frame = &frame;
    fragment.block = 0;
    fragment.state = Fragment::State::ready;
    fragment.forced = false;
    for (std::uint32_t i = 0; i < group_lanes; ++i)
        fragment.mask.lane[i] = i < lanes;
    operations().summarise(fragment.mask);
    for (std::uint32_t warp = 0; warp < group_warps; ++warp) {
        const std::uint32_t begin = warp * warp_lanes;
        const std::uint32_t count = lanes <= begin ? 0 : std::min(lanes - begin, warp_lanes);
        group.alive[warp] =
            count == warp_lanes ? ~std::uint32_t{0} : (std::uint32_t{1} << count) - 1;
        group.time[warp] = {};
    }
    group.favoured = nullptr;
    group.turns_of_one = 0;
    group.ticks = 0;
}

} // namespace

void start_block(BlockState& block, Surroundings& around, std::uint64_t number) {
    const Launch& launch = *around.launch;
    const Program& program = *around.program;
    block.number = number;
    block.index = {static_cast<std::uint32_t>(number % launch.grid.x),
                   static_cast<std::uint32_t>(number / launch.grid.x % launch.grid.y),
                   static_cast<std::uint32_t>(number / launch.grid.x / launch.grid.y)};
    const auto threads = static_cast<std::uint32_t>(launch.block.count());
    block.shared.resize(std::size_t{program.dynamic_shared_offset} + launch.dynamic_shared_bytes +
                        16);
    block.local.resize(std::size_t{program.local_bytes} * threads);
    std::fill(std::begin(block.arrived), std::end(block.arrived), 0);
    block.next_group = 0;
    const std::uint32_t groups = (threads + group_lanes - 1) / group_lanes;
    while (block.groups.size() < groups)
        block.groups.push_back(std::make_unique<Group>());
    const std::size_t shared_bytes =
        launch.dynamic_shared_bytes != 0
            ? program.dynamic_shared_offset + launch.dynamic_shared_bytes
            : program.static_shared_bytes;
    for (std::uint32_t g = 0; g < groups; ++g) {
        Group& group = *block.groups[g];
        group.around = &around;
        group.block = &block;
        group.shared = block.shared.data();
        group.shared_bytes = shared_bytes;
        const std::uint32_t first = g * group_lanes;
        group.local = block.local.data() + std::size_t{program.local_bytes} * first;
        group.local_bytes = program.local_bytes;
        start_group(group, first, std::min(group_lanes, threads - first));
    }
}

Progress run_block(BlockState& block, std::uint64_t quantum) {
    std::size_t idle = 0;
    while (idle < block.groups.size()) {
        Group& group = *block.groups[block.next_group];
        const Progress progress = GroupRunner(group, quantum).run();
        block.next_group = (block.next_group + 1) % block.groups.size();
        if (progress == Progress::paused) return Progress::paused;
        ++idle;
        if (idle == block.groups.size() && open_barriers(block)) idle = 0;
    }
    for (const auto& group : block.groups)
        if (!group->fragments.empty()) deadlock(block);
    return Progress::finished;
}

double longest_wait(const BlockState& block) {
    double longest = 0;
    for (const auto& group : block.groups)
        for (const WarpTime& time : group->time)
            longest = std::max(longest, time.waited + time.slept_since_look);
    return longest;
}

} // namespace sim::ptx
