// Checks of lesson 2: peer copy.
#include "2-peer-copy/peer-copy.hpp"

#include "support/bandwidth.hpp"
#include "support/call_log.hpp"
#include "support/catch.hpp"
#include "support/delay.hpp"
#include "support/devices.hpp"
#include "support/pattern.hpp"
#include "support/peer_selftest.hpp"
#include "support/report.hpp"
#include "support/untouched.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "common/stopwatch.hpp"
#include "common/stream.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using lesson::make_strait;
using lesson::Strait;
using namespace std::chrono_literals;

using Levels = std::vector<float>;
using Buffer = check::GuardedDevice<float>;

constexpr std::size_t prime = 4099; // cells; nothing divides it
constexpr double needs_share = 0.85;
constexpr double needs_share_through_host = 0.3;
// Copies are so short there that waiting for them on the host shows, which is no mistake.
constexpr double needs_share_on_one_gpu = 0.5;
// Peer access that gains less than this is no use on this machine.
constexpr double visible_gap = 1.3;
constexpr auto delay_time = 20ms;

/// Part of the meaning of a case that needs access to the far shore, and is not about it.
const std::string access_comes_first =
    " An illegal address instead says that the first GPU may not read the far shore at all: see "
    "the case \"the flow is right where one GPU can read the other\" first.";

/// Cells in each direction of an exchange that is measured.
std::size_t timed_cells() {
    return std::size_t{check::simulated() ? 16U : 64U} << 20;
}

std::string section(const char* name) {
    return std::string("lessons/2-peer-copy/README.md, section \"") + name + "\"";
}

std::string gpu(int device) {
    return "GPU " + std::to_string(device);
}

/// Two GPUs, or one GPU twice.
struct Pair {
    int device(int side) const { return side == 0 ? first : second; }
    Pair reversed() const { return {second, first}; }

    int first;
    int second;
};

std::string between(Pair pair) {
    return " between " + gpu(pair.first) + " and " + gpu(pair.second);
}

bool can_access(int from, int to) {
    int can = 0;
    CUDA_CHECK(cudaDeviceCanAccessPeer(&can, from, to));
    return can != 0;
}

bool has_access(Pair pair) {
    return can_access(pair.first, pair.second) && can_access(pair.second, pair.first);
}

/// Neighbours in the hostile order, each two GPUs once, but for those whose peer access does not
/// deliver; at most `n`, at least one. A single GPU is its own neighbour.
std::vector<Pair> pairs(std::size_t n) {
    const std::vector<int> devices = check::hostile_order();
    if (devices.size() == 1) return {{devices[0], devices[0]}};
    std::vector<Pair> sound;
    std::string fault;
    for (std::size_t i = 0; i + 1 < devices.size() && sound.size() < n; ++i) {
        const std::string found = check::peer_fault(devices[i], devices[i + 1]);
        if (found.empty()) sound.push_back({devices[i], devices[i + 1]});
        fault = found.empty() ? fault : found;
    }
    if (sound.empty()) check::skip(fault);
    return sound;
}

Pair any_pair() {
    return pairs(1).front();
}

/// Two GPUs with peer access both ways that delivers; skips the case when there are none.
Pair direct_pair() {
    const std::vector<int> devices = check::hostile_order();
    std::string reason = "no two GPUs of this machine can access each other's memory";
    for (const int first : devices) {
        for (const int second : devices) {
            const Pair pair{first, second};
            if (first == second || !has_access(pair)) continue;
            const std::string fault = check::peer_fault(first, second);
            if (fault.empty()) return pair;
            reason = fault;
        }
    }
    check::skip(reason);
}

/// Lets one GPU use the memory of another one until the end of the scope. Does not close what was
/// open before.
class OpenAccess {
public:
    OpenAccess(int reader, int owner) : reader_(reader), owner_(owner) {
        if (reader == owner) return;
        const DeviceGuard guard(reader_);
        const cudaError_t answer = cudaDeviceEnablePeerAccess(owner_, 0);
        opened_ = answer == cudaSuccess;
        if (answer == cudaErrorPeerAccessAlreadyEnabled) {
            cudaGetLastError();
        } else {
            CUDA_CHECK(answer);
        }
    }
    ~OpenAccess() {
        if (!opened_) return;
        int former = 0;
        cudaGetDevice(&former);
        cudaSetDevice(reader_);
        cudaDeviceDisablePeerAccess(owner_);
        cudaSetDevice(former);
    }
    OpenAccess(const OpenAccess&) = delete;
    OpenAccess& operator=(const OpenAccess&) = delete;

private:
    int reader_;
    int owner_;
    bool opened_ = false;
};

