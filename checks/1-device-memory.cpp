// Checks of lesson 1: device memory.
#include "1-device-memory/device-memory.hpp"

#include "support/bandwidth.hpp"
#include "support/call_log.hpp"
#include "support/catch.hpp"
#include "support/delay.hpp"
#include "support/devices.hpp"
#include "support/pattern.hpp"
#include "support/report.hpp"
#include "support/untouched.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "common/stream.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using lesson::make_sharded_keys;
using lesson::Shard;
using lesson::ShardedKeys;

using Vector = std::unique_ptr<ShardedKeys>;
using Devices = std::vector<int>;

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr std::size_t prime = 100'003;

std::string section(const char* name) {
    return std::string("lessons/1-device-memory/README.md, section \"") + name + "\"";
}

std::string gpu(int device) {
    return "GPU " + std::to_string(device);
}

std::string keys(std::size_t n) {
    return std::to_string(n) + (n == 1 ? " key" : " keys");
}

std::string over(const Devices& devices) {
    std::string text = " over";
    for (const int device : devices)
        text += " " + std::to_string(device);
    return text;
}

/// All GPUs in a hostile order; a single one gets three shards.
Devices target_devices() {
    const Devices devices = check::hostile_order();
    return devices.size() > 1 ? devices : Devices(3, devices[0]);
}

/// Sizes at which splits go wrong.
std::vector<std::size_t> awkward_sizes(std::size_t shards) {
    const std::size_t even = shards * 4096;
    return {0, 1, shards - 1, shards, shards + 1, even - 1, even, even + 1, prime};
}

/// The two arguments of fill(): other ones in each run, and for each `id`.
struct Fill {
    explicit Fill(std::uint64_t id)
        : first(check::pattern_bits(id, 0)), step(check::pattern_bits(id, 1) | 1) {}

    void operator()(ShardedKeys& vector) const { vector.fill(first, step); }

    std::vector<std::uint64_t> expected(const Shard& shard) const {
        std::vector<std::uint64_t> keys(shard.size);
        for (std::size_t i = 0; i < shard.size; ++i)
            keys[i] = first + (shard.offset + i) * step;
        return keys;
    }

    std::uint64_t first, step;
};

