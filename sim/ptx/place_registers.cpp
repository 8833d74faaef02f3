// Which registers may share a place: those whose lives do not overlap. Fewer places mean that the
// registers of a group stay in the processor's nearest cache.
#include "ptx/program.hpp"

#include <algorithm>

namespace sim::ptx {
namespace {

/// Life of a register in text order. Instruction number n reads at 2n and writes at 2n + 1, so a
/// result may take the place of an operand that is read for the last time.
struct Life {
    std::uint32_t begin = 0xffffffff;
    std::uint32_t end = 0;

    void touch(std::uint32_t at) {
        begin = std::min(begin, at);
        end = std::max(end, at);
    }
};

using Bits = std::vector<std::uint64_t>;

bool has(const Bits& bits, std::uint32_t index) {
    return (bits[index / 64] >> (index % 64) & 1) != 0;
}
void set(Bits& bits, std::uint32_t index) {
    bits[index / 64] |= std::uint64_t{1} << (index % 64);
}

class Placement {
public:
    Placement(Code& code, const std::vector<std::uint8_t>& widths, const std::vector<bool>& pinned)
        : code_(code), widths_(widths), pinned_(pinned), words_((widths.size() + 63) / 64) {}

    void place() {
        find_uses();
        find_successors();
        propagate();
        find_lives();
        assign();
        rewrite();
    }

private:
    static bool is_register(std::uint32_t operand) {
        return operand != no_operand && (operand & operand_is_constant) == 0;
    }

    /// All that the end of a block reads.
    template <class F> void for_each_at_end(Block& block, F f) {
        f(block.predicate);
        f(block.members);
        if (block.ending == Ending::table) f(block.index);
        if (block.ending == Ending::barrier) {
            Barrier& barrier = code_.barriers[block.target];
            f(barrier.id);
            f(barrier.threads);
            f(barrier.predicate);
        }
        if (block.ending == Ending::call) f(code_.calls[block.target].pointer);
    }

    void find_uses() {
        used_.assign(code_.blocks.size(), Bits(words_));
        defined_.assign(code_.blocks.size(), Bits(words_));
        for (std::size_t b = 0; b < code_.blocks.size(); ++b) {
            const auto use = [&](std::uint32_t operand) {
                if (is_register(operand) && !has(defined_[b], operand)) set(used_[b], operand);
            };
            Block& block = code_.blocks[b];
            use(block.members);
            for (std::uint32_t i = block.first; i < block.last; ++i) {
                const Instruction& in = code_.instructions[i];
                for (unsigned k = in.writes; k < in.writes + in.reads; ++k)
                    use(in.operand[k]);
                use(in.predicate);
                for (unsigned k = 0; k < in.writes; ++k) {
                    if (in.predicate != no_operand)
                        use(in.operand[k]); // other lanes keep what they have
                    else
                        set(defined_[b], in.operand[k]);
                }
            }
            for_each_at_end(block, use);
        }
    }

    void find_successors() {
        successors_.resize(code_.blocks.size());
        for (std::uint32_t b = 0; b < code_.blocks.size(); ++b) {
            const Block& block = code_.blocks[b];
            std::vector<std::uint32_t>& next = successors_[b];
            const bool always = block.predicate == no_operand;
            if (block.ending == Ending::branch) next.push_back(block.target);
            if (block.ending == Ending::table) next = code_.tables[block.target];
            const bool ends = block.ending == Ending::branch || block.ending == Ending::table ||
                              block.ending == Ending::leave || block.ending == Ending::exit;
            if ((!ends || !always) && b + 1 < code_.blocks.size()) next.push_back(b + 1);
        }
    }

    void propagate() {
        in_ = used_;
        out_.assign(code_.blocks.size(), Bits(words_));
        for (bool changed = true; changed;) {
            changed = false;
            for (std::size_t b = code_.blocks.size(); b-- > 0;)
                changed |= propagate(b);
        }
    }

    bool propagate(std::size_t b) {
        bool changed = false;
        for (const std::uint32_t next : successors_[b])
            for (std::size_t w = 0; w < words_; ++w)
                out_[b][w] |= in_[next][w];
        for (std::size_t w = 0; w < words_; ++w) {
            const std::uint64_t now = used_[b][w] | (out_[b][w] & ~defined_[b][w]);
            changed |= now != in_[b][w];
            in_[b][w] = now;
        }
        return changed;
    }