/// Whether GPU `reader` may already use the memory of GPU `owner`.
bool is_open(int reader, int owner) {
    const DeviceGuard guard(reader);
    const cudaError_t answer = cudaDeviceEnablePeerAccess(owner, 0);
    if (answer != cudaSuccess) cudaGetLastError();
    return answer == cudaErrorPeerAccessAlreadyEnabled;
}

Stream stream_of(int device) {
    const DeviceGuard guard(device);
    return {};
}

/// One stream on each side, and the strait.
class Channel {
public:
    explicit Channel(Pair pair, std::size_t shore = prime)
        : pair_(pair), streams_{stream_of(pair.first), stream_of(pair.second)},
          strait_(make_strait({pair.first, streams_[0]}, {pair.second, streams_[1]}, shore)) {}

    Strait& strait() { return *strait_; }
    cudaStream_t stream(int side) const { return streams_[side]; }
    Pair pair() const { return pair_; }

    void wait() const {
        for (const Stream& stream : streams_)
            CUDA_CHECK(cudaStreamSynchronize(stream));
    }

private:
    Pair pair_;
    std::array<Stream, 2> streams_;
    std::unique_ptr<Strait> strait_;
};

/// What an exchange works on, between guard zones: levels of data set `id` on the first side,
/// `id` + 1 on the second one.
struct Basins {
    Basins(Pair pair, std::size_t cells, std::uint64_t id)
        : sent{check::make_pattern<float>(cells, id), check::make_pattern<float>(cells, id + 1)},
          levels{Buffer(pair.first, sent[0]), Buffer(pair.second, sent[1])},
          neighbour{Buffer(pair.first, cells), Buffer(pair.second, cells)} {}

    lesson::Basin basin(int side) { return {levels[side].data(), neighbour[side].data()}; }

    /// Everything is as it should be after an exchange.
    void check(const std::string& what) const {
        for (int side = 0; side < 2; ++side) {
            const std::string on = what + ", on the " + (side == 0 ? "first" : "second") +
                                   " side, " + gpu(levels[side].device());
            check::same(on + ": levels of the other basin", neighbour[side].read(), sent[1 - side]);
            check::same(on + ": its own levels, which are to stay", levels[side].read(),
                        sent[side]);
            neighbour[side].check_guards(on + ": memory for the other basin's levels");
            levels[side].check_guards(on + ": memory of its own levels");
        }
    }

    std::array<Levels, 2> sent;
    std::array<Buffer, 2> levels;
    std::array<Buffer, 2> neighbour;
};

void exchange(Channel& channel, Basins& basins, std::size_t cells) {
    channel.strait().exchange(basins.basin(0), basins.basin(1), cells);
    channel.wait();
}

void check_exchange(Channel& channel, std::size_t cells, std::uint64_t id,
                    const std::string& why = "") {
    Basins basins(channel.pair(), cells, id);
    exchange(channel, basins, cells);
    basins.check(std::to_string(cells) + " cells" + between(channel.pair()) + why);
}

/// What a flow is computed from, and room for it.
struct Shores {
    Shores(Pair pair, std::size_t shore, std::uint64_t id)
        : near_levels(check::make_pattern<float>(shore, id)),
          far_levels(check::make_pattern<float>(shore, id + 1)), near(pair.first, near_levels),
          far(pair.second, far_levels), flow(pair.first, shore) {}

    void measure(Strait& strait) { strait.measure_flow(near.data(), far.data(), flow.data()); }

    Levels expected() const {
        Levels flow(near_levels);
        for (std::size_t i = 0; i < flow.size(); ++i)
            flow[i] -= far_levels[i];
        return flow;
    }

    void check(const std::string& what) const {
        check::same(what + ": the flow", flow.read(), expected());
        check::same(what + ": the far shore, which is to stay", far.read(), far_levels);
        flow.check_guards(what + ": memory of the flow");
    }