/// Copies a shard to the host without waiting for anything but the copy itself: whatever is not
/// there yet is missing.
std::vector<std::uint64_t> read_now(const Shard& shard, cudaStream_t stream) {
    std::vector<std::uint64_t> keys(shard.size);
    CUDA_CHECK(cudaMemcpyAsync(keys.data(), shard.keys, shard.size * sizeof(std::uint64_t),
                               cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    return keys;
}

void check_keys(const ShardedKeys& vector, const Fill& fill, const std::string& what) {
    const Stream stream;
    for (std::size_t k = 0; k < vector.shards().size(); ++k) {
        const Shard& shard = vector.shards()[k];
        if (shard.size == 0) continue;
        check::same(what + ", shard " + std::to_string(k), read_now(shard, stream),
                    fill.expected(shard));
    }
}

cudaPointerAttributes attributes_of(const void* memory) {
    cudaPointerAttributes attributes{};
    CUDA_CHECK(cudaPointerGetAttributes(&attributes, memory));
    return attributes;
}

int current_device() {
    int device = -1;
    CUDA_CHECK(cudaGetDevice(&device));
    return device;
}

/// Whether making the vector ends with a CudaError, whose trace in the runtime is then removed.
bool refuses_to_make(const Devices& devices, std::size_t size) {
    try {
        make_sharded_keys(devices, size);
        return false;
    } catch (const CudaError&) {
        cudaGetLastError();
        return true;
    }
}

void wait_for(int device) {
    const DeviceGuard guard(device);
    CUDA_CHECK(cudaDeviceSynchronize());
}

bool is_launch(const check::Call& call) {
    const check::Names& names = check::kernel_launches;
    return std::find(names.begin(), names.end(), call.name) != names.end();
}

/// What one thread has done so far.
struct Turns {
    int launches = 0;
    std::string wait; ///< since the last launch; empty when there was none
};

/// CHECKs that each shard, from its first key to its last, is on the GPU that it is meant for.
bool lies_where_it_should(const ShardedKeys& vector, const Devices& devices,
                          const std::string& setting) {
    const std::vector<Shard>& shards = vector.shards();
    if (!check::expect(shards.size() == devices.size(),
                       "there are " + std::to_string(shards.size()) + " shards for " +
                           std::to_string(devices.size()) + " devices"))
        return false;
    bool ok = true;
    for (std::size_t k = 0; k < devices.size(); ++k) {
        if (shards[k].size == 0) continue;
        const std::string what =
            setting + ", shard " + std::to_string(k) + " is meant for " + gpu(devices[k]);
        const int first = attributes_of(shards[k].keys).device;
        const int last = attributes_of(shards[k].keys + shards[k].size - 1).device;
        ok &= check::expect(first == devices[k], what + " and begins on " + gpu(first));
        ok &= check::expect(last == devices[k], what + " and ends on " + gpu(last));
    }
    return ok;
}

/// CHECKs that the shards are a split of `size` keys.
bool is_whole(const ShardedKeys& vector, const Devices& devices, std::size_t size) {
    const std::string what = keys(size) + over(devices) + ": ";
    const std::size_t share = size / devices.size();
    bool ok =
        check::expect(vector.shards().size() == devices.size(),
                      what + "there are " + std::to_string(vector.shards().size()) + " shards");
    std::size_t end = 0;
    for (const Shard& shard : vector.shards()) {
        ok &= check::expect(shard.offset == end,
                            what + "a shard begins at key " + std::to_string(shard.offset) +
                                ", the one before it ends at " + std::to_string(end));
        ok &= check::expect(shard.size <= share + lesson::max_excess,
                            what + "a shard has " + keys(shard.size) +
                                ", which is far more than its share of " + keys(share));
        end = shard.offset + shard.size;
    }
    return ok &
           check::expect(end == size, what + "the last shard ends at key " + std::to_string(end) +
                                          ", the vector at " + std::to_string(size));
}

} // namespace

TEST_CASE("each shard lies on the GPU that it is meant for", "[pts:3][gpus:2][starter-fails]") {
    check::require_devices(2);
    check::explain("cudaMalloc allocates on the device that is current at that moment, in the "
                   "calling thread. The list says which GPU each shard is for: make that one "
                   "current before the allocation.",
                   section("The idea"));
    const Devices devices = check::hostile_order();
    const Devices reversed(devices.rbegin(), devices.rend());
    for (const int current : {0, devices.back(), devices.front()}) {
        const DeviceGuard guard(current);
        const std::string setting = "with " + gpu(current) + " current";
        for (const Devices& targets : {devices, reversed}) {
            const Vector vector = make_sharded_keys(targets, prime);
            if (!lies_where_it_should(*vector, targets, setting)) return;
        }
    }
}

TEST_CASE("the shards are device memory", "[pts:1]") {
    check::explain(
        "The vector is to lie in the memory of the GPUs. Managed memory moves to whoever "
        "touches it, and mapped memory stays with the host.",
        "lessons/1-device-memory/device-memory.hpp, make_sharded_keys");
    const Vector vector = make_sharded_keys(target_devices(), prime);
    for (std::size_t k = 0; k < vector->shards().size(); ++k) {
        const Shard& shard = vector->shards()[k];
        if (shard.size == 0) continue;
        const cudaMemoryType type = attributes_of(shard.keys).type;
        check::expect(type == cudaMemoryTypeDevice,
                      "shard " + std::to_string(k) + " is memory of type " + std::to_string(type) +
                          ", expected " + std::to_string(cudaMemoryTypeDevice) + " (device)");
    }
}

TEST_CASE("the shards hold the whole vector", "[pts:2][starter-fails]") {
    check::explain("A division rounds down: what is left over has to go to some shard. Shards "
                   "follow each other without a gap, and the last one ends where the vector does.",
                   section("Your task"));
    const Devices all = target_devices();
    for (const Devices& devices : {all, Devices(4, all[0])}) {
        for (const std::size_t size : awkward_sizes(devices.size())) {
            const Vector vector = make_sharded_keys(devices, size);
            if (!is_whole(*vector, devices, size)) break;
        }
    }
}

TEST_CASE("every key is right", "[pts:2]") {
    check::explain("Key i is first + i * step, where i counts from the beginning of the vector, "
                   "not of the shard. A kernel has to run on the GPU whose memory it writes.",
                   section("Background"));
    const Devices devices = target_devices();
    std::uint64_t id = 0;
    for (const std::size_t size : awkward_sizes(devices.size())) {
        const Vector vector = make_sharded_keys(devices, size);
        for (const int current : {devices.back(), 0}) {
            const DeviceGuard guard(current);
            const Fill fill(++id);
            fill(*vector);
            check_keys(*vector, fill,
                       keys(size) + over(devices) + ", " + gpu(current) + " current");
        }
    }
}

TEST_CASE("the keys are there once fill returns", "[pts:2]") {
    check::explain("Launches return before the kernel has run. fill() has to wait for every GPU "
                   "that it has put to work; cudaDeviceSynchronize waits for the current one only.",
                   section("Functions you may need"));
    const Devices devices = target_devices();
    const Vector vector = make_sharded_keys(devices, prime);
    Fill{1}(*vector);
    check::CallLog log;
    log.delay_before(check::kernel_launches, std::chrono::milliseconds(5));
    for (std::size_t slow = 0; slow < devices.size(); ++slow) {
        const DeviceGuard guard(devices[(slow + 1) % devices.size()]);
        const Fill fill(2 + slow);
        check::delay(devices[slow], nullptr, std::chrono::milliseconds(20));
        fill(*vector);
        check_keys(*vector, fill, "with " + gpu(devices[slow]) + " the slowest");
    }
}

TEST_CASE("all GPUs are put to work before one is waited for", "[pts:2][starter-fails]") {
    check::explain("A thread that waits between two launches lets the next GPU idle until the one "
                   "before is done: the GPUs take turns.",
                   section("The idea"));
    const Devices devices = target_devices();
    const Vector vector = make_sharded_keys(devices, prime);
    check::CallLog log;
    Fill{1}(*vector);
    check::expect(log.count(check::kernel_launches) >= 1, "fill() launched no kernel");

    check::Names relevant = check::kernel_launches;
    relevant.insert(relevant.end(), check::waits.begin(), check::waits.end());
    std::map<std::thread::id, Turns> threads;
    for (const check::Call& call : log.calls(relevant)) {
        Turns& turns = threads[call.thread];
        if (!is_launch(call)) {
            if (turns.launches > 0) turns.wait = check::to_text(call);
            continue;
        }
        const bool in_turns = !turns.wait.empty();
        check::expect(!in_turns, "after " + std::to_string(turns.launches) + " of " +
                                     std::to_string(devices.size()) +
                                     " launches, the thread waited: " + turns.wait);
        if (in_turns) break;
        ++turns.launches;
    }
}

TEST_CASE("all GPUs work at the same time", "[pts:2][gpus:2][starter-fails]") {
    check::require_devices(2);
    check::explain("Each GPU was made to take a while. If all work at the same time, that while "
                   "passes once; if each starts when the one before is done, or if all shards are "
                   "on one GPU, it passes once for each shard.",
                   section("The idea"));
    constexpr auto a_while = std::chrono::milliseconds(2);
    const Devices devices = check::hostile_order();
    const Vector vector = make_sharded_keys(devices, prime);
    const auto reference = [&] {
        for (const int device : devices)
            check::delay(device, nullptr, a_while);
        for (const int device : devices)
            wait_for(device);
    };
    const auto delayed_fill = [&] {
        check::CallLog log;
        log.delay_before(check::kernel_launches, a_while);
        vector->fill(1, 1);
    };
    check::compare_times("fill by " + std::to_string(devices.size()) + " busy GPUs",
                         check::timed(devices[0], reference),
                         check::timed(devices[0], delayed_fill), 1.5);
}

TEST_CASE("the GPUs reach their combined rate", "[pts:2][gpus:2][starter-fails]") {
    check::require_devices(2);
    check::explain("Each GPU writes its own memory, so several are several times as fast as one: "
                   "if each has its own shard, and if none waits for another.",
                   section("What you see"));
    // Large enough that launches don't count: on the simulated node, that leaves two GPUs.
    const Devices devices = check::simulated() ? check::hostile_order(2) : check::hostile_order();
    const std::size_t share = (check::simulated() ? 64 : 1024) * mebibyte;
    const std::size_t size = devices.size() * share / sizeof(std::uint64_t);
    const Vector vector = make_sharded_keys(devices, size);
    std::vector<check::GuardedDevice<unsigned char>> plain;
    for (const int device : devices)
        plain.emplace_back(device, share);

    const auto reference = [&] {
        for (auto& memory : plain) {
            const DeviceGuard guard(memory.device());
            CUDA_CHECK(cudaMemsetAsync(memory.data(), 1, memory.size()));
        }
        for (const int device : devices)
            wait_for(device);
    };
    const Fill fill(1);
    check::compare_rates("fill by " + std::to_string(devices.size()) + " GPUs",
                         size * sizeof(std::uint64_t), check::timed(devices[0], reference),
                         check::timed(devices[0], [&] { fill(*vector); }), 0.7);
    check_keys(*vector, fill, keys(size));
}

TEST_CASE("the caller finds its current device unchanged", "[pts:2][gpus:2][starter-fails]") {
    check::require_devices(2);
    check::explain("The current device belongs to the thread, and so to the caller as well. Put "
                   "back the one that was found, which need not be 0.",
                   section("The idea"));
    const Devices devices = check::hostile_order();
    for (std::size_t k = 0; k < devices.size(); ++k) {
        const int here = devices[k];
        const int elsewhere = devices[(k + 1) % devices.size()];
        INFO("make_sharded_keys with " << gpu(here) << " current, the rest with "
                                       << gpu(elsewhere));
        Vector vector = check::untouched(here, [&] { return make_sharded_keys(devices, prime); });
        check::untouched(elsewhere, [&] { vector->fill(1, 1); });
        check::untouched(elsewhere, [&] { vector.reset(); });
    }
}

TEST_CASE("no error is left behind", "[pts:1]") {
    check::explain(
        "A call inside failed, and nobody looked. The error stays until somebody asks for "
        "the last one, and is then blamed for it.",
        section("Background"));
    cudaGetLastError();
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, prime}) {
        Vector vector = make_sharded_keys(target_devices(), size);
        vector->fill(1, 1);
        const cudaError_t made = cudaGetLastError();
        vector.reset();
        const cudaError_t freed = cudaGetLastError();
        check::expect(made == cudaSuccess, keys(size) + ": making and filling the vector left " +
                                               cudaGetErrorName(made) + " behind");
        check::expect(freed == cudaSuccess, keys(size) + ": freeing the vector left " +
                                                cudaGetErrorName(freed) + " behind");
    }
}

