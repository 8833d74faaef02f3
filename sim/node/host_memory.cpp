#include "node/host_memory.hpp"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace sim {
namespace {

// Small pinned blocks are filled with this, so that nobody relies on zeros that a real driver
// does not promise. Large ones stay untouched: writing them would cost real memory.
constexpr std::uint64_t poisoned_bytes = 1ull << 20;
constexpr int poison = 0xFF;

std::uint64_t whole_pages(std::uint64_t bytes) {
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

const HostRange* holder(const std::map<std::uint64_t, HostRange>& ranges, std::uint64_t address) {
    auto after = ranges.upper_bound(address);
    if (after == ranges.begin()) return nullptr;
    const HostRange& range = std::prev(after)->second;
    return address < range.end() ? &range : nullptr;
}

} // namespace

std::optional<std::uint64_t> HostMemory::allocate(std::uint64_t bytes, HostKind kind,
                                                  unsigned flags, int device) {
    if (bytes > pinnable_ - pinned_) return std::nullopt;
    void* memory = mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return std::nullopt;
    madvise(memory, whole_pages(bytes), MADV_HUGEPAGE); // fewer page faults
    if (bytes <= poisoned_bytes && kind == HostKind::allocated) std::memset(memory, poison, bytes);
    const auto begin = reinterpret_cast<std::uint64_t>(memory);
    ranges_[begin] = {begin, bytes, kind, flags, device, kind != HostKind::managed};
    released_.erase(begin);
    pinned_ += bytes;
    return begin;
}

void HostMemory::release(std::uint64_t begin) {
    auto found = ranges_.find(begin);
    pinned_ -= found->second.bytes;
    munmap(reinterpret_cast<void*>(begin), whole_pages(found->second.bytes));
    released_[begin] = found->second;
    ranges_.erase(found);
}

bool HostMemory::add_registered(std::uint64_t begin, std::uint64_t bytes, unsigned flags,
                                int device) {
    if (bytes > pinnable_ - pinned_) return false;
    ranges_[begin] = {begin, bytes, HostKind::registered, flags, device};
    pinned_ += bytes;
    return true;
}

void HostMemory::remove_registered(std::uint64_t begin) {
    auto found = ranges_.find(begin);
    pinned_ -= found->second.bytes;
    ranges_.erase(found);
}

void HostMemory::keep_in_host(std::uint64_t address, bool keep) {
    ranges_.at(holder(ranges_, address)->begin).kept_in_host = keep;
}

const HostRange* HostMemory::find(std::uint64_t address) const {
    return holder(ranges_, address);
}

const HostRange* HostMemory::find_released(std::uint64_t address) const {
    return holder(released_, address);
}

const HostRange* HostMemory::overlap(std::uint64_t begin, std::uint64_t bytes) const {
    auto next = ranges_.lower_bound(begin + bytes);
    if (next == ranges_.begin()) return nullptr;
    const HostRange& range = std::prev(next)->second;
    return range.end() > begin ? &range : nullptr;
}

} // namespace sim