    Levels near_levels;
    Levels far_levels;
    Buffer near;
    Buffer far;
    Buffer flow;
};

void check_flow(Channel& channel, std::size_t shore, std::uint64_t id,
                const std::string& why = "") {
    Shores shores(channel.pair(), shore, id);
    shores.measure(channel.strait());
    channel.wait();
    shores.check(std::to_string(shore) + " cells of shore" + between(channel.pair()) + why);
}

void copy(Buffer& to, const Buffer& from, cudaStream_t stream) {
    CUDA_CHECK(cudaMemcpyAsync(to.data(), from.data(), from.size() * sizeof(float),
                               cudaMemcpyDeviceToDevice, stream));
}

/// Overwrites levels with something else.
void spoil(Buffer& levels, cudaStream_t stream) {
    CUDA_CHECK(cudaMemsetAsync(levels.data(), 0x3F, levels.size() * sizeof(float), stream));
}

void wait_for_devices(Pair pair) {
    for (const int device : {pair.first, pair.second}) {
        const DeviceGuard guard(device);
        CUDA_CHECK(cudaDeviceSynchronize());
    }
}

/// Exchanges levels that are written late on `side`, by work in that side's stream.
void check_late_levels(Channel& channel, int side) {
    const Pair pair = channel.pair();
    Basins basins(pair, prime, 20);
    const Levels late = check::make_pattern<float>(prime, 22);
    const Buffer source(pair.device(side), late);
    check::delay(pair.device(side), channel.stream(side), delay_time);
    copy(basins.levels[side], source, channel.stream(side));
    basins.sent[side] = late;
    channel.strait().exchange(basins.basin(0), basins.basin(1), prime);
    wait_for_devices(pair);
    basins.check("levels that " + gpu(pair.device(side)) + " writes late");
}

/// Exchanges while earlier work on `side`, which is late, still reads what arrived last time.
void check_late_reader(Channel& channel, int side) {
    const Pair pair = channel.pair();
    Basins basins(pair, prime, 30);
    const Levels former = check::make_pattern<float>(prime, 32);
    const Buffer source(pair.device(side), former);
    Buffer seen(pair.device(side), prime);
    copy(basins.neighbour[side], source, channel.stream(side));
    check::delay(pair.device(side), channel.stream(side), delay_time);
    copy(seen, basins.neighbour[side], channel.stream(side));
    channel.strait().exchange(basins.basin(0), basins.basin(1), prime);
    wait_for_devices(pair);
    check::same("what earlier work on " + gpu(pair.device(side)) +
                    " reads from the memory that the other basin's levels are sent to",
                seen.read(), former);
    basins.check("with a late reader on " + gpu(pair.device(side)));
}

/// Copies and kernels by which a strait may move levels.
check::Names moving() {
    check::Names names = check::copies;
    names.insert(names.end(), check::kernel_launches.begin(), check::kernel_launches.end());
    return names;
}

/// Uses what has arrived, and overwrites what was sent, by later work in both streams while the
/// `nth` copy of the exchange is late. So are the default streams, for copies that are made there.
void check_later_work(check::CallLog& log, Channel& channel, int nth) {
    const Pair pair = channel.pair();
    Basins basins(pair, prime, 40);
    std::array<Buffer, 2> seen{Buffer(pair.first, prime), Buffer(pair.second, prime)};
    for (const int device : {pair.first, pair.second})
        check::delay(device, nullptr, delay_time);
    log.delay_before_nth(moving(), nth, delay_time);
    const DeviceGuard guard(pair.first);
    channel.strait().exchange(basins.basin(0), basins.basin(1), prime);
    for (int side = 0; side < 2; ++side) {
        copy(seen[side], basins.neighbour[side], channel.stream(side));
        spoil(basins.levels[side], channel.stream(side));
    }
    wait_for_devices(pair);
    for (int side = 0; side < 2; ++side)
        check::same("what later work on " + gpu(pair.device(side)) + " finds, while copy " +
                        std::to_string(nth) + " of the exchange is late" + between(pair),
                    seen[side].read(), basins.sent[1 - side]);
}

