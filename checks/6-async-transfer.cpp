// Checks of lesson 6: asynchronous transfer.
#include "6-async-transfer/async-transfer.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "common/stopwatch.hpp"
#include "common/stream.hpp"
#include "support/bandwidth.hpp"
#include "support/call_log.hpp"
#include "support/catch.hpp"
#include "support/delay.hpp"
#include "support/devices.hpp"
#include "support/pattern.hpp"
#include "support/report.hpp"
#include "support/untouched.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace {

using lesson::Level;
using lesson::Pipeline;
using lesson::Reading;
using namespace std::chrono_literals;

constexpr std::size_t small_chunk = 1009; // prime, so that nothing divides it
// One H200 gave plain double buffers 98 to 101 % (tests/gate/h200.md), three lanes more.
constexpr double needs_share = 0.85;
// The reference has no boundaries: what a chunk waits for the one in front shows in short runs. One
// H200 gave double buffers with boundaries 90 to 101 %.
constexpr double needs_share_of_steps = 0.65;
constexpr int most_devices = 4;

std::string page(const std::string& section) {
    return "lessons/6-async-transfer/README.md, \"" + section + "\"";
}

const std::vector<Reading>& thresholds() {
    static const std::vector<Reading> all = [] {
        std::vector<Reading> some(lesson::levels - 1);
        Reading last = 0;
        for (std::size_t i = 0; i < some.size(); ++i)
            some[i] = last += 1 + static_cast<Reading>(check::pattern_bits(1, i) % 4094);
        return some;
    }();
    return all;
}

/// A recording whose levels are known because they were drawn first.
class Recording {
public:
    Recording(std::uint64_t id, std::size_t count) : id_(id), count_(count) {}

    /// The same levels in every run. The time of a kernel depends on them, and over a slow link a
    /// double buffer has two rhythms, between which a little time decides.
    static Recording for_timing(std::size_t count) {
        Recording recording(7, count);
        recording.same_levels_ = true;
        return recording;
    }

    std::size_t count() const { return count_; }

    Level level(std::size_t i) const {
        const std::uint64_t bits = same_levels_ ? i * 2654435761 : check::pattern_bits(id_, i);
        return static_cast<Level>(bits % lesson::levels);
    }

    Level step(std::size_t i) const { return i == 0 ? level(0) : level(i) - level(i - 1); }

    /// Any reading of that level.
    Reading reading(std::size_t i) const {
        const auto number = static_cast<std::size_t>(level(i));
        const Reading least = number == 0 ? 0 : thresholds()[number - 1];
        const Reading beyond = number + 1 == lesson::levels ? UINT32_MAX : thresholds()[number];
        return least + static_cast<Reading>((check::pattern_bits(id_, i) >> 32) % (beyond - least));
    }

    void read(std::size_t first, std::size_t count, Reading* to) const {
        for (std::size_t i = 0; i < count; ++i)
            to[i] = reading(first + i);
    }

private:
    std::uint64_t id_;
    std::size_t count_;
    bool same_levels_ = false;
};

/// What a pipeline asked for and delivered. Source and sink may come from several threads.
class Delivery {
public:
    Delivery(std::size_t count, std::size_t chunk)
        : chunk_(chunk), results_(count), times_(count, 0) {
        check::poison(results_.data(), results_.size());
    }

    void note_source(std::size_t first, std::size_t count) {
        const std::lock_guard lock(mutex_);
        is_within("source", first, count);
    }

    void take(std::size_t first, std::size_t count, const Level* from) {
        const std::lock_guard lock(mutex_);
        if (!is_within("sink", first, count)) return;
        for (std::size_t i = 0; i < count; ++i) {
            results_[first + i] = from[i];
            ++times_[first + i];
        }
    }

    /// CHECKs that every result came once, in pieces of the right size.
    bool check_complete(const std::string& what) const {
        if (!misuse_.empty()) return check::expect(false, what + ": " + misuse_);
        const auto count_of = [this](auto&& wanted) {
            return static_cast<std::size_t>(std::count_if(times_.begin(), times_.end(), wanted));
        };
        const std::size_t missing = count_of([](int times) { return times == 0; });
        const std::size_t repeated = count_of([](int times) { return times > 1; });
        const bool complete = check::expect(
            missing == 0, what + ": " + std::to_string(missing) + " of " +
                              std::to_string(times_.size()) +
                              " results never came, the first is number " + first_missing());
        return check::expect(repeated == 0, what + ": " + std::to_string(repeated) +
                                                " results came more than once") &&
               complete;
    }

