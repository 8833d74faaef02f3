// Joins neighbouring GPUs by the straits of peer-copy.cu and sets their rates beside those of plain
// peer copies on this machine.
#include "peer-copy.hpp"

#include "common/cuda_check.hpp"
#include "common/device_guard.hpp"
#include "common/stopwatch.hpp"
#include "common/stream.hpp"

#include <cuda_runtime.h>

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t cells = std::size_t{8} << 20;
constexpr std::size_t shore = 4096;
constexpr int days = 2;

/// Neighbouring GPUs; a single one is its own neighbour.
struct Pair {
    int first;
    int second;
};

std::vector<Pair> make_pairs(int device_count) {
    if (device_count == 1) return {{0, 0}};
    std::vector<Pair> pairs;
    for (int device = 0; device + 1 < device_count; ++device)
        pairs.push_back({device, device + 1});
    return pairs;
}

/// Floats of one GPU, zero at first.
class Levels {
public:
    Levels(int device, std::size_t n) : device_(device), n_(n) {
        const DeviceGuard guard(device);
        CUDA_CHECK(cudaMalloc(&data_, n * sizeof(float)));
        CUDA_CHECK(cudaMemset(data_, 0, n * sizeof(float)));
        CUDA_CHECK(cudaDeviceSynchronize());
    }
    ~Levels() { cudaFree(data_); }
    Levels(const Levels&) = delete;
    Levels& operator=(const Levels&) = delete;

    float* data() { return data_; }

    void set(const std::vector<float>& from) {
        const DeviceGuard guard(device_);
        CUDA_CHECK(cudaMemcpy(data_, from.data(), n_ * sizeof(float), cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaDeviceSynchronize());
    }

    std::vector<float> get() const {
        const DeviceGuard guard(device_);
        std::vector<float> to(n_);
        CUDA_CHECK(cudaMemcpy(to.data(), data_, n_ * sizeof(float), cudaMemcpyDeviceToHost));
        return to;
    }

private:
    int device_;
    std::size_t n_;
    float* data_ = nullptr;
};

Stream make_stream(int device) {
    const DeviceGuard guard(device);
    return {};
}

/// Whole numbers, so that differences are exact; other ones for each basin and day.
std::vector<float> draw_levels(std::size_t n, int basin, int day) {
    std::vector<float> levels(n);
    const auto shift = static_cast<std::size_t>(basin * 31 + day * 7);
    for (std::size_t i = 0; i < n; ++i)
        levels[i] = static_cast<float>((i * 13 + shift) % 4093);
    return levels;
}

std::size_t count_different(const std::vector<float>& got, const std::vector<float>& expected) {
    std::size_t different = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
        different += got[i] != expected[i];
    return different;
}

/// Lets one GPU use the memory of another one, where it can, until the end of the scope.
class OpenAccess {
public:
    OpenAccess(int reader, int owner) : reader_(reader), owner_(owner) {
        int can_access = 0;
        CUDA_CHECK(cudaDeviceCanAccessPeer(&can_access, reader_, owner_));
        if (!can_access) return;
        const DeviceGuard guard(reader_);
        opened_ = cudaDeviceEnablePeerAccess(owner_, 0) == cudaSuccess;
        if (!opened_) cudaGetLastError(); // it is open already
    }
    ~OpenAccess() {
        if (!opened_) return;
        const DeviceGuard guard(reader_);
        cudaDeviceDisablePeerAccess(owner_);
    }
    OpenAccess(const OpenAccess&) = delete;
    OpenAccess& operator=(const OpenAccess&) = delete;

private:
    int reader_;
    int owner_;
    bool opened_ = false;
};

struct Result {
    double seconds = 0;
    std::size_t wrong = 0;
};

/// One basin of a pair with room for the other's levels.
struct BasinMemory {
    explicit BasinMemory(int device) : levels(device, cells), neighbour(device, cells) {}

    lesson::Basin basin() { return {levels.data(), neighbour.data()}; }

    Levels levels;
    Levels neighbour;
};

/// A strait, its streams, and what joins them.
class Joint {
public:
    explicit Joint(Pair pair)
        : pair_(pair), first_(make_stream(pair.first)), second_(make_stream(pair.second)),
          strait_(lesson::make_strait({pair.first, first_}, {pair.second, second_}, shore)) {}

    Result exchange(BasinMemory& first, BasinMemory& second, int day) {
        const std::vector<float> first_levels = draw_levels(cells, 0, day);
        const std::vector<float> second_levels = draw_levels(cells, 1, day);
        first.levels.set(first_levels);
        second.levels.set(second_levels);
        Stopwatch stopwatch(pair_.first);
        strait_->exchange(first.basin(), second.basin(), cells);
        wait();
        Result result{stopwatch.seconds()};
        result.wrong = count_different(first.neighbour.get(), second_levels) +
                       count_different(second.neighbour.get(), first_levels);
        return result;
    }