/// Measures the flow between shores of which that of `side` is written late.
void check_late_shore(Channel& channel, int side) {
    const Pair pair = channel.pair();
    Shores shores(pair, prime, 50);
    const Levels late = check::make_pattern<float>(prime, 52);
    const Buffer source(pair.device(side), late);
    check::delay(pair.device(side), channel.stream(side), delay_time);
    copy(side == 0 ? shores.near : shores.far, source, channel.stream(side));
    (side == 0 ? shores.near_levels : shores.far_levels) = late;
    shores.measure(channel.strait());
    wait_for_devices(pair);
    shores.check("with levels that " + gpu(pair.device(side)) + " writes late");
}

/// Overwrites the far shore by later work of its own GPU, while the reading of it is late.
void check_shore_after_flow(check::CallLog& log, Channel& channel) {
    const Pair pair = channel.pair();
    Shores shores(pair, prime, 60);
    log.delay_before_nth(moving(), 1, delay_time);
    shores.measure(channel.strait());
    spoil(shores.far, channel.stream(1));
    wait_for_devices(pair);
    check::same("the flow, when " + gpu(pair.second) + " goes on to change its shore" +
                    between(pair),
                shores.flow.read(), shores.expected());
}

/// All of it, on one strait.
void check_order(check::CallLog& log, Channel& channel) {
    for (const int side : {0, 1}) {
        check_late_levels(channel, side);
        check_late_reader(channel, side);
        check_late_shore(channel, side);
    }
    for (const int nth : {1, 2})
        check_later_work(log, channel, nth);
    check_shore_after_flow(log, channel);
}

/// Device memory of `cells` levels that cost little to make, all different from their neighbours.
class TimedLevels {
public:
    TimedLevels(int device, std::size_t cells) : device_(device), cells_(cells) {
        const DeviceGuard guard(device_);
        CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&data_), cells_ * sizeof(float)));
        poison();
    }
    ~TimedLevels() { cudaFree(data_); }
    TimedLevels(const TimedLevels&) = delete;
    TimedLevels& operator=(const TimedLevels&) = delete;

    void poison() {
        const DeviceGuard guard(device_);
        CUDA_CHECK(cudaMemset(data_, check::poison_byte, cells_ * sizeof(float)));
        CUDA_CHECK(cudaDeviceSynchronize());
    }

    void set(const Levels& from) {
        const DeviceGuard guard(device_);
        CUDA_CHECK(cudaMemcpy(data_, from.data(), cells_ * sizeof(float), cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaDeviceSynchronize());
    }

    Levels get() const {
        const DeviceGuard guard(device_);
        Levels to(cells_);
        CUDA_CHECK(cudaMemcpy(to.data(), data_, cells_ * sizeof(float), cudaMemcpyDeviceToHost));
        return to;
    }

    float* data() { return data_; }

private:
    int device_;
    std::size_t cells_;
    float* data_ = nullptr;
};

/// An exchange that is measured: memory and streams.
class Timing {
public:
    Timing(Pair pair, std::size_t cells)
        : pair_(pair), cells_(cells), levels_{{{pair.first, cells}, {pair.second, cells}}},
          neighbour_{{{pair.first, cells}, {pair.second, cells}}}, streams_{stream_of(pair.first),
                                                                            stream_of(pair.second)},
          stopwatch_(pair.first) {
        for (int side = 0; side < 2; ++side)
            levels_[side].set(sent(side));
    }

    /// Bytes of both directions together.
    std::size_t bytes() const { return 2 * cells_ * sizeof(float); }

    /// Seconds of plain peer copies, both ways at once.
    double plain_copies() {
        wait_for_devices(pair_);
        stopwatch_.restart();
        send(0);
        send(1);
        for (const Stream& stream : streams_)
            CUDA_CHECK(cudaStreamSynchronize(stream));
        return stopwatch_.seconds();
    }

    /// The same with peer access, which is closed again afterwards.
    double direct_copies() {
        const OpenAccess there(pair_.first, pair_.second);
        const OpenAccess back(pair_.second, pair_.first);
        return plain_copies();
    }

    double strait(Channel& channel) {
        wait_for_devices(pair_);
        stopwatch_.restart();
        channel.strait().exchange({levels_[0].data(), neighbour_[0].data()},
                                  {levels_[1].data(), neighbour_[1].data()}, cells_);
        channel.wait();
        return stopwatch_.seconds();
    }

