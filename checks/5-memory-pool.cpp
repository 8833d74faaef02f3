// Checks of lesson 5: memory pool.
#include "5-memory-pool/memory-pool.hpp"

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
#include "common/stopwatch.hpp"
#include "common/stream.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace {

using lesson::HeatSolver;
using lesson::make_heat_solver;
using std::chrono::milliseconds;

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// A pool grows by pieces of 32 MiB on current GPUs. One holds a plate of 17 MiB, but not the
/// changes of its cells as well, so these come and go with a piece of their own.
constexpr std::size_t large_width = 2112;

/// Enough cells for all threads of a kernel, few enough for many steps.
constexpr std::size_t small_width = 257;

/// Whole numbers of up to 12 bits stay exact in a float for as many steps.
constexpr int exact_steps = 4;

std::string page(const char* section) {
    return std::string("lessons/5-memory-pool/README.md, \"") + section + "\"";
}

constexpr std::size_t bytes_of(std::size_t width) {
    return width * width * sizeof(float);
}

using Plate = std::vector<float>;

Plate make_plate(std::size_t width, std::uint64_t id) {
    return check::make_pattern<float>(width * width, id);
}

/// One step of the host; returns the largest change.
float step_on_host(Plate& plate, std::size_t width) {
    const Plate before = plate;
    float largest = 0;
    for (std::size_t row = 1; row + 1 < width; ++row) {
        for (std::size_t i = row * width + 1; i + 1 < (row + 1) * width; ++i) {
            const float neighbours =
                before[i - 1] + before[i + 1] + before[i - width] + before[i + width];
            const float change = lesson::spread * (neighbours - 4 * before[i]);
            plate[i] += change;
            largest = std::max(largest, std::fabs(change));
        }
    }
    return largest;
}

float largest_difference(const Plate& a, const Plate& b) {
    float largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        largest = std::max(largest, std::fabs(a[i] - b[i]));
    return largest;
}

std::string on_gpu(int device) {
    return " on GPU " + std::to_string(device);
}

/// Makes steps on these GPUs and on the host, and compares plates and changes.
void check_steps(HeatSolver& solver, const std::vector<int>& devices, std::size_t width,
                 int steps = exact_steps) {
    std::vector<Plate> expected;
    for (std::size_t plate = 0; plate < devices.size(); ++plate) {
        expected.push_back(make_plate(width, 100 + plate));
        solver.load(plate, expected.back().data());
    }
    for (int number = 1; number <= steps; ++number) {
        const std::vector<float> changes = solver.step();
        std::vector<float> expected_changes;
        for (Plate& plate : expected)
            expected_changes.push_back(step_on_host(plate, width));
        check::same("largest changes in step " + std::to_string(number) + ", width " +
                        std::to_string(width),
                    changes, expected_changes);
    }
    for (std::size_t plate = 0; plate < devices.size(); ++plate) {
        check::GuardedHost<float> stored(width * width);
        solver.store(plate, stored.data());
        const std::string what = "plate " + std::to_string(plate) + on_gpu(devices[plate]) +
                                 ", width " + std::to_string(width);
        check::same(what, stored.data(), expected[plate].data(), stored.size());
        stored.check_guards(what);
    }
}

void load_all(HeatSolver& solver, std::size_t plates, std::size_t width) {
    const Plate plate(width * width, 1.0F);
    for (std::size_t number = 0; number < plates; ++number)
        solver.load(number, plate.data());
}

void synchronize(const std::vector<int>& devices) {
    for (const int device : devices) {
        const DeviceGuard guard(device);
        CUDA_CHECK(cudaDeviceSynchronize());
    }
}

class PinnedFloats {
public:
    explicit PinnedFloats(std::size_t count) {
        CUDA_CHECK(cudaMallocHost(reinterpret_cast<void**>(&memory_), count * sizeof(float)));
        check::poison(memory_, count);
    }
    PinnedFloats(const PinnedFloats&) = delete;
    PinnedFloats& operator=(const PinnedFloats&) = delete;
    ~PinnedFloats() { cudaFreeHost(memory_); }