    /// The number of cells with a wrong flow.
    std::size_t measure_flow() {
        const std::vector<float> here = draw_levels(shore, 0, 0);
        const std::vector<float> there = draw_levels(shore, 1, 0);
        std::vector<float> expected(shore);
        for (std::size_t i = 0; i < shore; ++i)
            expected[i] = here[i] - there[i];
        Levels near(pair_.first, shore);
        Levels flow(pair_.first, shore);
        Levels far(pair_.second, shore);
        near.set(here);
        far.set(there);
        strait_->measure_flow(near.data(), far.data(), flow.data());
        wait();
        return count_different(flow.get(), expected);
    }

private:
    void wait() {
        CUDA_CHECK(cudaStreamSynchronize(first_));
        CUDA_CHECK(cudaStreamSynchronize(second_));
    }

    Pair pair_;
    Stream first_;
    Stream second_;
    std::unique_ptr<lesson::Strait> strait_;
};

/// Seconds for both directions at once by plain peer copies, with peer access where there is any.
double time_plain_copies(Pair pair, BasinMemory& first, BasinMemory& second) {
    const OpenAccess one_way(pair.first, pair.second);
    const OpenAccess other_way(pair.second, pair.first);
    const Stream there = make_stream(pair.first);
    const Stream back = make_stream(pair.second);
    constexpr std::size_t bytes = cells * sizeof(float);
    Stopwatch stopwatch(pair.first);
    CUDA_CHECK(cudaMemcpyPeerAsync(second.neighbour.data(), pair.second, first.levels.data(),
                                   pair.first, bytes, there));
    CUDA_CHECK(cudaMemcpyPeerAsync(first.neighbour.data(), pair.first, second.levels.data(),
                                   pair.second, bytes, back));
    CUDA_CHECK(cudaStreamSynchronize(there));
    CUDA_CHECK(cudaStreamSynchronize(back));
    return stopwatch.seconds();
}

const char* access_between(Pair pair) {
    if (pair.first == pair.second) return "same GPU";
    int can = 0;
    CUDA_CHECK(cudaDeviceCanAccessPeer(&can, pair.first, pair.second));
    return can ? "possible" : "impossible";
}

double gigabytes_per_second(double seconds) {
    return 2.0 * cells * sizeof(float) / seconds / 1e9;
}

/// Makes a strait each day, and exchanges once. Returns the strait of the first day; none when it
/// could not be made.
std::unique_ptr<Joint> print_exchanges(Pair pair) {
    BasinMemory first(pair.first);
    BasinMemory second(pair.second);
    time_plain_copies(pair, first, second); // the first copy between two GPUs prepares others
    std::unique_ptr<Joint> of_first_day;
    for (int day = 1; day <= days; ++day) {
        std::printf("%5d %4d %5d   %-13s", pair.first, pair.second, day, access_between(pair));
        try {
            auto joint = std::make_unique<Joint>(pair);
            const Result result = joint->exchange(first, second, day);
            std::printf("%7.1f GB/s %12.1f GB/s %7zu of %zu\n",
                        gigabytes_per_second(result.seconds),
                        gigabytes_per_second(time_plain_copies(pair, first, second)), result.wrong,
                        2 * cells);
            if (!of_first_day) of_first_day = std::move(joint);
        } catch (const CudaError& error) {
            std::printf("  %s\n", cudaGetErrorName(error.code()));
        }
    }
    return of_first_day;
}

void print_flow(Pair pair, Joint* joint) {
    std::printf("%5d %4d   ", pair.first, pair.second);
    if (!joint) {
        std::printf("no strait\n");
        return;
    }
    try {
        std::printf("%zu of %zu\n", joint->measure_flow(), shore);
    } catch (const CudaError& error) {
        std::printf("%s\n", cudaGetErrorName(error.code()));
    }
}

void run() {
    int device_count = 0;
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDeviceCount(&device_count));
    CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
    std::printf("%d x %s\n\n", device_count, properties.name);

    const std::vector<Pair> pairs = make_pairs(device_count);
    std::vector<std::unique_ptr<Joint>> joints;
    std::printf("EXCHANGE of %zu MiB each way, a new strait each day\n\n",
                cells * sizeof(float) >> 20);
    std::printf("%5s %4s %5s   %-13s%12s %17s %16s\n", "GPU", "GPU", "day", "peer access",
                "this strait", "plain peer copy", "wrong cells");
    for (const Pair pair : pairs)
        joints.push_back(print_exchanges(pair));
    std::printf("\nerror left behind by the straits: %s\n", cudaGetErrorName(cudaGetLastError()));

    std::printf("\nFLOW, computed by the first GPU of each pair\n\n");
    std::printf("%5s %4s   %s\n", "GPU", "GPU", "wrong cells");
    for (std::size_t i = 0; i < pairs.size(); ++i)
        print_flow(pairs[i], joints[i].get());
}

} // namespace

int main() {
    try {
        run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "peer-copy: %s\n", error.what());
        return 1;
    }
}