    const std::vector<Level>& results() const { return results_; }

private:
    bool is_within(const char* who, std::size_t first, std::size_t count) {
        const std::size_t all = results_.size();
        if (count >= 1 && count <= chunk_ && first <= all && count <= all - first) return true;
        misuse_ = std::string(who) + " was called with first " + std::to_string(first) +
                  " and count " + std::to_string(count) + ", of " + std::to_string(all) +
                  " in chunks of " + std::to_string(chunk_);
        return false;
    }

    std::string first_missing() const {
        return std::to_string(std::find(times_.begin(), times_.end(), 0) - times_.begin());
    }

    std::mutex mutex_;
    std::size_t chunk_;
    std::vector<Level> results_;
    std::vector<int> times_;
    std::string misuse_;
};

using Expected = Level (Recording::*)(std::size_t) const;
using Before = std::function<void(std::size_t first)>;

/// Sends a recording through. `before_source` is called in front of every call of the source.
std::unique_ptr<Delivery> send(Pipeline& pipeline, const Recording& recording, std::size_t chunk,
                               const Before& before_source = {}) {
    auto delivery = std::make_unique<Delivery>(recording.count(), chunk);
    pipeline.run(
        recording.count(),
        [&](std::size_t first, std::size_t count, Reading* to) {
            if (before_source) before_source(first);
            delivery->note_source(first, count);
            if (first + count <= recording.count()) recording.read(first, count, to);
        },
        [&](std::size_t first, std::size_t count, const Level* from) {
            delivery->take(first, count, from);
        });
    return delivery;
}

void check_results(const Delivery& delivery, const Recording& recording, Expected expected,
                   const std::string& where) {
    const std::string what = std::to_string(recording.count()) + " readings " + where;
    if (!delivery.check_complete(what)) return;
    std::vector<Level> wanted(recording.count());
    for (std::size_t i = 0; i < wanted.size(); ++i)
        wanted[i] = (recording.*expected)(i);
    check::same(what, delivery.results(), wanted);
}

void send_and_check(Pipeline& pipeline, const Recording& recording, Expected expected,
                    const std::string& where, std::size_t chunk = small_chunk) {
    check_results(*send(pipeline, recording, chunk), recording, expected, where);
}

/// Lengths around whole chunks, and fewer chunks than there are GPUs.
std::vector<std::size_t> awkward_lengths(std::size_t chunk) {
    return {0,
            1,
            2,
            chunk - 1,
            chunk,
            chunk + 1,
            3 * chunk,
            5 * chunk,
            5 * chunk - 1,
            8 * chunk + 1,
            9 * chunk - 2,
            12007};
}

std::unique_ptr<Pipeline> level_pipeline(int device, std::size_t chunk = small_chunk) {
    return lesson::make_level_pipeline(device, thresholds(), chunk);
}

std::unique_ptr<Pipeline> step_pipeline(const std::vector<int>& devices,
                                        std::size_t chunk = small_chunk) {
    return lesson::make_step_pipeline(devices, thresholds(), chunk);
}

std::vector<int> some_devices() {
    return check::hostile_order(most_devices);
}

std::string names_of(const std::vector<int>& devices) {
    std::string names = devices.size() == 1 ? "GPU" : "GPUs";
    for (const int device : devices)
        names += " " + std::to_string(device);
    return names;
}

bool is_pageable(const void* memory) {
    cudaPointerAttributes attributes{};
    CUDA_CHECK(cudaPointerGetAttributes(&attributes, memory));
    return attributes.type == cudaMemoryTypeUnregistered;
}

