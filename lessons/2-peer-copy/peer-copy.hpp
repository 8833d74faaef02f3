// Lesson 2, peer copy: what peer-copy.cu implements.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

namespace lesson {

/// A GPU and a stream that was made on it.
struct Side {
    int device;
    cudaStream_t stream;
};

/// The sea levels that one GPU brings to an exchange. All memory is that GPU's, from cudaMalloc.
struct Basin {
    const float* levels; ///< its own, not changed
    float* neighbour;    ///< where those of the other basin arrive
};

/// Joins two basins of an ocean model, each on a GPU of its own.
///
/// Order: what a function does comes after all work that is in the streams of both sides when it is
/// called, and before all work that is put in either of them later. The functions may wait for that
/// work on the host, but need not.
///
/// Peer access: a strait opens what it needs, as far as there is any. Access that is open already
/// is no mistake, and stays open. What a strait has opened may stay open when it is gone; other
/// straits between the same GPUs work all their life, whichever of them comes or goes first.
///
/// Any current device may be set when the functions are called, and it is the same afterwards. Used
/// by one thread at a time, which need not be the one that made it. Every function throws CudaError
/// when a CUDA call fails; one that succeeds leaves no error for the next cudaGetLastError().
class Strait {
public:
    virtual ~Strait() = default;

    /// Copies `cells` levels of each basin to the other one, both ways. `first` is memory of the
    /// first side's GPU, `second` of the second's. `cells` may be 0.
    virtual void exchange(const Basin& first, const Basin& second, std::size_t cells) = 0;

    /// Finds the flow through the strait by a kernel on the first side's GPU, for all cells of the
    /// shore: flow[i] = near[i] - far[i]. `near` and `flow` are memory of the first side's GPU,
    /// `far` is memory of the second's, all from cudaMalloc. Where the first GPU can access the
    /// second one's memory (cudaDeviceCanAccessPeer), the kernel reads `far` where it lies, and
    /// nothing is copied.
    virtual void measure_flow(const float* near, const float* far, float* flow) = 0;
};

/// Makes a strait between two GPUs, with `shore` cells along it, at least one. Works with and
/// without peer access between them; both sides may be on the same GPU, and then also in the same
/// stream. The streams stay the caller's: they live longer than the strait, and are idle when it
/// goes. When it throws, nothing is left allocated.
std::unique_ptr<Strait> make_strait(Side first, Side second, std::size_t shore);

} // namespace lesson
