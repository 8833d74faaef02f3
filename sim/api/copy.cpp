// Copies and fills.
#include "api/call.hpp"
#include "api/module.hpp"

#include <cstring>

using namespace sim;
using namespace sim::api;

namespace {

enum class Waiting { blocking, asynchronous };

constexpr double bytes_per_ns(double gb_per_s) {
    return gb_per_s;
}

std::uint64_t span_of(std::uint64_t pitch, const Rows& rows) {
    return pitch * (rows.height - 1) + rows.width;
}

/// One end of a copy: the range has to lie in one allocation, or in memory no GPU knows of.
bool valid_range(Node& node, std::uint64_t begin, std::uint64_t bytes) {
    if (begin == 0 || begin + bytes < begin) return false;
    if (node.owner(begin)) {
        const Piece piece = node.piece(begin);
        return piece.device && bytes <= piece.end() - begin;
    }
    const HostRange* range = node.host.overlap(begin, bytes);
    return !range || (range->begin <= begin && begin + bytes <= range->end());
}

/// Whether the kind that the caller names fits: its device end has to be memory a GPU can reach.
cudaError_t check_kind(cudaMemcpyKind kind, const Place& to, const Place& from) {
    const bool reachable_to = to.kind != Place::Kind::pageable;
    const bool reachable_from = from.kind != Place::Kind::pageable;
    switch (kind) {
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return cudaSuccess;
    case cudaMemcpyHostToDevice:
        return reachable_to ? cudaSuccess : cudaErrorInvalidValue;
    case cudaMemcpyDeviceToHost:
        return reachable_from ? cudaSuccess : cudaErrorInvalidValue;
    case cudaMemcpyDeviceToDevice:
        return reachable_to && reachable_from ? cudaSuccess : cudaErrorInvalidValue;
    }
    return cudaErrorInvalidMemcpyDirection;
}

struct CopyRequest {
    std::uint64_t destination;
    std::uint64_t source;
    Rows rows;
    Waiting waiting;
};

bool is_one_block(const Rows& rows) {
    return rows.height == 1 ||
           (rows.width == rows.destination_pitch && rows.width == rows.source_pitch);
}

/// A small upload from pageable memory: the driver takes the bytes and lets the caller go on.
void upload_captured(Call& call, Stream& stream, const CopyRequest& request) {
    const auto* source = reinterpret_cast<const std::byte*>(request.source);
    std::vector<std::byte> bytes(source, source + request.rows.bytes());
    call.thread.spend(static_cast<double>(bytes.size()) /
                      bytes_per_ns(call.node.file.pcie.pageable_h2d_gb_per_s));
    call.node.submit(
        stream,
        [&] {
            return std::make_shared<CopyOperation>(call.node, *stream.device, request.destination,
                                                   std::move(bytes));
        },
        call.thread);
}

/// Whether the call returns only when the copy is done.
bool host_waits(Waiting waiting, const Place& to, const Place& from) {
    const auto pageable = Place::Kind::pageable;
    if (to.kind == pageable || from.kind == pageable) return true;
    const bool both_on_devices = to.device && from.device;
    return waiting == Waiting::blocking && !both_on_devices;
}

cudaError_t wait_for(Call& call, Stream& stream, const OperationPtr& operation) {
    Device& device = *stream.device;
    call.node.wait(operation, call.thread, call.lock);
    call.thread.spend(call.node.file.api.blocking_copy.of(0));
    return state_of(device);
}

cudaError_t issue_copy(Call& call, Stream& stream, const CopyRequest& request,
                       const std::vector<OperationPtr>& also = {}) {
    const Place to = call.node.place(request.destination);
    const Place from = call.node.place(request.source);
    call.thread.spend(call.node.file.api.copy.of(0));
    const bool staged = !stream.capture && to.device && from.kind == Place::Kind::pageable &&
                        request.waiting == Waiting::asynchronous &&
                        request.rows.bytes() <= call.node.file.pcie.staged_bytes &&
                        is_one_block(request.rows);
    if (staged) {
        upload_captured(call, stream, request);
        return cudaSuccess;
    }
    const auto make = [&node = call.node, &device = *stream.device, request] {
        return std::make_shared<CopyOperation>(node, device, request.destination, request.source,
                                               request.rows);
    };
    const OperationPtr operation = call.node.submit(stream, make, call.thread, also);
    if (!operation || !host_waits(request.waiting, to, from)) return cudaSuccess;
    return wait_for(call, stream, operation);
}

cudaError_t copy_rows(void* destination, const void* source, Rows rows, cudaMemcpyKind kind,
                      cudaStream_t handle, Waiting waiting) {
    return device_call([&](Call& call) -> cudaError_t {
        Stream* stream = find_stream(call, handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (cudaError_t error = ready_for_work(call, *stream)) return error;
        if (rows.bytes() == 0) return cudaSuccess;
        if (rows.height > 1 &&
            (rows.width > rows.destination_pitch || rows.width > rows.source_pitch))
            return cudaErrorInvalidPitchValue;
        const CopyRequest request{address_of(destination), address_of(source), rows, waiting};
        const cudaError_t wrong_kind =
            check_kind(kind, call.node.place(request.destination), call.node.place(request.source));
        if (wrong_kind != cudaSuccess) return wrong_kind;
        if (!valid_range(call.node, request.destination, span_of(rows.destination_pitch, rows)) ||
            !valid_range(call.node, request.source, span_of(rows.source_pitch, rows)))
            return cudaErrorInvalidValue;
        return issue_copy(call, *stream, request);
    });
}

Rows one_row(std::size_t bytes) {
    return {bytes, 1, bytes, bytes};
}

/// The work that a peer copy in the default streams stands behind, on every device involved.
cudaError_t copy_peer(void* destination, int to, const void* source, int from, std::size_t bytes,
                      cudaStream_t handle, Waiting waiting) {
    return device_call([&](Call& call) -> cudaError_t {
        Device* devices[] = {call.node.device(to), call.node.device(from)};
        if (!devices[0] || !devices[1]) return cudaErrorInvalidDevice;
        Stream* stream = find_stream(call, handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (cudaError_t error = ready_for_work(call, *stream)) return error;
        for (Device* device : devices) {
            if (cudaError_t error = use_context(call, *device)) return error;
        }
        if (bytes == 0) return cudaSuccess;
        const CopyRequest request{address_of(destination), address_of(source), one_row(bytes),
                                  waiting};
        if (!valid_range(call.node, request.destination, bytes) ||
            !valid_range(call.node, request.source, bytes))
            return cudaErrorInvalidValue;
        std::vector<OperationPtr> also;
        if (stream->legacy) {
            for (Device* device : devices)
                call.node.add_default_order(*device, also);
        }
        const cudaError_t error = issue_copy(call, *stream, request, also);
        if (stream->legacy) {
            // Later work in the default streams of both devices waits for the copy in turn.
            for (Device* device : devices)
                device->legacy_stream.tail = stream->tail;
        }
        return error;
    });
}

cudaError_t fill_rows(void* destination, unsigned value, Rows rows, cudaStream_t handle,
                      Waiting waiting, unsigned element_bytes = 1) {
    return device_call([&](Call& call) -> cudaError_t {
        Stream* stream = find_stream(call, handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (cudaError_t error = ready_for_work(call, *stream)) return error;
        if (rows.bytes() == 0) return cudaSuccess;
        const std::uint64_t begin = address_of(destination);
        const Place place = call.node.place(begin);
        if (place.kind == Place::Kind::pageable ||
            !valid_range(call.node, begin, span_of(rows.destination_pitch, rows)))
            return cudaErrorInvalidValue;
        call.thread.spend(call.node.file.api.copy.of(0));
        const auto make = [&node = call.node, &device = *stream->device, begin, value, rows,
                           element_bytes] {
            return std::make_shared<FillOperation>(node, device, begin, value, rows, element_bytes);
        };
        const OperationPtr operation = call.node.submit(*stream, make, call.thread);
        const bool waits = operation && waiting == Waiting::blocking && !place.device;
        return waits ? wait_for(call, *stream, operation) : cudaSuccess;
    });
}

/// Where a box begins in memory with rows of one pitch, and how far its slices are apart.
struct Box {
    Box(const cudaPitchedPtr& memory, const cudaPos& at)
        : slice(memory.pitch * memory.ysize),
          begin(static_cast<char*>(memory.ptr) + at.z * slice + at.y * memory.pitch + at.x) {}

    std::size_t slice;
    char* begin;
};

cudaError_t copy_box(const cudaMemcpy3DParms* what, cudaStream_t stream, Waiting waiting) {
    if (!what || !what->srcPtr.ptr || !what->dstPtr.ptr || what->srcArray || what->dstArray)
        return host_call([](Call&) { return cudaErrorInvalidValue; });
    const Box to(what->dstPtr, what->dstPos), from(what->srcPtr, what->srcPos);
    const cudaExtent size = what->extent;
    const bool without_gaps =
        what->srcPtr.ysize == size.height && what->dstPtr.ysize == size.height;
    const Rows slice{size.width, size.height, what->dstPtr.pitch, what->srcPtr.pitch};
    if (without_gaps || size.depth <= 1) {
        Rows all = slice;
        all.height *= size.depth;
        return copy_rows(to.begin, from.begin, all, what->kind, stream, waiting);
    }
    for (std::size_t z = 0; z < size.depth; ++z) {
        const cudaError_t error = copy_rows(to.begin + z * to.slice, from.begin + z * from.slice,
                                            slice, what->kind, stream, waiting);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

cudaError_t fill_box(cudaPitchedPtr memory, int value, cudaExtent size, cudaStream_t stream,
                     Waiting waiting) {
    const Box box(memory, {0, 0, 0});
    for (std::size_t z = 0; z < size.depth; ++z) {
        const cudaError_t error =
            fill_rows(box.begin + z * box.slice, static_cast<unsigned>(value),
                      {size.width, size.height, memory.pitch, memory.pitch}, stream, waiting);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

/// Address of a variable of the program on the current device, moved by `offset`; 0 when there is
/// no such variable or the range leaves it.
std::uint64_t symbol_address(Call& call, const void* symbol, std::size_t bytes, std::size_t offset,
                             cudaError_t& error) {
    const VariableOnDevice variable = find_variable(call, symbol);
    error = variable.error;
    if (error == cudaSuccess && (offset > variable.bytes || bytes > variable.bytes - offset))
        error = cudaErrorInvalidValue;
    return error == cudaSuccess ? variable.address + offset : 0;
}

} // namespace

cudaError_t cudaMemcpy(void* destination, const void* source, std::size_t bytes,
                       cudaMemcpyKind kind) {
    return copy_rows(destination, source, one_row(bytes), kind, cudaStreamLegacy,
                     Waiting::blocking);
}

cudaError_t cudaMemcpyAsync(void* destination, const void* source, std::size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_rows(destination, source, one_row(bytes), kind, stream, Waiting::asynchronous);
}

cudaError_t cudaMemcpy2D(void* destination, std::size_t destination_pitch, const void* source,
                         std::size_t source_pitch, std::size_t width, std::size_t height,
                         cudaMemcpyKind kind) {
    return copy_rows(destination, source, {width, height, destination_pitch, source_pitch}, kind,
                     cudaStreamLegacy, Waiting::blocking);
}

cudaError_t cudaMemcpy2DAsync(void* destination, std::size_t destination_pitch, const void* source,
                              std::size_t source_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_rows(destination, source, {width, height, destination_pitch, source_pitch}, kind,
                     stream, Waiting::asynchronous);
}

#if CUDART_VERSION >= 13000
cudaError_t cudaMemcpyBatchAsync(void* const* destinations, const void* const* sources,
                                 const std::size_t* sizes, std::size_t count,
                                 cudaMemcpyAttributes* attributes, std::size_t*,
                                 std::size_t attribute_count, cudaStream_t stream) {
    const bool default_stream = stream == nullptr || stream == cudaStreamLegacy;
    if (!destinations || !sources || !sizes || !attributes || attribute_count == 0 || count == 0 ||
        default_stream)
        return host_call([](Call&) { return cudaErrorInvalidValue; });
    // The order in which sources are read is a permission to be early; stream order always fits.
    for (std::size_t i = 0; i < count; ++i) {
        const cudaError_t error =
            cudaMemcpyAsync(destinations[i], sources[i], sizes[i], cudaMemcpyDefault, stream);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}
#endif

cudaError_t cudaMemcpyPeer(void* destination, int to, const void* source, int from,
                           std::size_t bytes) {
    return copy_peer(destination, to, source, from, bytes, cudaStreamLegacy, Waiting::blocking);
}

cudaError_t cudaMemcpyPeerAsync(void* destination, int to, const void* source, int from,
                                std::size_t bytes, cudaStream_t stream) {
    return copy_peer(destination, to, source, from, bytes, stream, Waiting::asynchronous);
}

cudaError_t cudaMemset(void* destination, int value, std::size_t bytes) {
    return fill_rows(destination, static_cast<unsigned>(value), one_row(bytes), cudaStreamLegacy,
                     Waiting::blocking);
}

cudaError_t cudaMemsetAsync(void* destination, int value, std::size_t bytes, cudaStream_t stream) {
    return fill_rows(destination, static_cast<unsigned>(value), one_row(bytes), stream,
                     Waiting::asynchronous);
}

cudaError_t cudaMemset2D(void* destination, std::size_t pitch, int value, std::size_t width,
                         std::size_t height) {
    return fill_rows(destination, static_cast<unsigned>(value), {width, height, pitch, pitch},
                     cudaStreamLegacy, Waiting::blocking);
}

cudaError_t cudaMemset2DAsync(void* destination, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream) {
    return fill_rows(destination, static_cast<unsigned>(value), {width, height, pitch, pitch},
                     stream, Waiting::asynchronous);
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* what) {
    return copy_box(what, cudaStreamLegacy, Waiting::blocking);
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* what, cudaStream_t stream) {
    return copy_box(what, stream, Waiting::asynchronous);
}

cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent size) {
    return fill_box(memory, value, size, cudaStreamLegacy, Waiting::blocking);
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr memory, int value, cudaExtent size,
                              cudaStream_t stream) {
    return fill_box(memory, value, size, stream, Waiting::asynchronous);
}

cudaError_t sim::api::fill_elements(const cudaMemsetParams& what, cudaStream_t stream) {
    const bool known = what.elementSize == 1 || what.elementSize == 2 || what.elementSize == 4;
    if (!known) return host_call([](Call&) { return cudaErrorInvalidValue; });
    const std::size_t width = what.width * what.elementSize;
    const std::size_t pitch = what.height > 1 ? what.pitch : width;
    return fill_rows(what.dst, what.value, {width, what.height, pitch, pitch}, stream,
                     Waiting::asynchronous, what.elementSize);
}

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
    return device_call([&](Call& call) {
        if (!pointer) return cudaErrorInvalidValue;
        cudaError_t error = cudaSuccess;
        *pointer = pointer_to(symbol_address(call, symbol, 0, 0, error));
        return error;
    });
}

cudaError_t cudaGetSymbolSize(std::size_t* bytes, const void* symbol) {
    return device_call([&](Call& call) {
        const VariableOnDevice variable = find_variable(call, symbol);
        if (!bytes) return cudaErrorInvalidValue;
        *bytes = variable.bytes;
        return variable.error;
    });
}

namespace {

/// A copy to or from a variable; the other end is `pointer`.
cudaError_t copy_symbol(const void* symbol, bool to_symbol, void* pointer, std::size_t bytes,
                        std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream,
                        Waiting waiting) {
    std::uint64_t address = 0;
    const cudaError_t found = device_call([&](Call& call) {
        cudaError_t error = cudaSuccess;
        address = symbol_address(call, symbol, bytes, offset, error);
        return error;
    });
    if (found != cudaSuccess) return found;
    void* variable = pointer_to(address);
    return copy_rows(to_symbol ? variable : pointer, to_symbol ? pointer : variable, one_row(bytes),
                     kind, stream, waiting);
}

} // namespace

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, std::size_t bytes,
                               std::size_t offset, cudaMemcpyKind kind) {
    return copy_symbol(symbol, true, const_cast<void*>(source), bytes, offset, kind,
                       cudaStreamLegacy, Waiting::blocking);
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, std::size_t bytes,
                                    std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_symbol(symbol, true, const_cast<void*>(source), bytes, offset, kind, stream,
                       Waiting::asynchronous);
}

cudaError_t cudaMemcpyFromSymbol(void* destination, const void* symbol, std::size_t bytes,
                                 std::size_t offset, cudaMemcpyKind kind) {
    return copy_symbol(symbol, false, destination, bytes, offset, kind, cudaStreamLegacy,
                       Waiting::blocking);
}

cudaError_t cudaMemcpyFromSymbolAsync(void* destination, const void* symbol, std::size_t bytes,
                                      std::size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
    return copy_symbol(symbol, false, destination, bytes, offset, kind, stream,
                       Waiting::asynchronous);
}
