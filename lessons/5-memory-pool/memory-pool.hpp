// Lesson 5, memory pool: what memory-pool.cu implements.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace lesson {

/// Heat spreading in square plates, one plate on each GPU of a list, each with a stream of its own.
/// Plates are numbered as the GPUs in the list. A plate is width * width floats, row after row.
///
/// Any current device may be set when these functions are called, and it is the same afterwards.
/// Used by one thread at a time. Every function throws CudaError when a CUDA call fails; one that
/// throws leaves nothing more in use than before, and after a new load() the solver works again.
///
/// Memory. Other programs' solvers share these GPUs. Once a function has returned, a solver has
/// nothing in use on a GPU beyond its plate, snapshots on their way, and `small_change` bytes.
/// A pool may hold freed memory in reserve: that is not in use. A solver that is gone has nothing
/// in use; snapshots must have arrived before it goes.
///
/// Pools. The solver may use pools of its own, or the current pool of each GPU
/// (cudaDeviceGetMemPool), which belongs to the caller: it may raise that pool's release threshold
/// and let GPUs of the list access it, and leave it so. It changes nothing else about that pool,
/// never lowers its threshold, and the current pool of every GPU stays as it was.
class HeatSolver {
public:
    virtual ~HeatSolver() = default;

    /// Copies a plate from the host, any memory. Once this returns, the plate is on its GPU.
    virtual void load(std::size_t plate, const float* from) = 0;

    /// Makes one step on all plates, at the same time:
    ///     cell += spread * (sum of its four neighbours - 4 * cell)
    /// for every cell that has four neighbours; the border keeps its heat. Returns, for each plate,
    /// the largest absolute change of a cell, once the steps are done. Waits for no other work than
    /// the solver's own: neither snapshots on their way nor what else runs on the GPU.
    virtual std::vector<float> step() = 0;

    /// Copies the plate as it is now to pinned host memory. The copy to the host comes in `stream`,
    /// a stream of the caller on the plate's GPU, after what the caller has put there. Does not
    /// wait for it, and neither do later steps. Once `stream` has got there, the copy is complete.
    virtual void snapshot(std::size_t plate, float* to, cudaStream_t stream) = 0;

    /// Copies a plate to the host, any memory. Once this returns, the copy is complete.
    virtual void store(std::size_t plate, float* to) = 0;

    /// The largest absolute difference between cells at the same place in two plates, found by the
    /// GPU of `plate`. The caller makes sure that this GPU can access the GPU of `other`
    /// (cudaDeviceCanAccessPeer), or that it is the same.
    virtual float difference(std::size_t plate, std::size_t other) = 0;
};

/// The part of a temperature difference that goes from cell to cell in one step.
inline constexpr float spread = 0.125F;

/// What a solver may have in use on each GPU beside its plate, in bytes.
inline constexpr std::size_t small_change = std::size_t{1} << 20;

/// Makes a solver with plates of `width` * `width` cells, at least one, on these GPUs, each of
/// which occurs once. Works with and without peer access between them. When it throws, nothing is
/// left in use. A plate holds nothing defined until it is loaded.
std::unique_ptr<HeatSolver> make_heat_solver(const std::vector<int>& devices, std::size_t width);

} // namespace lesson