    /// Exchanges once more, and CHECKs that it brings the levels of the other side.
    void check(Channel& channel) {
        for (TimedLevels& levels : neighbour_)
            levels.poison();
        strait(channel);
        for (int side = 0; side < 2; ++side)
            check::same("levels that arrive on " + gpu(pair_.device(side)), neighbour_[side].get(),
                        sent(1 - side));
    }

private:
    /// What is sent from one side.
    Levels sent(int side) const {
        Levels levels(cells_);
        const std::uint64_t step = check::pattern_bits(70, static_cast<std::uint64_t>(side)) | 1;
        std::uint64_t bits = step;
        for (float& level : levels)
            level = static_cast<float>((bits += step) >> 40);
        return levels;
    }

    void send(int side) {
        CUDA_CHECK(cudaMemcpyPeerAsync(neighbour_[1 - side].data(), pair_.device(1 - side),
                                       levels_[side].data(), pair_.device(side),
                                       cells_ * sizeof(float), streams_[side]));
    }

    Pair pair_;
    std::size_t cells_;
    std::array<TimedLevels, 2> levels_;
    std::array<TimedLevels, 2> neighbour_;
    std::array<Stream, 2> streams_;
    Stopwatch stopwatch_;
};

/// Skips the case where copies through the host are as fast as those with peer access.
void require_visible_gap(Timing& timing) {
    const check::Comparison gap = check::compare([&] { return timing.plain_copies(); },
                                                 [&] { return timing.direct_copies(); });
    if (gap.reference < visible_gap * gap.candidate)
        check::skip("copies with peer access are no faster than copies through the host on this "
                    "machine");
}

/// Without peer access, and with the `nth` of these calls failing: the strait has to report that,
/// or to work all the same, and leaves nothing allocated.
void check_failure(Pair pair, const check::Names& names, int nth) {
    const std::string what =
        "when " + std::string(names.front()) + " and its kin fail at call " + std::to_string(nth);
    const std::array<Stream, 2> streams{stream_of(pair.first), stream_of(pair.second)};
    Basins basins(pair, prime, 80);
    Shores shores(pair, prime, 82);
    check::CallLog log;
    log.no_peer_access();
    log.fail(names, nth, cudaErrorMemoryAllocation);
    cudaGetLastError();
    bool reported = false;
    try {
        const auto strait = make_strait({pair.first, streams[0]}, {pair.second, streams[1]}, prime);
        strait->exchange(basins.basin(0), basins.basin(1), prime);
        shores.measure(*strait);
        wait_for_devices(pair);
    } catch (const CudaError&) {
        reported = true;
    }
    const cudaError_t pending = cudaGetLastError();
    log.behave();
    check::nothing_left(log, what);
    if (reported) return;
    check::expect(pending == cudaSuccess, what + ": survived, but an error is still pending");
    basins.check(what);
    shores.check(what);
}

} // namespace

TEST_CASE("each GPU gets the levels of the other", "[pts:2][gpus:2]") {
    check::explain("exchange() copies each basin's levels to the memory that the other one has for "
                   "them, both ways, and changes nothing else.",
                   section("Your task"));
    for (const Pair there : pairs(3)) {
        for (const Pair pair : {there, there.reversed()}) {
            Channel channel(pair);
            std::uint64_t id = 100;
            for (const std::size_t cells : {0, 1, 2, 255, 256, 257, 4099, 300007})
                check_exchange(channel, cells, id += 2);
        }
    }
}

TEST_CASE("a strait works in any thread, whatever GPU is current", "[pts:1][gpus:2]") {
    check::explain("The caller's current device can be any GPU, and it stays as it is. So does the "
                   "error that the next cudaGetLastError() returns.",
                   section("Your task"));
    const Pair pair = any_pair();
    Basins basins(pair, prime, 10);
    Basins others(pair, prime, 12);
    const std::array<Stream, 2> streams{stream_of(pair.first), stream_of(pair.second)};
    std::unique_ptr<Strait> strait;
    check::untouched(check::other_device(pair.first), [&] {
        strait = make_strait({pair.first, streams[0]}, {pair.second, streams[1]}, prime);
        strait->exchange(basins.basin(0), basins.basin(1), prime);
        wait_for_devices(pair);
    });
    basins.check("with " + gpu(check::other_device(pair.first)) + " current");
    check::on_second_thread([&] {
        strait->exchange(others.basin(0), others.basin(1), prime);
        wait_for_devices(pair);
    });
    others.check("in a second thread");
    check::untouched(check::other_device(pair.second), [&] { strait.reset(); });
}

