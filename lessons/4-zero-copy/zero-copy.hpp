// Lesson 4, zero-copy: what zero-copy.cu implements.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace lesson {

/// Values of one spectrum: photon counts, whole numbers from 0 to 65535. Their total is exact in a
/// float, in whatever order they are added.
inline constexpr std::size_t channels = 128;

/// The most device memory that a catalogue may take on each of its GPUs, in bytes. A catalogue can
/// be larger than the memory of a GPU.
inline constexpr std::size_t max_catalogue_device_bytes = std::size_t{16} << 20;

/// Many spectra in host memory, of which GPUs look up a few. All GPUs use the same spectra.
/// Any current device may be set when the functions are called, and it is the same afterwards. Used
/// by one thread at a time. Every function throws CudaError when a CUDA call fails.
class Catalogue {
public:
    virtual ~Catalogue() = default;

    /// Host memory of the spectra, one after the other, `channels` floats each. Owned by the
    /// catalogue, at the same address all its life. The caller writes it while no lookup is under
    /// way; a lookup sees all that was written before it was started.
    virtual float* spectra() = 0;

    /// Starts a lookup on GPU `device`, in `stream`, which belongs to that GPU: the total of each
    /// of the `n` spectra whose numbers are at `ids`. `ids` is memory of that GPU, complete as soon
    /// as the work already in `stream` is done, and stays as it is until the lookup is finished.
    /// `n` may be 0. Does not wait for the GPU.
    virtual void start_lookup(int device, const std::uint32_t* ids, std::size_t n,
                              cudaStream_t stream) = 0;

    /// Finishes the lookup that was started last on GPU `device` and returns its `n` totals, in the
    /// order of the ids: host memory, complete, owned by the catalogue, valid until the next
    /// start_lookup() for this GPU.
    virtual const float* finish_lookup(int device) = 0;
};

/// Makes a catalogue of `spectra`, at least one, for lookups of up to `max_lookups` spectra, at
/// least one, on each of the GPUs `devices`, at least one, each named once. When it throws, nothing
/// is left allocated.
std::unique_ptr<Catalogue> make_catalogue(const std::vector<int>& devices, std::size_t spectra,
                                          std::size_t max_lookups);

/// Smooths one light curve on one GPU, in many passes. Any current device may be set when the
/// functions are called, and it is the same afterwards. Used by one thread at a time. Every
/// function throws CudaError when a CUDA call fails.
class Smoother {
public:
    virtual ~Smoother() = default;

    /// Host memory of the curve, as many floats as the smoother has points. Owned by the smoother,
    /// at the same address all its life.
    virtual float* curve() = 0;

    /// Replaces the curve by the one smoothed `passes` times; 0 leaves it as it is. One pass makes
    /// every point but the first and the last the sum of its left neighbour / 4, itself / 2 and its
    /// right neighbour / 4, all of the pass before. Complete when it returns.
    virtual void smooth(int passes) = 0;
};

/// Makes a smoother on GPU `device` for curves of `points` floats, at least one. When it throws,
/// nothing is left allocated.
std::unique_ptr<Smoother> make_smoother(int device, std::size_t points);

} // namespace lesson