    float* get() const { return memory_; }

private:
    float* memory_ = nullptr;
};

std::unique_ptr<Stream> make_stream(int device) {
    const DeviceGuard guard(device);
    return std::make_unique<Stream>();
}

cudaMemPool_t current_pool(int device) {
    cudaMemPool_t pool = nullptr;
    CUDA_CHECK(cudaDeviceGetMemPool(&pool, device));
    return pool;
}

std::uint64_t attribute(cudaMemPool_t pool, cudaMemPoolAttr name) {
    std::uint64_t value = 0;
    CUDA_CHECK(cudaMemPoolGetAttribute(pool, name, &value));
    return value;
}

void set_attribute(cudaMemPool_t pool, cudaMemPoolAttr name, std::uint64_t value) {
    CUDA_CHECK(cudaMemPoolSetAttribute(pool, name, &value));
}

/// The attributes that say how a pool may reuse memory are ints.
int reuse(cudaMemPool_t pool, cudaMemPoolAttr name) {
    int value = 0;
    CUDA_CHECK(cudaMemPoolGetAttribute(pool, name, &value));
    return value;
}

/// As a caller may: the current pools keep everything, so the release threshold is no matter.
void keep_all_memory(const std::vector<int>& devices) {
    for (const int device : devices)
        set_attribute(current_pool(device), cudaMemPoolAttrReleaseThreshold, UINT64_MAX);
}

/// A pool of the check on one GPU.
class OwnPool {
public:
    explicit OwnPool(int device) {
        cudaMemPoolProps properties{};
        properties.allocType = cudaMemAllocationTypePinned;
        properties.location.type = cudaMemLocationTypeDevice;
        properties.location.id = device;
        CUDA_CHECK(cudaMemPoolCreate(&pool_, &properties));
    }
    OwnPool(const OwnPool&) = delete;
    OwnPool& operator=(const OwnPool&) = delete;
    ~OwnPool() { cudaMemPoolDestroy(pool_); }

    cudaMemPool_t get() const { return pool_; }

private:
    cudaMemPool_t pool_ = nullptr;
};

/// A pool that is the current one of its GPU for as long as this lives.
class CurrentPool {
public:
    explicit CurrentPool(int device)
        : device_(device), former_(current_pool(device)), own_(device) {
        CUDA_CHECK(cudaDeviceSetMemPool(device_, own_.get()));
    }
    CurrentPool(const CurrentPool&) = delete;
    CurrentPool& operator=(const CurrentPool&) = delete;
    ~CurrentPool() { cudaDeviceSetMemPool(device_, former_); }

private:
    int device_;
    cudaMemPool_t former_;
    OwnPool own_;
};

/// The current pools of these GPUs and all pools that the submission has named.
std::set<cudaMemPool_t> pools_in_use(const check::CallLog& log, const std::vector<int>& devices) {
    std::set<cudaMemPool_t> pools;
    for (const int device : devices)
        pools.insert(current_pool(device));
    for (const check::Call& call : log.calls(check::pool_allocations)) {
        if (call.pool) pools.insert(call.pool);
    }
    return pools;
}

/// Whether each pool still holds, after a step, all that it lent out at its peak.
void check_memory_is_kept(const std::vector<int>& devices) {
    const check::CallLog log;
    const auto solver = make_heat_solver(devices, large_width);
    load_all(*solver, devices.size(), large_width);
    solver->step();
    const std::set<cudaMemPool_t> pools = pools_in_use(log, devices);
    for (const cudaMemPool_t pool : pools)
        set_attribute(pool, cudaMemPoolAttrUsedMemHigh, 0);
    solver->step();
    for (const cudaMemPool_t pool : pools) {
        const std::uint64_t peak = attribute(pool, cudaMemPoolAttrUsedMemHigh);
        const std::uint64_t kept = attribute(pool, cudaMemPoolAttrReservedMemCurrent);
        check::expect(kept >= peak,
                      "a pool lent out " + std::to_string(peak / mebibyte) +
                          " MiB during the step and holds " + std::to_string(kept / mebibyte) +
                          " MiB after it; its release threshold is " +
                          std::to_string(attribute(pool, cudaMemPoolAttrReleaseThreshold)) +
                          " bytes");
    }
}