TEST_CASE("a strait that is gone leaves nothing behind", "[pts:1][gpus:2]") {
    check::explain("Memory, events and streams of a strait are released when it goes.",
                   section("Your task"));
    const Pair pair = any_pair();
    const std::array<Stream, 2> streams{stream_of(pair.first), stream_of(pair.second)};
    Basins basins(pair, prime, 14);
    check::CallLog log;
    {
        const auto strait = make_strait({pair.first, streams[0]}, {pair.second, streams[1]}, prime);
        for (const std::size_t cells : {std::size_t{7}, prime}) {
            strait->exchange(basins.basin(0), basins.basin(1), cells);
            wait_for_devices(pair);
        }
    }
    check::nothing_left(log, "after the strait is gone");
    basins.check("before the strait was gone");
}

TEST_CASE("levels are sent once they are complete", "[pts:1][gpus:2]") {
    check::explain("Work that was already in the stream of one side still had to write the levels. "
                   "The copy didn't wait for it, and took what was there before.",
                   section("Background"));
    Channel channel(any_pair());
    for (const int side : {0, 1})
        check_late_levels(channel, side);
}

TEST_CASE("memory that earlier work still reads is left alone", "[pts:1][gpus:2]") {
    check::explain("Work that was already in the stream of the receiving side still had to read "
                   "what arrived the time before. The copy didn't wait for it.",
                   section("Background"));
    Channel channel(any_pair());
    for (const int side : {0, 1})
        check_late_reader(channel, side);
}

TEST_CASE("later work comes after the exchange", "[pts:1][gpus:2]") {
    check::explain("Work put in one of the two streams after exchange() ran before the copies were "
                   "done: it read what had not arrived, or overwrote what was still to be sent.",
                   section("Background"));
    const Pair pair = any_pair();
    check::CallLog log;
    Channel channel(pair);
    for (const int nth : {1, 2})
        check_later_work(log, channel, nth);
}

TEST_CASE("the flow is right where one GPU can read the other", "[pts:3][gpus:2][starter-fails]") {
    check::explain("A kernel of the first GPU reads the far shore in the memory of the second. An "
                   "illegal address there says that the first GPU has no access to that memory: it "
                   "was not opened, or only the other way round.",
                   section("The idea"));
    const Pair there = direct_pair();
    for (const Pair pair : {there, there.reversed()}) {
        Channel channel(pair);
        Shores shores(pair, prime, 16);
        check::untouched(pair.second, [&] {
            shores.measure(channel.strait());
            channel.wait();
        });
        shores.check("with " + gpu(pair.second) + " current" + between(pair));
        check_flow(channel, prime, 18, ", a second time");
    }
}

TEST_CASE("the far shore is read where it lies", "[pts:1][gpus:2][starter-fails]") {
    check::explain("With peer access a kernel reads the few cells of the far shore itself. A copy "
                   "in front of it costs a call, memory, and the time until it has arrived." +
                       access_comes_first,
                   section("The idea"));
    Channel channel(direct_pair());
    Shores shores(channel.pair(), prime, 24);
    const check::CallLog log;
    shores.measure(channel.strait());
    channel.wait();
    const int copies = log.count(check::copies);
    check::expect(copies == 0,
                  "measure_flow() made " + std::to_string(copies) + " copies:\n" + log.text());
    shores.check("between GPUs that can read each other");
}