/// CHECKs that no copy of a run goes to or comes from pageable memory.
void check_copies_are_pinned(Pipeline& pipeline, const Recording& recording) {
    std::vector<check::Call> copies;
    {
        const check::CallLog log;
        send(pipeline, recording, small_chunk);
        copies = log.calls(check::copies);
    }
    // Only the host's side: the other one may be pool memory that has been freed since.
    std::size_t pageable_up = 0;
    std::size_t pageable_down = 0;
    for (const check::Call& copy : copies) {
        if (copy.kind == cudaMemcpyHostToDevice) pageable_up += is_pageable(copy.source);
        if (copy.kind == cudaMemcpyDeviceToHost) pageable_down += is_pageable(copy.pointer);
    }
    const std::string of_all = " of " + std::to_string(copies.size()) + " copies ";
    check::expect(pageable_up == 0, std::to_string(pageable_up) + of_all + "read pageable memory");
    check::expect(pageable_down == 0,
                  std::to_string(pageable_down) + of_all + "write pageable memory");
}

/// A stream as `cudaStreamCreate` makes it: work in the default stream waits for it.
class BlockingStream {
public:
    explicit BlockingStream(int device) {
        const DeviceGuard guard(device);
        CUDA_CHECK(cudaStreamCreate(&stream_));
    }
    ~BlockingStream() { cudaStreamDestroy(stream_); }
    BlockingStream(const BlockingStream&) = delete;
    BlockingStream& operator=(const BlockingStream&) = delete;

    operator cudaStream_t() const { return stream_; }

private:
    cudaStream_t stream_ = nullptr;
};

/// CHECKs that a run ends long before work of somebody else does that was there first.
void check_waits_for_nobody_else(Pipeline& pipeline, const std::vector<int>& devices) {
    constexpr auto others_work = 200ms;
    const Recording recording(3, 6 * small_chunk);
    send(pipeline, recording, small_chunk); // whatever is made only once, is made now
    std::vector<std::unique_ptr<BlockingStream>> others;
    for (const int device : devices) {
        others.push_back(std::make_unique<BlockingStream>(device));
        check::delay(device, *others.back(), others_work);
    }
    Stopwatch stopwatch(devices.front());
    send(pipeline, recording, small_chunk);
    const double milliseconds = stopwatch.seconds() * 1e3;
    const double others_milliseconds =
        std::chrono::duration<double, std::milli>(others_work).count();
    check::figure_at_most("run beside somebody else's kernel of the given length", milliseconds,
                          others_milliseconds, "ms", 0.5);
    for (std::size_t i = 0; i < devices.size(); ++i)
        CUDA_CHECK(cudaStreamSynchronize(*others[i]));
}

/// Sizes of a timed run. A simulated node executes every instruction, and its time is exact.
struct TimedSize {
    std::size_t chunk = 0;
    std::size_t chunks = 0;

    std::size_t count() const { return chunk * chunks; }
};

TimedSize timed_size(std::size_t devices) {
    if (!check::simulated()) return {std::size_t{1} << 20, 12 * devices};
    return {std::size_t{1} << 18, 3 * devices + 1};
}

template <typename T> class Buffer {
public:
    using Release = cudaError_t (*)(void*);

    static Buffer on_gpu(std::size_t count) {
        Buffer buffer(cudaFree);
        CUDA_CHECK(cudaMalloc(&buffer.memory_, count * sizeof(T)));
        return buffer;
    }
    static Buffer pinned(std::size_t count) {
        Buffer buffer(cudaFreeHost);
        CUDA_CHECK(cudaMallocHost(&buffer.memory_, count * sizeof(T)));
        return buffer;
    }
    ~Buffer() {
        if (memory_) release_(memory_);
    }
    Buffer(Buffer&& other) noexcept : release_(other.release_), memory_(other.memory_) {
        other.memory_ = nullptr;
    }
    Buffer& operator=(Buffer&&) = delete;

    T* get() const { return static_cast<T*>(memory_); }

private:
    explicit Buffer(Release release) : release_(release) {}

    Release release_;
    void* memory_ = nullptr;
};

/// What the check compares with: the plainest double buffer, two streams on each GPU, around the
/// submission's own start_levels().
class DoubleBuffer {
public:
    DoubleBuffer(const std::vector<int>& devices, std::size_t chunk) : chunk_(chunk) {
        const Recording recording = Recording::for_timing(chunk);
        for (std::size_t i = 0; i < 2 * devices.size(); ++i) {
            const DeviceGuard guard(devices[i % devices.size()]);
            lanes_.push_back(std::make_unique<Lane>(devices[i % devices.size()], chunk));
            recording.read(0, chunk, lanes_.back()->up.get());
        }
    }