TEST_CASE("another thread may use the vector", "[pts:2]") {
    check::explain("Every thread has its own current device, at first 0. What one thread has set "
                   "holds for no other: set the device where it is needed.",
                   section("The idea"));
    const Devices devices = target_devices();
    const DeviceGuard guard(devices.front());
    std::uint64_t id = 0;
    for (const Devices& targets : {devices, Devices{devices.front()}}) {
        const Fill first(++id), second(++id);
        const Vector made_here = make_sharded_keys(targets, prime);
        check::on_second_thread([&] { first(*made_here); });
        check_keys(*made_here, first, "made here, filled by another thread");

        Vector made_there =
            check::on_second_thread([&] { return make_sharded_keys(targets, prime); });
        second(*made_there);
        check_keys(*made_there, second, "made by another thread, filled here");
        check::on_second_thread([&] { made_there.reset(); });
        check_keys(*made_here, first, "after the other vector is gone");
    }
}

TEST_CASE("a failed allocation is reported and undone", "[pts:2]") {
    check::explain(
        "When the memory of one GPU is full, the caller must hear of it by a CudaError, "
        "and what had been allocated on the others must be freed. No destructor runs for "
        "an object whose constructor throws, only for its members.",
        "lessons/1-device-memory/device-memory.hpp, make_sharded_keys");
    const Devices devices = target_devices();
    make_sharded_keys(devices, prime);
    for (int nth = 1; nth <= static_cast<int>(devices.size()); ++nth) {
        check::CallLog log;
        log.fail(check::device_allocations, nth, cudaErrorMemoryAllocation);
        const bool refused = refuses_to_make(devices, prime);
        if (nth > 1 && log.refused() == 0) break; // fewer allocations than shards
        const std::string what = "allocation " + std::to_string(nth) + " failed";
        check::expect(refused, what + ": make_sharded_keys did not throw CudaError");
        check::nothing_left(log, what);
    }
    const Vector vector = make_sharded_keys(devices, prime);
    const Fill fill(1);
    fill(*vector);
    check_keys(*vector, fill, "made after the failures");
}