/// What a step asks of one GPU beside its arithmetic, with memory from a pool of the check.
class BytesOfAStep {
public:
    BytesOfAStep(int device, std::uint64_t release_threshold)
        : device_(device), pool_(device), stream_(make_stream(device)), result_(1),
          plate_(device, large_width * large_width) {
        set_attribute(pool_.get(), cudaMemPoolAttrReleaseThreshold, release_threshold);
    }

    void move() {
        const DeviceGuard guard(device_);
        const cudaStream_t stream = *stream_;
        const std::size_t bytes = bytes_of(large_width);
        void* change = nullptr;
        void* largest = nullptr;
        CUDA_CHECK(cudaMallocFromPoolAsync(&change, bytes, pool_.get(), stream));
        CUDA_CHECK(cudaMallocFromPoolAsync(&largest, sizeof(float), pool_.get(), stream));
        CUDA_CHECK(cudaMemsetAsync(largest, 0, sizeof(float), stream));
        // A step moves five plates if caches catch every further use of a cell, and nine without
        // any. This moves seven: each copy reads as much as it writes.
        for (const std::size_t part : {bytes, bytes, bytes, bytes / 2})
            CUDA_CHECK(
                cudaMemcpyAsync(change, plate_.data(), part, cudaMemcpyDeviceToDevice, stream));
        CUDA_CHECK(
            cudaMemcpyAsync(result_.get(), largest, sizeof(float), cudaMemcpyDeviceToHost, stream));
        CUDA_CHECK(cudaFreeAsync(largest, stream));
        CUDA_CHECK(cudaFreeAsync(change, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
    }

private:
    int device_;
    OwnPool pool_;
    std::unique_ptr<Stream> stream_;
    PinnedFloats result_;
    check::GuardedDevice<float> plate_;
};

/// Writes to all memory that a pool has in reserve, as another user of the pool might.
void overwrite_reserve(cudaMemPool_t pool, cudaStream_t stream) {
    std::vector<void*> blocks;
    for (std::size_t bytes = 16 * mebibyte; bytes >= 64 * 1024;) {
        void* block = nullptr;
        const std::uint64_t reserved = attribute(pool, cudaMemPoolAttrReservedMemCurrent);
        if (reserved < attribute(pool, cudaMemPoolAttrUsedMemCurrent) + bytes) {
            bytes /= 2;
            continue;
        }
        CUDA_CHECK(cudaMallocFromPoolAsync(&block, bytes, pool, stream));
        blocks.push_back(block);
        CUDA_CHECK(cudaMemsetAsync(block, check::poison_byte, bytes, stream));
        const bool grown = attribute(pool, cudaMemPoolAttrReservedMemCurrent) > reserved;
        if (grown) bytes /= 2;
    }
    for (void* block : blocks)
        CUDA_CHECK(cudaFreeAsync(block, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
}

/// Lets `call` fail at its first allocation, at its second, and so on until it has no further one,
/// or some more than enough have been tried.
/// `check_state` looks at what each failure left behind.
template <class Function, class Check>
void fail_each_allocation(check::CallLog& log, const std::string& name, Function&& call,
                          Check&& check_state) {
    constexpr int enough = 100;
    check::Names allocations = check::device_allocations;
    allocations.insert(allocations.end(), check::pinned_allocations.begin(),
                       check::pinned_allocations.end());
    for (int nth = 1; nth <= enough; ++nth) {
        const int refused = log.refused();
        log.fail(allocations, nth, cudaErrorMemoryAllocation);
        bool reported = false;
        try {
            call();
        } catch (const CudaError&) {
            reported = true;
        }
        log.behave();
        if (log.refused() == refused) return;
        cudaGetLastError();
        const std::string which = "allocation " + std::to_string(nth) + " of " + name;
        check::expect(reported, which + " failed, and the caller was not told");
        check_state(which);
    }
}

constexpr const char* waits_for_others =
    "Something that the solver calls waits for everything on the GPU, and so for work that is none "
    "of its business. cudaMalloc and cudaFree do; cudaDeviceSynchronize does.";

constexpr const char* returns_memory =
    "When the host waits, a pool returns what nobody uses to the system, down to its release "
    "threshold, and the next step has it mapped anew.";

} // namespace

TEST_CASE("plates spread heat as on the host", "[pts:1]") {
    check::explain("A plate or its largest change is not what the same steps on the host give.",
                   "lessons/5-memory-pool/memory-pool.hpp");
    const std::vector<int> devices = check::hostile_order(3);
    for (const std::size_t width : {1, 2, 3, 17, 256, 257, 521}) {
        const auto solver = check::untouched(check::other_device(devices.front()),
                                             [&] { return make_heat_solver(devices, width); });
        check_steps(*solver, devices, width, width == small_width ? exact_steps : 2);
    }
}

TEST_CASE("the caller finds its device and last error unchanged", "[pts:1]") {
    check::explain("Whoever calls the solver has a current device and goes on working with it.",
                   "lessons/5-memory-pool/memory-pool.hpp");
    const std::vector<int> devices = check::hostile_order(4);
    const int device = devices.front();
    const int current = check::other_device(device);
    const Plate plate = make_plate(small_width, 1);
    const PinnedFloats snapshot(plate.size());
    const auto stream = make_stream(device);
    Plate stored(plate.size());
    auto solver = check::untouched(current, [&] { return make_heat_solver(devices, small_width); });
    check::untouched(current, [&] { solver->load(0, plate.data()); });
    check::untouched(current, [&] { solver->step(); });
    check::untouched(current, [&] { solver->snapshot(0, snapshot.get(), *stream); });
    check::untouched(current, [&] { solver->store(0, stored.data()); });
    check::untouched(current, [&] { solver->difference(0, 0); });
    CUDA_CHECK(cudaStreamSynchronize(*stream));
    check::untouched(current, [&] { solver.reset(); });
}

TEST_CASE("a second thread may use the solver", "[pts:1]") {
    check::explain("A new thread begins with GPU 0 current, whatever the first thread has set.",
                   "lessons/5-memory-pool/memory-pool.hpp");
    const std::vector<int> devices = check::hostile_order(4);
    const auto solver = make_heat_solver(devices, small_width);
    check::on_second_thread([&] { check_steps(*solver, devices, small_width, 1); });
}

TEST_CASE("a step does not wait for other work on its GPU", "[pts:2][starter-fails]") {
    check::explain(waits_for_others, page("The idea"));
    const int device = check::target_device();
    keep_all_memory({device});
    const auto others = make_stream(device);
    const auto solver = make_heat_solver({device}, small_width);
    load_all(*solver, 1, small_width);
    solver->step();

    check::delay(device, *others, milliseconds(300));
    solver->step();
    check::expect(cudaStreamQuery(*others) == cudaErrorNotReady,
                  "a kernel of 300 ms was running in a stream that is not the solver's, and the "
                  "step returned only after its end");
    CUDA_CHECK(cudaStreamSynchronize(*others));
}

TEST_CASE("all GPUs step at the same time", "[pts:1][gpus:2][starter-fails]") {
    check::explain("The kernels were given the same length on every GPU. When a step takes longer "
                   "on several GPUs than on one, one waits for the other. A call that waits inside "
                   "the loop over the plates does that: a synchronisation, cudaMalloc, cudaFree.",
                   page("The idea"));
    check::require_devices(2);
    const std::vector<int> devices = check::hostile_order(4);
    keep_all_memory(devices);
    const auto alone = make_heat_solver({devices.front()}, small_width);
    const auto together = make_heat_solver(devices, small_width);
    load_all(*alone, 1, small_width);
    load_all(*together, devices.size(), small_width);
    check::CallLog log;
    log.delay_before(check::kernel_launches, milliseconds(5));
    check::compare_times("a step on " + std::to_string(devices.size()) + " GPUs, beside one on one",
                         check::timed(devices.front(), [&] { alone->step(); }),
                         check::timed(devices.front(), [&] { together->step(); }), 1.5);
}

TEST_CASE("a pool keeps the memory of a step for the next one", "[pts:2][starter-fails]") {
    check::explain(returns_memory, page("The idea"));
    check_memory_is_kept({check::target_device()});
}

TEST_CASE("the pool of every GPU keeps the memory of a step", "[pts:1][gpus:2][starter-fails]") {
    check::explain(std::string(returns_memory) + " Each GPU has a pool, with its own threshold.",
                   page("The idea"));
    check::require_devices(2);
    check_memory_is_kept(check::hostile_order(2));
}

TEST_CASE("a pool that the caller has made current keeps its memory as well",
          "[pts:1][starter-fails]") {
    check::explain(std::string(returns_memory) +
                       " cudaMallocAsync takes memory from the current pool of a GPU "
                       "(cudaDeviceGetMemPool), which need not be its default pool.",
                   page("Functions you may need"));
    const int device = check::target_device();
    const CurrentPool pool(device);
    check_memory_is_kept({device});
}

TEST_CASE("a step takes little more than moving its bytes", "[pts:2][starter-fails]") {
    check::explain("The reference moves as many bytes as a step on the same GPU, takes its memory "
                   "from a pool that keeps it, and waits at the end. What a step needs beyond that "
                   "goes into allocating: by calls that map memory each time, or by a pool that "
                   "returned its memory at the last wait.",
                   page("The idea"));
    // One H200 gave the solution 1.06 to 1.21 (tests/gate/h200.md).
    constexpr double at_most = 1.8;
    const int device = check::target_device();
    BytesOfAStep keeping(device, UINT64_MAX);
    BytesOfAStep mapping_anew(device, 0);
    const check::Timed reference = check::timed(device, [&] { keeping.move(); });
    const auto calibration =
        check::compare(reference, check::timed(device, [&] { mapping_anew.move(); }));
    if (calibration.candidate < 1.25 * at_most * calibration.reference)
        check::skip("this GPU takes so long to move the bytes of a step that allocating hardly "
                    "shows beside it");

    const auto solver = make_heat_solver({device}, large_width);
    load_all(*solver, 1, large_width);
    check::compare_times("a step", reference, check::timed(device, [&] { solver->step(); }),
                         at_most);
}

TEST_CASE("a late snapshot shows the plate as it was", "[pts:2][starter-fails]") {
    check::explain(
        "The stream that brings the snapshot to the host was busy, and meanwhile the "
        "solver made steps. By the time it was read, the memory of the snapshot had been "
        "released and used for something else: memory must be released behind its last "
        "use, and only one stream knows when that is.",
        page("The idea"));
    const int device = check::target_device();
    keep_all_memory({device});
    const auto stream = make_stream(device);
    const auto others = make_stream(device);
    const Plate plate = make_plate(small_width, 3);
    const PinnedFloats snapshot(plate.size());
    const check::CallLog log;
    const auto solver = make_heat_solver({device}, small_width);
    solver->load(0, plate.data());
    solver->step();
    solver->load(0, plate.data());

    check::delay(device, *stream, milliseconds(100));
    solver->snapshot(0, snapshot.get(), *stream);
    for (int i = 0; i < 3; ++i)
        solver->step();
    for (const cudaMemPool_t pool : pools_in_use(log, {device}))
        overwrite_reserve(pool, *others);
    CUDA_CHECK(cudaStreamSynchronize(*stream));
    check::same("snapshot", snapshot.get(), plate.data(), plate.size());
}

TEST_CASE("a snapshot is complete when its stream has got there", "[pts:1]") {
    check::explain("The solver's stream was late, and the caller's was not: the copy to the host "
                   "must come after the copy on the GPU.",
                   page("Functions you may need"));
    const int device = check::target_device();
    const auto stream = make_stream(device);
    const Plate plate = make_plate(small_width, 4);
    const PinnedFloats snapshot(plate.size());
    check::CallLog log;
    const auto solver = make_heat_solver({device}, small_width);
    solver->load(0, plate.data());
    // What was in the memory before must not look like the snapshot.
    load_all(*solver, 1, small_width);
    solver->snapshot(0, snapshot.get(), *stream);
    CUDA_CHECK(cudaStreamSynchronize(*stream));
    solver->load(0, plate.data());

    log.delay_before(check::pool_allocations, milliseconds(50));
    solver->snapshot(0, snapshot.get(), *stream);
    CUDA_CHECK(cudaStreamSynchronize(*stream));
    check::same("snapshot", snapshot.get(), plate.data(), plate.size());
}

TEST_CASE("steps go on while a snapshot is on its way", "[pts:1][starter-fails]") {
    check::explain("The stream of the snapshot is busy for a while. Neither snapshot() nor later "
                   "steps wait for it. " +
                       std::string(waits_for_others),
                   page("Your task"));
    const int device = check::target_device();
    keep_all_memory({device});
    const auto stream = make_stream(device);
    const PinnedFloats snapshot(small_width * small_width);
    const auto solver = make_heat_solver({device}, small_width);
    load_all(*solver, 1, small_width);
    const auto snapshot_and_steps = [&](milliseconds busy) {
        check::delay(device, *stream, busy);
        solver->snapshot(0, snapshot.get(), *stream);
        solver->step();
        solver->step();
        const bool steps_went_on = cudaStreamQuery(*stream) == cudaErrorNotReady;
        CUDA_CHECK(cudaStreamSynchronize(*stream));
        return steps_went_on;
    };
    // The first time, pools grow.
    snapshot_and_steps(milliseconds(20));
    check::expect(snapshot_and_steps(milliseconds(300)),
                  "snapshot() and two steps returned only after the caller's stream had got to the "
                  "end of a kernel of 300 ms");
}

TEST_CASE("every GPU compares its plate with those of the others",
          "[pts:2][gpus:2][starter-fails]") {
    check::explain("A kernel on one GPU reads a plate of another. Whether it may depends on where "
                   "that memory comes from: cudaDeviceEnablePeerAccess opens what cudaMalloc "
                   "allocates; a pool has a list of its own.",
                   page("The idea"));
    check::require_devices(2);
    const std::vector<int> devices = check::hostile_order(4);
    check::require_peer_access(devices[0], devices[1]);
    const auto solver = make_heat_solver(devices, small_width);
    std::vector<Plate> plates;
    for (std::size_t number = 0; number < devices.size(); ++number) {
        plates.push_back(make_plate(small_width, 10 + number));
        solver->load(number, plates.back().data());
    }
    for (std::size_t a = 0; a < devices.size(); ++a) {
        for (std::size_t b = 0; b < devices.size(); ++b) {
            int possible = 0;
            CUDA_CHECK(cudaDeviceCanAccessPeer(&possible, devices[a], devices[b]));
            if (a != b && !possible) continue;
            const std::string what = "the difference that GPU " + std::to_string(devices[a]) +
                                     " finds between its plate and that of GPU " +
                                     std::to_string(devices[b]);
            const float expected = largest_difference(plates[a], plates[b]);
            INFO(what);
            const float found = check::untouched(check::other_device(devices[a]),
                                                 [&] { return solver->difference(a, b); });
            check::expect(found == expected,
                          "it is " + std::to_string(expected) + ", got " + std::to_string(found));
        }
    }
}

TEST_CASE("a solver works where there is no peer access", "[pts:1][gpus:2]") {
    check::explain("No GPU of this node can access another one, or the check says so. Only "
                   "difference() needs that: cudaDeviceCanAccessPeer tells whether to ask for it.",
                   page("Functions you may need"));
    check::require_devices(2);
    const std::vector<int> devices = check::hostile_order(2);
    std::map<cudaMemPool_t, int> owners;
    for (const int device : devices)
        owners[current_pool(device)] = device;
    check::CallLog log;
    log.no_peer_access();
    const auto solver = make_heat_solver(devices, small_width);
    check_steps(*solver, devices, small_width);

    // A pool that is empty may accept what it cannot do, and fail at the next allocation.
    for (const check::Call& call : log.calls({"cudaMemPoolCreate"}))
        owners[call.pool] = call.other_device;
    for (const check::Call& call : log.calls({"cudaMemPoolSetAccess"})) {
        const auto owner = owners.find(call.pool);
        check::expect(call.value == 0 || owner == owners.end() ||
                          owner->second == call.other_device,
                      "GPU " + std::to_string(call.other_device) +
                          " was let into a pool of a GPU that it cannot access");
    }
}

TEST_CASE("between calls only the plates are in use", "[pts:1]") {
    check::explain("The GPUs are shared. What a step, a snapshot or a comparison needs beside the "
                   "plate is given back by it; what a pool keeps in reserve is not in use.",
                   "lessons/5-memory-pool/memory-pool.hpp");
    const int device = check::target_device();
    constexpr std::size_t width = 1021;
    const auto stream = make_stream(device);
    const Plate plate = make_plate(width, 5);
    const PinnedFloats snapshot(plate.size());
    Plate stored(plate.size());
    const check::CallLog log;
    const auto solver = make_heat_solver({device}, width);
    const auto check_memory = [&](const char* after) {
        synchronize({device});
        const std::size_t allowed = bytes_of(width) + lesson::small_change;
        const std::size_t in_use = log.live_device_bytes(device);
        check::expect(in_use <= allowed, "after " + std::string(after) + ", " +
                                             std::to_string(in_use) + " bytes are in use" +
                                             on_gpu(device) + ", at most " +
                                             std::to_string(allowed) + " are allowed");
    };
    check_memory("make_heat_solver()");
    solver->load(0, plate.data());
    check_memory("load()");
    solver->step();
    check_memory("step()");
    for (int i = 0; i < 2; ++i) {
        solver->snapshot(0, snapshot.get(), *stream);
        CUDA_CHECK(cudaStreamSynchronize(*stream));
        solver->step();
    }
    check_memory("snapshot() and step()");
    solver->store(0, stored.data());
    check_memory("store()");
    solver->difference(0, 0);
    check_memory("difference()");
}

TEST_CASE("a solver that is gone leaves nothing in use", "[pts:1]") {
    check::explain("Memory, streams, events and pools that a solver made go with it.",
                   "lessons/5-memory-pool/memory-pool.hpp");
    const std::vector<int> devices = check::hostile_order(2);
    const auto stream = make_stream(devices.front());
    const Plate plate = make_plate(small_width, 6);
    const PinnedFloats snapshot(plate.size());
    const check::CallLog log;
    for (int round = 0; round < 3; ++round) {
        const auto solver = make_heat_solver(devices, small_width);
        load_all(*solver, devices.size(), small_width);
        solver->step();
        solver->snapshot(0, snapshot.get(), *stream);
        solver->difference(0, 0);
        CUDA_CHECK(cudaStreamSynchronize(*stream));
    }
    synchronize(devices);
    check::nothing_left(log, "once the solver is gone");
}

TEST_CASE("the caller's pools keep their settings", "[pts:1]") {
    check::explain("The current pool of a GPU belongs to the caller. The solver may raise its "
                   "release threshold and let GPUs access it, and nothing else.",
                   "lessons/5-memory-pool/memory-pool.hpp");
    const int device = check::target_device();
    const cudaMemPool_t pool = current_pool(device);
    constexpr std::uint64_t threshold = std::uint64_t{1} << 40;
    const std::vector<cudaMemPoolAttr> reuse_rules = {cudaMemPoolReuseFollowEventDependencies,
                                                      cudaMemPoolReuseAllowOpportunistic,
                                                      cudaMemPoolReuseAllowInternalDependencies};
    set_attribute(pool, cudaMemPoolAttrReleaseThreshold, threshold);
    int never = 0;
    CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &never));
    std::vector<int> former;
    for (const cudaMemPoolAttr rule : reuse_rules)
        former.push_back(reuse(pool, rule));
    const auto check_settings = [&](const char* when) {
        INFO(when);
        check::expect(current_pool(device) == pool,
                      "another pool is the current one of GPU " + std::to_string(device));
        const std::uint64_t now = attribute(pool, cudaMemPoolAttrReleaseThreshold);
        check::expect(now >= threshold, "the release threshold was " + std::to_string(threshold) +
                                            " bytes and is " + std::to_string(now));
        for (std::size_t i = 0; i < former.size(); ++i)
            check::expect(reuse(pool, reuse_rules[i]) == former[i],
                          "a rule for the reuse of memory has been changed: attribute " +
                              std::to_string(reuse_rules[i]));
    };
    {
        const auto solver = make_heat_solver({device}, small_width);
        check_settings("once the solver is made");
        check_steps(*solver, {device}, small_width);
        check_settings("after some steps");
    }
    check_settings("once the solver is gone");
}

TEST_CASE("a failed allocation is reported and leaves nothing behind", "[pts:2]") {
    check::explain("The check made one allocation after the other fail, as on a full GPU. Each "
                   "failure comes out as a CudaError, what had been allocated before it is "
                   "released, and the solver goes on after the next load().",
                   "lessons/5-memory-pool/memory-pool.hpp");
    const std::vector<int> devices = check::hostile_order(2);
    const auto stream = make_stream(devices.front());
    const PinnedFloats snapshot(small_width * small_width);
    check::CallLog log;
    fail_each_allocation(
        log, "make_heat_solver()", [&] { make_heat_solver(devices, small_width); },
        [&](const std::string& which) {
            synchronize(devices);
            check::nothing_left(log, "after " + which + " had failed");
        });

    const auto solver = make_heat_solver(devices, small_width);
    load_all(*solver, devices.size(), small_width);
    std::vector<std::size_t> before;
    for (const int device : devices)
        before.push_back(log.live_device_bytes(device));
    const auto nothing_more_in_use = [&](const std::string& which) {
        CUDA_CHECK(cudaStreamSynchronize(*stream));
        synchronize(devices);
        for (std::size_t i = 0; i < devices.size(); ++i) {
            const std::size_t now = log.live_device_bytes(devices[i]);
            check::expect(now <= before[i], "after " + which + " had failed, " +
                                                std::to_string(now - before[i]) +
                                                " bytes more are in use" + on_gpu(devices[i]));
        }
        check_steps(*solver, devices, small_width, 1);
    };
    fail_each_allocation(
        log, "step()", [&] { solver->step(); }, nothing_more_in_use);
    fail_each_allocation(
        log, "snapshot()", [&] { solver->snapshot(0, snapshot.get(), *stream); },
        nothing_more_in_use);
    // The last snapshot was not refused: it has arrived when the next call is made.
    CUDA_CHECK(cudaStreamSynchronize(*stream));
    fail_each_allocation(
        log, "difference()", [&] { solver->difference(0, 0); }, nothing_more_in_use);
}