    void run(std::size_t chunks) {
        for (std::size_t number = 0; number < chunks; ++number) {
            Lane& lane = *lanes_[number % lanes_.size()];
            const DeviceGuard guard(lane.device);
            CUDA_CHECK(cudaStreamSynchronize(lane.stream));
            upload(lane);
            lesson::start_levels(lane.readings.get(), lane.levels.get(), chunk_, lane.sensor.get(),
                                 lane.stream);
            CUDA_CHECK(cudaMemcpyAsync(lane.down.get(), lane.levels.get(), chunk_ * sizeof(Level),
                                       cudaMemcpyDeviceToHost, lane.stream));
        }
        for (const auto& lane : lanes_)
            CUDA_CHECK(cudaStreamSynchronize(lane->stream));
    }

    /// No pipeline on one GPU takes less than its copies in one direction, or its kernels, alone.
    double bound(std::size_t chunks) {
        Lane& lane = *lanes_.front();
        const DeviceGuard guard(lane.device);
        run(1);
        const double copies = check::timed(lane.device, [&] {
            for (std::size_t number = 0; number < chunks; ++number)
                upload(lane);
            CUDA_CHECK(cudaStreamSynchronize(lane.stream));
        })();
        const double kernels = check::timed(lane.device, [&] {
            for (std::size_t number = 0; number < chunks; ++number) {
                lesson::start_levels(lane.readings.get(), lane.levels.get(), chunk_,
                                     lane.sensor.get(), lane.stream);
            }
            CUDA_CHECK(cudaStreamSynchronize(lane.stream));
        })();
        return std::max(copies, kernels);
    }

private:
    struct Lane {
        Lane(int device, std::size_t chunk)
            : device(device), sensor(Buffer<Reading>::on_gpu(thresholds().size())),
              readings(Buffer<Reading>::on_gpu(chunk)), levels(Buffer<Level>::on_gpu(chunk)),
              up(Buffer<Reading>::pinned(chunk)), down(Buffer<Level>::pinned(chunk)) {
            CUDA_CHECK(cudaMemcpy(sensor.get(), thresholds().data(),
                                  thresholds().size() * sizeof(Reading), cudaMemcpyHostToDevice));
            CUDA_CHECK(cudaDeviceSynchronize());
        }

        int device;
        Buffer<Reading> sensor;
        Buffer<Reading> readings;
        Buffer<Level> levels;
        Buffer<Reading> up;
        Buffer<Level> down;
        Stream stream;
    };

    void upload(Lane& lane) {
        CUDA_CHECK(cudaMemcpyAsync(lane.readings.get(), lane.up.get(), chunk_ * sizeof(Reading),
                                   cudaMemcpyHostToDevice, lane.stream));
    }

    std::size_t chunk_;
    std::vector<std::unique_ptr<Lane>> lanes_;
};

/// Compares a run of the pipeline with the reference. In the timed runs the host has nothing to do:
/// the readings of a run before are sent again, and results are only counted.
void check_time(Pipeline& pipeline, const std::vector<int>& devices, const TimedSize& size,
                double share) {
    send(pipeline, Recording::for_timing(size.count()), size.chunk)
        ->check_complete("the run before");
    DoubleBuffer reference(devices, size.chunk);
    const std::size_t chunks_of_busiest = (size.chunks + devices.size() - 1) / devices.size();
    char name[128];
    std::snprintf(name, sizeof name, "%zu chunks of %zu KiB on %s (bound %.2f ms)", size.chunks,
                  size.chunk * sizeof(Reading) / 1024, names_of(devices).c_str(),
                  reference.bound(chunks_of_busiest) * 1e3);
    std::atomic<std::size_t> results{0};
    int runs = 0;
    check::compare_times(name, check::timed(devices.front(), [&] { reference.run(size.chunks); }),
                         check::timed(devices.front(),
                                      [&] {
                                          ++runs;
                                          pipeline.run(
                                              size.count(),
                                              [](std::size_t, std::size_t, Reading*) {},
                                              [&](std::size_t, std::size_t count, const Level*) {
                                                  results += count;
                                              });
                                      }),
                         1 / share);
    check::expect(results == static_cast<std::size_t>(runs) * size.count(),
                  "a timed run did not hand over every result");
}

} // namespace