TEST_CASE("the current device is the same after a failed allocation", "[pts:1][gpus:2]") {
    check::require_devices(2);
    check::explain("An exception leaves the function as a return does: what puts the device back "
                   "has to be a destructor.",
                   section("The idea"));
    const Devices devices = check::hostile_order();
    for (int nth = 1; nth <= static_cast<int>(devices.size()); ++nth) {
        const int current = devices[nth % devices.size()];
        const DeviceGuard guard(current);
        check::CallLog log;
        log.fail(check::device_allocations, nth, cudaErrorMemoryAllocation);
        refuses_to_make(devices, prime);
        const int found = current_device();
        check::expect(found == current, "allocation " + std::to_string(nth) +
                                            " failed: " + gpu(current) + " was current before, " +
                                            gpu(found) + " is now");
    }
}

TEST_CASE("a GPU that does not exist is reported", "[pts:1]") {
    check::explain("cudaSetDevice fails for a number that no GPU has, and the device before stays "
                   "current. Unchecked, the shard lands there.",
                   section("Background"));
    const int missing = check::device_count();
    for (const Devices& devices : {Devices{missing}, Devices{0, missing}, Devices{missing, 0}}) {
        make_sharded_keys({0}, 1);
        check::CallLog log;
        check::expect(refuses_to_make(devices, prime),
                      "a vector" + over(devices) + ", where " + gpu(missing) +
                          " does not exist: make_sharded_keys did not throw CudaError");
        check::nothing_left(log, "a vector" + over(devices));
    }
}

TEST_CASE("nothing is left over after 50 rounds", "[pts:2]") {
    check::explain(
        "Every shard has to be freed when its vector goes. It doesn't matter which device "
        "is current then.",
        section("Functions you may need"));
    const Devices devices = target_devices();
    const std::size_t size = devices.size() * mebibyte / 4 / sizeof(std::uint64_t);
    const auto round = [&] { make_sharded_keys(devices, size)->fill(1, 1); };
    round(); // whatever is made once
    // Free memory is not looked at: other programs on the same GPU change it.
    check::CallLog log;
    for (int i = 0; i < 50; ++i)
        round();
    check::nothing_left(log, "50 rounds");
}