TEST_CASE("a second strait between the same GPUs works", "[pts:2][gpus:2][starter-fails]") {
    check::explain("Peer access between two GPUs is open for the whole program once somebody has "
                   "opened it. Opening it again is answered by an error that means: as you wish.",
                   section("Background"));
    const Pair pair = direct_pair();
    {
        Channel first(pair);
        check_exchange(first, prime, 26, ", the first strait");
    }
    Channel second(pair);
    check_exchange(second, prime, 28, ", a second strait after the first");
    Channel third(pair);
    check_exchange(third, prime, 34, ", a third strait beside the second");
    Channel fourth(pair.reversed());
    check_exchange(fourth, prime, 36, ", a fourth strait the other way round");
    check_exchange(second, prime, 38, ", the second strait again");
}

TEST_CASE("no error is left behind where access was open already",
          "[pts:2][gpus:2][starter-fails]") {
    check::explain(
        "An error that was expected and dealt with still waits for the next "
        "cudaGetLastError(), often the one behind somebody else's kernel launch. Whoever "
        "accepts an error also has to clear it.",
        section("Background"));
    const Pair pair = direct_pair();
    const OpenAccess there(pair.first, pair.second);
    const OpenAccess back(pair.second, pair.first);
    Channel channel = check::untouched(pair.second, [&] { return Channel(pair); });
    check_exchange(channel, prime, 44);
}

TEST_CASE("access stays open for those who still need it", "[pts:1][gpus:2][starter-fails]") {
    check::explain("Peer access belongs to the whole program. A strait that goes must not close "
                   "what others have opened or use.",
                   "lessons/2-peer-copy/peer-copy.hpp, class Strait");
    const Pair pair = direct_pair();
    auto first = std::make_unique<Channel>(pair);
    Channel second(pair);
    first.reset();
    check_flow(second, prime, 46, ", after the strait that was made first is gone");

    const OpenAccess there(pair.first, pair.second);
    const OpenAccess back(pair.second, pair.first);
    std::make_unique<Channel>(pair).reset();
    check::expect(is_open(pair.second, pair.first),
                  gpu(pair.second) + " has lost the access that the caller had opened");
}

TEST_CASE("shores of any length", "[pts:1][gpus:2][starter-fails]") {
    check::explain("The flow has one value for each cell of the shore." + access_comes_first,
                   section("Your task"));
    const Pair pair = any_pair();
    std::uint64_t id = 200;
    for (const std::size_t shore : {1, 2, 255, 256, 257, 70001}) {
        Channel channel(pair, shore);
        check_flow(channel, shore, id += 2);
    }
}

TEST_CASE("the flow waits for both shores", "[pts:1][gpus:2][starter-fails]") {
    check::explain("Work that was already in the stream of one side still had to write its shore. "
                   "The kernel, which runs on the first GPU, didn't wait for it." +
                       access_comes_first,
                   section("Background"));
    Channel channel(any_pair());
    for (const int side : {0, 1})
        check_late_shore(channel, side);
}

TEST_CASE("the far shore can change after the call", "[pts:1][gpus:2][starter-fails]") {
    check::explain("The second GPU went on and overwrote its shore before the first one had read "
                   "it: nothing made the later work in its stream wait." +
                       access_comes_first,
                   section("Background"));
    const Pair pair = any_pair();
    check::CallLog log;
    Channel channel(pair);
    check_shore_after_flow(log, channel);
}

TEST_CASE("without peer access everything still arrives", "[pts:3][gpus:2][starter-fails]") {
    check::explain("Many pairs of GPUs have no peer access; here the runtime says so for all of "
                   "them. Copies work all the same, through the host, but a kernel can only read "
                   "what has been copied to its own GPU before.",
                   section("The idea"));
    const std::vector<Pair> all = pairs(2);
    check::CallLog log;
    log.no_peer_access();
    for (const Pair pair : all) {
        Channel channel = check::untouched(pair.second, [&] { return Channel(pair); });
        check_exchange(channel, 1, 302, ", without peer access");
        check_exchange(channel, 70001, 304, ", without peer access");
        Shores shores(pair, prime, 306);
        check::untouched(pair.second, [&] {
            shores.measure(channel.strait());
            channel.wait();
        });
        shores.check("without peer access" + between(pair));
        check_flow(channel, prime, 308, ", without peer access a second time");
    }
}

TEST_CASE("without peer access the order holds", "[pts:2][gpus:2][starter-fails]") {
    check::explain("Without peer access data takes another way, and is waited for in the same "
                   "way: what was in the streams before comes first, what is put there later comes "
                   "after.",
                   section("Background"));
    const Pair pair = any_pair();
    check::CallLog log;
    log.no_peer_access();
    Channel channel(pair);
    check_order(log, channel);
}