TEST_CASE("one GPU: the levels of a chunk are right", "[pts:1]") {
    check::explain("A recording of one chunk came back wrong.", page("Your task"));
    for (const int device : check::hostile_order()) {
        const auto pipeline = level_pipeline(device);
        for (std::uint64_t id = 10; id < 13; ++id) {
            send_and_check(*pipeline, Recording(id, small_chunk), &Recording::level,
                           "on " + names_of({device}));
        }
    }
}

TEST_CASE("one GPU: every result comes, whatever the length", "[pts:2][starter-fails]") {
    check::explain("The number of results is not the number of readings: look at what happens to a "
                   "last chunk that is not full, and to a recording shorter than a chunk.",
                   page("Your task"));
    const auto pipeline = level_pipeline(check::target_device());
    for (const std::size_t length : awkward_lengths(small_chunk)) {
        send(*pipeline, Recording(20 + length, length), small_chunk)
            ->check_complete(std::to_string(length) + " readings in chunks of " +
                             std::to_string(small_chunk));
    }
    const auto one_by_one = level_pipeline(check::target_device(), 1);
    send(*one_by_one, Recording(20, 17), 1)->check_complete("17 readings in chunks of 1");
}

TEST_CASE("one GPU: slow copies mix nothing up", "[pts:2][starter-fails]") {
    check::explain("A copy started later than usual, and then chunks were mixed up: its source had "
                   "been written again already, or its destination was read before it had ended.",
                   page("The idea"));
    const auto pipeline = level_pipeline(check::target_device());
    // What takes long the first time only would give the copies time to end.
    send(*pipeline, Recording(29, small_chunk), small_chunk);
    check::CallLog log;
    log.delay_before(check::copies, 5ms);
    send_and_check(*pipeline, Recording(30, 7 * small_chunk), &Recording::level,
                   "with 5 ms in front of each copy");
}

TEST_CASE("one GPU: slow kernels mix nothing up", "[pts:2][starter-fails]") {
    check::explain(
        "A kernel started later than usual, and then chunks were mixed up: what it reads "
        "had been replaced already, or what it writes was taken before it was there.",
        page("The idea"));
    const auto pipeline = level_pipeline(check::target_device());
    check::CallLog log;
    log.delay_before(check::kernel_launches, 10ms);
    log.delay_before(check::copies, 1ms);
    send_and_check(*pipeline, Recording(40, 7 * small_chunk), &Recording::level,
                   "with 10 ms in front of each kernel");
}

TEST_CASE("one GPU: the levels are right for every length", "[pts:1][starter-fails]") {
    check::explain("Recordings of some lengths came back incomplete or wrong.", page("Your task"));
    const auto pipeline = level_pipeline(check::target_device());
    check::CallLog log;
    log.delay_before(check::copies, 500us);
    for (const std::size_t length : awkward_lengths(small_chunk))
        send_and_check(*pipeline, Recording(50 + length, length), &Recording::level, "in turn");
}

TEST_CASE("one GPU: copies go to and from pinned memory", "[pts:2][starter-fails]") {
    check::explain("cudaMemcpyAsync is asynchronous only when the host memory is pinned. With "
                   "pageable memory the call itself waits, and nothing overlaps.",
                   page("The idea"));
    const auto pipeline = level_pipeline(check::target_device());
    check_copies_are_pinned(*pipeline, Recording(60, 5 * small_chunk));
}

TEST_CASE("one GPU: a run waits for its own work only", "[pts:2][starter-fails]") {
    check::explain(
        "Somebody else's kernel, in a stream of their own, held the run up. That happens "
        "to work in the default stream, and to whoever waits for the whole device.",
        page("The idea"));
    const int device = check::target_device();
    check_waits_for_nobody_else(*level_pipeline(device), {device});
}

TEST_CASE("one GPU: copies hide behind kernels", "[pts:3][starter-fails]") {
    check::explain("The run takes longer than a plain double buffer around the same kernel: copies "
                   "and kernels still take turns somewhere.",
                   page("The idea"));
    const int device = check::target_device();
    const TimedSize size = timed_size(1);
    check_time(*level_pipeline(device, size.chunk), {device}, size, needs_share);
}

