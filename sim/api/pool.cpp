// Stream-ordered memory and its pools.
#include "api/call.hpp"

using namespace sim;
using namespace sim::api;

namespace {

/// The pool behind a handle, or nullptr.
Pool* find_pool(Node& node, cudaMemPool_t handle) {
    for (const auto& device : node.devices) {
        for (const auto& pool : device->pools) {
            if (pool.get() == reinterpret_cast<Pool*>(handle)) return pool.get();
        }
    }
    return nullptr;
}

cudaMemPool_t handle_of(Pool& pool) {
    return reinterpret_cast<cudaMemPool_t>(&pool);
}

cudaError_t allocate(Call& call, void** pointer, std::size_t bytes, Pool& pool,
                     const Stream& stream) {
    if (!pointer) return cudaErrorInvalidValue;
    *pointer = nullptr;
    if (bytes == 0) return cudaSuccess;
    std::uint64_t grown = 0;
    auto begin = pool.allocate(bytes, stream, call.thread.clock, grown);
    if (!begin) return cudaErrorMemoryAllocation;
    const ApiFigures& api = call.node.file.api;
    spend_on(call, "cudaMallocAsync",
             api.malloc_async.of(0) + (grown > 0 ? api.pool_grow.of(grown) : 0));
    *pointer = pointer_to(*begin);
    return cudaSuccess;
}

/// Memory of a pool comes back when the stream gets there.
cudaError_t free_pool_memory(Call& call, const Piece& piece, Stream& stream) {
    const OperationPtr operation = call.node.submit(
        stream,
        [&stream] { return std::make_shared<MarkerOperation>(*stream.device, "cudaFreeAsync"); },
        call.thread);
    piece.pool->free(piece.begin, operation, stream.id, "cudaFreeAsync");
    return cudaSuccess;
}

/// cudaFreeAsync takes memory of cudaMalloc, too.
cudaError_t free_device_memory(Call& call, const Piece& piece, Stream& stream) {
    Device& device = *piece.device;
    const std::uint64_t begin = piece.begin;
    const auto free = [&device, begin] {
        const auto* live = device.memory.find(begin);
        if (live && live->begin == begin) device.memory.free(begin, "cudaFreeAsync");
    };
    call.node.submit(
        stream,
        [&] { return std::make_shared<NodeOperation>(*stream.device, "cudaFreeAsync", free); },
        call.thread);
    return cudaSuccess;
}

template <class Body> cudaError_t with_pool(cudaMemPool_t handle, Body&& body) {
    return device_call([&](Call& call) -> cudaError_t {
        Pool* pool = find_pool(call.node, handle);
        return pool ? body(call, *pool) : cudaErrorInvalidValue;
    });
}

/// A stream that takes work now: error and nullptr otherwise.
Stream* usable_stream(Call& call, cudaStream_t handle, cudaError_t& error) {
    Stream* stream = find_stream(call, handle);
    error = stream ? ready_for_work(call, *stream) : cudaErrorInvalidResourceHandle;
    // Nodes that allocate are not modelled.
    if (stream && stream->capture) error = cudaErrorNotSupported;
    return error == cudaSuccess ? stream : nullptr;
}

bool& reuse_switch(Pool& pool, cudaMemPoolAttr attribute) {
    if (attribute == cudaMemPoolReuseFollowEventDependencies) return pool.follow_events;
    if (attribute == cudaMemPoolReuseAllowOpportunistic) return pool.opportunistic;
    return pool.internal_dependencies;
}

} // namespace

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t handle) {
    return device_call([&](Call& call) {
        cudaError_t error = cudaSuccess;
        Stream* stream = usable_stream(call, handle, error);
        if (!stream) return error;
        return allocate(call, pointer, bytes, *stream->device->current_pool, *stream);
    });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, cudaMemPool_t pool_handle,
                                    cudaStream_t handle) {
    return with_pool(pool_handle, [&](Call& call, Pool& pool) {
        cudaError_t error = cudaSuccess;
        Stream* stream = usable_stream(call, handle, error);
        return stream ? allocate(call, pointer, bytes, pool, *stream) : error;
    });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t handle) {
    return device_call([&](Call& call) {
        cudaError_t error = cudaSuccess;
        Stream* stream = usable_stream(call, handle, error);
        if (!stream) return error;
        if (!pointer) return cudaSuccess;
        const Piece piece = call.node.piece(address_of(pointer));
        if (!piece.device || piece.begin != address_of(pointer)) return cudaErrorInvalidValue;
        call.thread.spend(call.node.file.api.free_async.of(0));
        return piece.pool ? free_pool_memory(call, piece, *stream)
                          : free_device_memory(call, piece, *stream);
    });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    return device_call([&](Call& call) {
        Device* found = call.node.device(device);
        if (!found) return cudaErrorInvalidDevice;
        if (!pool) return cudaErrorInvalidValue;
        *pool = handle_of(found->default_pool());
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
    return device_call([&](Call& call) {
        Device* found = call.node.device(device);
        if (!found) return cudaErrorInvalidDevice;
        if (!pool) return cudaErrorInvalidValue;
        *pool = handle_of(*found->current_pool);
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t handle) {
    return with_pool(handle, [&](Call& call, Pool& pool) {
        Device* found = call.node.device(device);
        if (!found) return cudaErrorInvalidDevice;
        if (pool.device() != device) return cudaErrorInvalidValue;
        found->current_pool = &pool;
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
    return device_call([&](Call& call) {
        if (!pool || !properties || properties->allocType != cudaMemAllocationTypePinned)
            return cudaErrorInvalidValue;
        if (properties->location.type != cudaMemLocationTypeDevice) return cudaErrorNotSupported;
        Device* device = call.node.device(properties->location.id);
        if (!device) return cudaErrorInvalidDevice;
        if (cudaError_t error = use_context(call, *device)) return error;
        *pool = handle_of(device->add_pool(properties->maxSize));
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t handle) {
    return with_pool(handle, [&](Call& call, Pool& pool) {
        Device& device = *call.node.device(pool.device());
        if (&pool == &device.default_pool()) return cudaErrorInvalidValue;
        // The current pool of a device is replaced by its default pool.
        if (device.current_pool == &pool) device.current_pool = &device.default_pool();
        call.node.wait(device, call.thread, call.lock);
        std::erase_if(device.pools, [&](const auto& one) { return one.get() == &pool; });
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t handle, std::size_t keep) {
    return with_pool(handle, [&](Call& call, Pool& pool) {
        const std::uint64_t released = pool.release(keep, call.thread.clock);
        if (released > 0) call.thread.spend(call.node.file.api.pool_release.of(released));
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
    return with_pool(handle, [&](Call&, Pool& pool) {
        if (!value) return cudaErrorInvalidValue;
        switch (attribute) {
        case cudaMemPoolReuseFollowEventDependencies:
        case cudaMemPoolReuseAllowOpportunistic:
        case cudaMemPoolReuseAllowInternalDependencies:
            reuse_switch(pool, attribute) = *static_cast<int*>(value) != 0;
            return cudaSuccess;
        case cudaMemPoolAttrReleaseThreshold:
            pool.threshold = *static_cast<std::uint64_t*>(value);
            return cudaSuccess;
        // The high marks can only be set back to the present value.
        case cudaMemPoolAttrReservedMemHigh:
            if (*static_cast<std::uint64_t*>(value) != 0) return cudaErrorInvalidValue;
            pool.reserved_high = pool.reserved();
            return cudaSuccess;
        case cudaMemPoolAttrUsedMemHigh:
            if (*static_cast<std::uint64_t*>(value) != 0) return cudaErrorInvalidValue;
            pool.used_high = pool.used();
            return cudaSuccess;
        default:
            return cudaErrorInvalidValue;
        }
    });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
    return with_pool(handle, [&](Call&, Pool& pool) {
        if (!value) return cudaErrorInvalidValue;
        const auto answer = [&](std::uint64_t bytes) {
            *static_cast<std::uint64_t*>(value) = bytes;
            return cudaSuccess;
        };
        switch (attribute) {
        case cudaMemPoolReuseFollowEventDependencies:
        case cudaMemPoolReuseAllowOpportunistic:
        case cudaMemPoolReuseAllowInternalDependencies:
            *static_cast<int*>(value) = reuse_switch(pool, attribute);
            return cudaSuccess;
        case cudaMemPoolAttrReleaseThreshold:
            return answer(pool.threshold);
        case cudaMemPoolAttrReservedMemCurrent:
            return answer(pool.reserved());
        case cudaMemPoolAttrReservedMemHigh:
            return answer(pool.reserved_high);
        case cudaMemPoolAttrUsedMemCurrent:
            return answer(pool.used());
        case cudaMemPoolAttrUsedMemHigh:
            return answer(pool.used_high);
        default:
            return cudaErrorInvalidValue;
        }
    });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t handle, const cudaMemAccessDesc* descriptions,
                                 std::size_t count) {
    return with_pool(handle, [&](Call& call, Pool& pool) {
        if (!descriptions && count > 0) return cudaErrorInvalidValue;
        const Device& owner = *call.node.device(pool.device());
        for (std::size_t i = 0; i < count; ++i) {
            const cudaMemAccessDesc& wanted = descriptions[i];
            if (wanted.location.type != cudaMemLocationTypeDevice) return cudaErrorInvalidValue;
            const Device* device = call.node.device(wanted.location.id);
            if (!device) return cudaErrorInvalidDevice;
            const bool open = wanted.flags == cudaMemAccessFlagsProtReadWrite;
            if (!open && wanted.flags != cudaMemAccessFlagsProtNone) return cudaErrorInvalidValue;
            if (device == &owner) {
                if (!open) return cudaErrorInvalidDevice; // the owner cannot be shut out
                continue;
            }
            if (open && !call.node.can_access(*device, owner)) return cudaErrorInvalidDevice;
            if (open)
                pool.access.insert(device->index);
            else
                pool.access.erase(device->index);
        }
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t handle,
                                 cudaMemLocation* location) {
    return with_pool(handle, [&](Call& call, Pool& pool) {
        if (!flags || !location || location->type != cudaMemLocationTypeDevice)
            return cudaErrorInvalidValue;
        if (!call.node.device(location->id)) return cudaErrorInvalidDevice;
        const bool open = location->id == pool.device() || pool.access.contains(location->id);
        *flags = open ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
        return cudaSuccess;
    });
}