TEST_CASE("one GPU can be on both sides", "[pts:2][starter-fails]") {
    check::explain("Both basins are on the same GPU. It needs no access to itself, cannot open "
                   "any, and cudaDeviceCanAccessPeer answers 0 for it: yet its kernels can read "
                   "all of its memory.",
                   section("Background"));
    const int device = check::target_device();
    const Pair pair{device, device};
    Channel channel = check::untouched(check::other_device(device), [&] { return Channel(pair); });
    for (const std::size_t cells : {0, 1, 4099})
        check_exchange(channel, cells, 400 + 2 * cells);
    Shores shores(pair, prime, 402);
    check::untouched(check::other_device(device), [&] {
        shores.measure(channel.strait());
        channel.wait();
    });
    shores.check("on both sides " + gpu(device));

    const Stream stream = stream_of(device);
    const auto strait = make_strait({device, stream}, {device, stream}, prime);
    Basins basins(pair, prime, 404);
    strait->exchange(basins.basin(0), basins.basin(1), prime);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    basins.check("both sides in one stream");
}

TEST_CASE("on one GPU the order holds", "[pts:1][starter-fails]") {
    check::explain("Two streams of one GPU know as little of each other as those of two GPUs: what "
                   "was in either before the call comes first, what is put there later comes "
                   "after.",
                   section("Background"));
    const int device = check::target_device();
    check::CallLog log;
    Channel channel(Pair{device, device});
    check_order(log, channel);
}

TEST_CASE("a failure is reported or survived", "[pts:1]") {
    check::explain("A call failed in the strait, as it would when memory is short. The strait must "
                   "throw CudaError, or work all the same, and leave nothing allocated.",
                   "lessons/2-peer-copy/peer-copy.hpp, make_strait");
    const Pair pair = any_pair();
    for (const int nth : {1, 2}) {
        check_failure(pair, check::device_allocations, nth);
        check_failure(pair, check::event_creations, nth);
    }
    check_failure(pair, check::pinned_allocations, 1);
    check_failure(pair, check::stream_creations, 1);
}

TEST_CASE("levels cross at the rate of the link", "[pts:4][gpus:2][starter-fails]") {
    check::explain("The exchange is slower than two peer copies at once. At a small part of their "
                   "rate: the data goes through the host. At half of it: one direction waits for "
                   "the other.",
                   section("The idea"));
    const Pair pair = direct_pair();
    Timing timing(pair, timed_cells());
    require_visible_gap(timing);
    Channel channel(pair);
    check::compare_rates(
        "exchange, both ways", timing.bytes(), [&] { return timing.direct_copies(); },
        [&] { return timing.strait(channel); }, needs_share);
    timing.check(channel);
}

TEST_CASE("levels do not crawl without peer access", "[pts:1][gpus:2][starter-fails]") {
    check::explain("Without peer access the data has to go through the host, but the driver does "
                   "that with pinned memory and without your help. Through a vector each byte is "
                   "copied four times, two of them by a CPU core.",
                   section("The idea"));
    const Pair pair = any_pair();
    check::CallLog log;
    log.no_peer_access();
    Timing timing(pair, timed_cells() / 4);
    Channel channel(pair);
    check::compare_rates(
        "exchange, both ways, through the host", timing.bytes(),
        [&] { return timing.plain_copies(); }, [&] { return timing.strait(channel); },
        needs_share_through_host);
    timing.check(channel);
}

TEST_CASE("on one GPU levels move at the rate of its memory", "[pts:2][starter-fails]") {
    check::explain("Both basins are on one GPU, and the exchange is slower than two copies in its "
                   "memory: the data leaves the GPU on its way.",
                   section("The idea"));
    const int device = check::target_device();
    const Pair pair{device, device};
    Timing timing(pair, timed_cells());
    Channel channel(pair);
    check::compare_rates(
        "exchange on one GPU", timing.bytes(), [&] { return timing.plain_copies(); },
        [&] { return timing.strait(channel); }, needs_share_on_one_gpu);
    timing.check(channel);
}