TEST_CASE("one GPU: the caller finds its device and last error unchanged", "[pts:1]") {
    check::explain("Making or running the pipeline changed what belongs to the caller: its current "
                   "device, or the error that the next cudaGetLastError() returns.",
                   page("Your task"));
    const int device = check::target_device();
    const Recording recording(70, small_chunk);
    std::unique_ptr<Pipeline> pipeline;
    const auto delivery = check::untouched(check::other_device(device), [&] {
        pipeline = level_pipeline(device);
        return send(*pipeline, recording, small_chunk);
    });
    check_results(*delivery, recording, &Recording::level, "with another device current");
    const auto from_thread =
        check::on_second_thread([&] { return send(*pipeline, recording, small_chunk); });
    check_results(*from_thread, recording, &Recording::level, "from a second thread");
}

TEST_CASE("a pipeline that is gone leaves nothing behind", "[pts:1]") {
    check::explain("Something was still allocated after the pipeline was destroyed, or a call of "
                   "it failed.",
                   page("Functions you may need"));
    const check::CallLog log;
    cudaGetLastError();
    for (std::uint64_t round = 0; round < 5; ++round) {
        const Recording recording(80 + round, 5 * small_chunk);
        send(*level_pipeline(check::target_device()), recording, small_chunk);
        send(*step_pipeline(some_devices()), recording, small_chunk);
    }
    check::nothing_left(log, "once the pipeline is gone");
    check::nothing_failed(log);
}

TEST_CASE("all GPUs: the steps are right for whole chunks", "[pts:1]") {
    check::explain("A recording came back wrong. Wrong at the first result of a chunk: that one "
                   "needs the last level of the chunk in front.",
                   page("The combined path"));
    const std::vector<int> devices = check::hostile_order();
    const auto pipeline = step_pipeline(devices);
    for (const std::size_t chunks : {19, 2, 7}) {
        send_and_check(*pipeline, Recording(90 + chunks, chunks * small_chunk), &Recording::step,
                       "on " + names_of(devices));
    }
}

TEST_CASE("all GPUs: the steps are right for every length", "[pts:2][starter-fails]") {
    check::explain("Recordings of some lengths came back incomplete or wrong.", page("Your task"));
    const auto pipeline = step_pipeline(some_devices());
    for (const std::size_t length : awkward_lengths(small_chunk))
        send_and_check(*pipeline, Recording(100 + length, length), &Recording::step, "in turn");
    const auto one_by_one = step_pipeline(some_devices(), 1);
    send_and_check(*one_by_one, Recording(100, 17), &Recording::step, "in chunks of 1", 1);
}

TEST_CASE("all GPUs: slow copies mix nothing up", "[pts:1]") {
    check::explain("A copy started later than usual, and then chunks were mixed up: its source had "
                   "been written again already, or its destination was read before it had ended.",
                   page("The combined path"));
    const auto pipeline = step_pipeline(some_devices());
    // The first use of a pool takes longer than these delays.
    send(*pipeline, Recording(109, most_devices * small_chunk), small_chunk);
    check::CallLog log;
    log.delay_before(check::copies, 3ms);
    send_and_check(*pipeline, Recording(110, 11 * small_chunk), &Recording::step,
                   "with 3 ms in front of each copy");
}

TEST_CASE("all GPUs: a slow neighbour's boundary is waited for", "[pts:2]") {
    check::explain("The chunk in front was late, and the first step behind it came out wrong: its "
                   "level was used before it was there, or replaced before it was used.",
                   page("The combined path"));
    const auto pipeline = step_pipeline(some_devices());
    for (const std::size_t slow : {0, 1}) {
        const Recording recording(120 + slow, 12 * small_chunk);
        check::CallLog log;
        const auto delivery = send(*pipeline, recording, small_chunk, [&](std::size_t first) {
            log.behave();
            if (first / small_chunk % 2 == slow) log.delay_before(check::kernel_launches, 10ms);
        });
        check_results(*delivery, recording, &Recording::step,
                      "with every other chunk's kernels late");
    }
}

