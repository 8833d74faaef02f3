#include "node/device.hpp"

namespace sim {

Device::Device(int number, const NodeFile& file, AddressRange range)
    : index(number), figures(file), memory(range, file.gpu.memory_bytes) {
    legacy_stream.device = this;
    legacy_stream.legacy = true;
    legacy_stream.blocking = false;
    add_pool(0);
}

Pool& Device::add_pool(std::uint64_t max_bytes) {
    pools.push_back(std::make_unique<Pool>(memory, index, max_bytes));
    if (!current_pool) current_pool = pools.front().get();
    return *pools.back();
}

std::uint64_t Device::free_bytes() const {
    return memory.total_bytes() - std::min(memory.total_bytes(), memory.mapped_bytes());
}

void Device::clear() {
    current_pool = nullptr;
    pools.clear();
    memory.clear();
    variables.clear();
    peers.clear();
    orphans.clear();
    legacy_stream.tail = nullptr;
    add_pool(0);
}

} // namespace sim