    void find_lives() {
        lives_.resize(widths_.size());
        std::uint32_t number = 0; // of an instruction; the end of a block counts as one
        for (std::size_t b = 0; b < code_.blocks.size(); ++b) {
            Block& block = code_.blocks[b];
            const std::uint32_t begin = 2 * number;
            const auto touch = [&](std::uint32_t operand, std::uint32_t at) {
                if (is_register(operand)) lives_[operand].touch(at);
            };
            touch(block.members, begin);
            for (std::uint32_t i = block.first; i < block.last; ++i, ++number) {
                const Instruction& in = code_.instructions[i];
                // where lanes look at other lanes, results must not cover operands
                const std::uint32_t read = 2 * number + (in.elementwise ? 0 : 1);
                for (unsigned k = in.writes; k < in.writes + in.reads; ++k)
                    touch(in.operand[k], read);
                touch(in.predicate, 2 * number + 1);
                for (unsigned k = 0; k < in.writes; ++k)
                    touch(in.operand[k], 2 * number + 1);
            }
            for_each_at_end(block, [&](std::uint32_t operand) { touch(operand, 2 * number + 1); });
            ++number;
            live_through(b, begin, 2 * number);
        }
    }

    void live_through(std::size_t b, std::uint32_t begin, std::uint32_t end) {
        for (std::uint32_t r = 0; r < widths_.size(); ++r) {
            if (has(in_[b], r)) lives_[r].touch(begin);
            if (has(out_[b], r)) lives_[r].touch(end);
        }
    }

    void assign() {
        std::vector<std::uint32_t> order;
        for (std::uint32_t r = 0; r < widths_.size(); ++r)
            if (pinned_[r] || lives_[r].begin != 0xffffffff) order.push_back(r);
        std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
            return lives_[a].begin < lives_[b].begin;
        });
        place_.assign(widths_.size(), 0);
        struct Taken {
            std::uint32_t end, place;
        };
        std::vector<Taken> taken[9];
        std::vector<std::uint32_t> free[9];
        for (const std::uint32_t r : order) {
            const unsigned width = widths_[r];
            std::erase_if(taken[width], [&](const Taken& other) {
                if (other.end >= lives_[r].begin) return false;
                free[width].push_back(other.place);
                return true;
            });
            if (pinned_[r] || free[width].empty()) {
                place_[r] = places_[width]++;
            } else {
                place_[r] = free[width].back();
                free[width].pop_back();
            }
            if (!pinned_[r]) taken[width].push_back({lives_[r].end, place_[r]});
        }
        std::uint32_t offset = 0;
        for (const unsigned width : {8u, 4u, 2u, 1u}) {
            start_[width] = offset;
            offset += places_[width] * array_bytes(width);
        }
        code_.frame_bytes = offset;
    }

    void rewrite(std::uint32_t& operand) const {
        if (is_register(operand))
            operand = start_[widths_[operand]] + place_[operand] * array_bytes(widths_[operand]);
    }

    void rewrite() {
        for (Instruction& in : code_.instructions) {
            for (unsigned k = 0; k < static_cast<unsigned>(in.writes) + in.reads; ++k)
                rewrite(in.operand[k]);
            rewrite(in.predicate);
        }
        for (Block& block : code_.blocks) {
            rewrite(block.predicate);
            rewrite(block.members);
            if (block.ending == Ending::table) rewrite(block.index);
        }
        for (Barrier& barrier : code_.barriers) {
            rewrite(barrier.id);
            rewrite(barrier.threads);
            rewrite(barrier.predicate);
            rewrite(barrier.destination);
        }
        for (Call& call : code_.calls) {
            rewrite(call.pointer);
            for (auto* list : {&call.arguments, &call.results})
                for (std::uint32_t& piece : *list)
                    rewrite(piece);
        }
        for (auto* list : {&code_.parameters, &code_.results})
            for (std::uint32_t& piece : *list)
                rewrite(piece);
    }

    Code& code_;
    const std::vector<std::uint8_t>& widths_;
    const std::vector<bool>& pinned_;
    std::size_t words_;
    std::vector<Bits> used_, defined_, in_, out_;
    std::vector<std::vector<std::uint32_t>> successors_;
    std::vector<Life> lives_;
    std::vector<std::uint32_t> place_;
    std::uint32_t places_[9] = {};
    std::uint32_t start_[9] = {};
};

} // namespace

void place_registers(Code& code, const std::vector<std::uint8_t>& widths,
                     const std::vector<bool>& pinned) {
    Placement(code, widths, pinned).place();
}

} // namespace sim::ptx