TEST_CASE("all GPUs: the steps are right without peer access", "[pts:1]") {
    check::explain("Where GPUs can't access each other the boundary has to go another way.",
                   page("Functions you may need"));
    check::CallLog log;
    log.no_peer_access();
    send_and_check(*step_pipeline(some_devices()), Recording(130, 9 * small_chunk),
                   &Recording::step, "without peer access");
}

TEST_CASE("all GPUs: no chunk waits for an allocation", "[pts:1]") {
    check::explain("cudaMalloc, cudaFree and pinning wait for the GPU or take longer than a chunk. "
                   "Take temporaries from the pool, or make them once.",
                   page("The combined path"));
    const auto pipeline = step_pipeline(some_devices());
    const Recording recording(140, 9 * small_chunk);
    send(*pipeline, recording, small_chunk);
    const check::CallLog log;
    send(*pipeline, recording, small_chunk)->check_complete("the second run");
    const int device_memory = log.count(check::Names{"cudaMalloc", "cudaFree"});
    const int pinned_memory = log.count(check::pinned_allocations);
    check::expect(device_memory == 0, "a run called cudaMalloc or cudaFree " +
                                          std::to_string(device_memory) + " times");
    check::expect(pinned_memory == 0,
                  "a run pinned memory " + std::to_string(pinned_memory) + " times");
}

TEST_CASE("all GPUs: a run waits for its own work only", "[pts:2][starter-fails]") {
    check::explain(
        "Somebody else's kernel, in a stream of their own, held the run up. That happens "
        "to work in the default stream, and to whoever waits for the whole device.",
        page("The idea"));
    check_waits_for_nobody_else(*step_pipeline(some_devices()), some_devices());
}

TEST_CASE("all GPUs: all of them work at once", "[pts:3][gpus:2][starter-fails]") {
    check::explain("One GPU had to end before the next one began: the host waits for each in turn.",
                   page("The combined path"));
    check::require_devices(2);
    constexpr auto delay = 10ms;
    const std::vector<int> devices = some_devices();
    const auto pipeline = step_pipeline(devices);
    const Recording recording(150, devices.size() * small_chunk);
    send(*pipeline, recording, small_chunk); // whatever is made only once, is made now
    check::CallLog log;
    log.delay_before(check::kernel_launches, delay);
    Stopwatch stopwatch(devices.front());
    send(*pipeline, recording, small_chunk);
    const double milliseconds = stopwatch.seconds() * 1e3;

    const std::vector<check::Call> launches = log.calls(check::kernel_launches);
    if (launches.empty()) check::skip("no kernel launch was seen, so none could be delayed");
    const double delays = static_cast<double>(launches.size()) *
                          std::chrono::duration<double, std::milli>(delay).count();
    check::figure_at_most(std::to_string(launches.size()) + " kernels of 10 ms on " +
                              names_of(devices) + ", one after the other",
                          milliseconds, delays, "ms", 1.5 / static_cast<double>(devices.size()));
}

TEST_CASE("all GPUs: the combined path keeps its pace", "[pts:3][starter-fails]") {
    check::explain("The run takes longer than plain double buffers on the same GPUs: copies, "
                   "kernels, GPUs or the host still wait for each other somewhere.",
                   page("The combined path"));
    const std::vector<int> devices = check::hostile_order(check::simulated() ? 2 : most_devices);
    const TimedSize size = timed_size(devices.size());
    check_time(*step_pipeline(devices, size.chunk), devices, size, needs_share_of_steps);
}

TEST_CASE("all GPUs: the caller finds its device and last error unchanged", "[pts:1]") {
    check::explain("Making or running the pipeline changed what belongs to the caller: its current "
                   "device, or the error that the next cudaGetLastError() returns.",
                   page("Your task"));
    const std::vector<int> devices = some_devices();
    const Recording recording(160, 5 * small_chunk);
    std::unique_ptr<Pipeline> pipeline;
    const auto delivery = check::untouched(check::other_device(devices.front()), [&] {
        pipeline = step_pipeline(devices);
        return send(*pipeline, recording, small_chunk);
    });
    check_results(*delivery, recording, &Recording::step, "with another device current");
    const auto from_thread =
        check::on_second_thread([&] { return send(*pipeline, recording, small_chunk); });
    check_results(*from_thread, recording, &Recording::step, "from a second thread");
}
