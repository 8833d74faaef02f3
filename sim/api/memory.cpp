// Memory: allocating, pinning, asking what a pointer is.
#include "api/call.hpp"

#include <unistd.h>

using namespace sim;
using namespace sim::api;

namespace {

/// Gives a cudaMalloc allocation back after the work of its device, as the real call does.
cudaError_t free_device_memory(Call& call, const Piece& piece) {
    Device& device = *piece.device;
    call.node.wait(device, call.thread, call.lock);
    if (device.sticky != 0) return state_of(device);
    // Another thread may have freed it while this one waited.
    if (!call.node.piece(piece.begin).device) return cudaErrorInvalidValue;
    device.memory.free(piece.begin, "cudaFree");
    spend_on(call, "cudaFree", call.node.file.api.free.of(piece.bytes));
    return cudaSuccess;
}

void wait_for_all_devices(Call& call) {
    for (const auto& device : call.node.devices)
        call.node.wait(*device, call.thread, call.lock);
}

cudaError_t release_host_memory(Call& call, const void* pointer, HostKind kind) {
    const HostRange* range = call.node.host.find(address_of(pointer));
    if (!range || range->begin != address_of(pointer) || range->kind != kind)
        return cudaErrorInvalidValue;
    const std::uint64_t bytes = range->bytes;
    wait_for_all_devices(call);
    if (call.device().sticky != 0) return state_of(call.device());
    range = call.node.host.find(address_of(pointer));
    if (!range || range->begin != address_of(pointer)) return cudaErrorInvalidValue;
    call.node.host.release(address_of(pointer));
    spend_on(call, "cudaFreeHost", call.node.file.api.free_host.of(bytes));
    return cudaSuccess;
}

cudaError_t allocate_pinned(void** pointer, std::size_t bytes, unsigned flags) {
    return device_call([&](Call& call) {
        constexpr unsigned known =
            cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
        if (!pointer || (flags & ~known)) return cudaErrorInvalidValue;
        *pointer = nullptr;
        if (bytes == 0) return cudaSuccess;
        // With one address space for all, every pinned allocation is mapped, asked for or not.
        auto begin = call.node.host.allocate(bytes, HostKind::allocated,
                                             flags | cudaHostAllocMapped, call.thread.device);
        if (!begin) return cudaErrorMemoryAllocation;
        spend_on(call, "cudaMallocHost", call.node.file.api.malloc_host.of(bytes));
        *pointer = pointer_to(*begin);
        return cudaSuccess;
    });
}

void describe_host(const HostRange& range, const void* pointer, cudaPointerAttributes& result) {
    result.type = range.kind == HostKind::managed ? cudaMemoryTypeManaged : cudaMemoryTypeHost;
    result.device = range.device;
    result.devicePointer = const_cast<void*>(pointer);
    result.hostPointer = const_cast<void*>(pointer);
}

} // namespace

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
    return device_call([&](Call& call) {
        if (!pointer) return cudaErrorInvalidValue;
        *pointer = nullptr;
        if (cudaError_t error = not_while_capturing_strictly(call)) return error;
        if (bytes == 0) return cudaSuccess;
        auto begin = call.device().memory.allocate(bytes, Purpose::allocation, "");
        if (!begin) return cudaErrorMemoryAllocation;
        spend_on(call, "cudaMalloc", call.node.file.api.malloc.of(bytes));
        *pointer = pointer_to(*begin);
        return cudaSuccess;
    });
}

cudaError_t cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width,
                            std::size_t height) {
    constexpr std::size_t row_alignment = 512;
    if (!pitch) return host_call([](Call&) { return cudaErrorInvalidValue; });
    *pitch = (width + row_alignment - 1) / row_alignment * row_alignment;
    return cudaMalloc(pointer, *pitch * height);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent size) {
    if (!memory) return host_call([](Call&) { return cudaErrorInvalidValue; });
    *memory = {nullptr, 0, size.width, size.height};
    return cudaMallocPitch(&memory->ptr, &memory->pitch, size.width, size.height * size.depth);
}

cudaError_t cudaFree(void* pointer) {
    return device_call([&](Call& call) {
        if (!pointer) return cudaSuccess;
        if (cudaError_t error = not_while_capturing_strictly(call)) return error;
        const Piece piece = call.node.piece(address_of(pointer));
        if (!piece.device) return release_host_memory(call, pointer, HostKind::managed);
        if (piece.begin != address_of(pointer)) return cudaErrorInvalidValue;
        if (piece.allocation && piece.allocation->purpose == Purpose::variable)
            return cudaErrorInvalidValue;
        if (!piece.pool) return free_device_memory(call, piece);
        // Memory of a pool goes back without waiting for anything.
        piece.pool->free(piece.begin, nullptr, 0, "cudaFree");
        call.thread.spend(call.node.file.api.free.of(0));
        return cudaSuccess;
    });
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned int flags) {
    return allocate_pinned(pointer, bytes, flags);
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
    return allocate_pinned(pointer, bytes, 0);
}

cudaError_t cudaFreeHost(void* pointer) {
    return device_call([&](Call& call) {
        if (!pointer) return cudaSuccess;
        return release_host_memory(call, pointer, HostKind::allocated);
    });
}

cudaError_t cudaMallocManaged(void** pointer, std::size_t bytes, unsigned int flags) {
    return device_call([&](Call& call) {
        if (!pointer || bytes == 0) return cudaErrorInvalidValue;
        if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)
            return cudaErrorInvalidValue;
        auto begin = call.node.host.allocate(bytes, HostKind::managed, flags, call.thread.device);
        if (!begin) return cudaErrorMemoryAllocation;
        call.thread.spend(call.node.file.api.malloc.of(bytes));
        *pointer = pointer_to(*begin);
        return cudaSuccess;
    });
}

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned int flags) {
    return device_call([&](Call& call) {
        constexpr unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped |
                                   cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
        if (!pointer || bytes == 0 || (flags & ~known)) return cudaErrorInvalidValue;
        const std::uint64_t begin = address_of(pointer);
        if (call.node.owner(begin)) return cudaErrorInvalidValue;
        if (const HostRange* other = call.node.host.overlap(begin, bytes))
            return other->kind == HostKind::registered ? cudaErrorHostMemoryAlreadyRegistered
                                                       : cudaErrorInvalidValue;
        if (!call.node.host.add_registered(begin, bytes, flags | cudaHostRegisterMapped,
                                           call.thread.device))
            return cudaErrorMemoryAllocation;
        spend_on(call, "cudaHostRegister", call.node.file.api.host_register.of(bytes));
        return cudaSuccess;
    });
}

cudaError_t cudaHostUnregister(void* pointer) {
    return device_call([&](Call& call) {
        if (!pointer) return cudaErrorInvalidValue;
        const HostRange* range = call.node.host.find(address_of(pointer));
        if (!range) return cudaErrorHostMemoryNotRegistered;
        if (range->kind != HostKind::registered || range->begin != address_of(pointer))
            return cudaErrorInvalidValue;
        const std::uint64_t bytes = range->bytes;
        wait_for_all_devices(call);
        if (call.device().sticky != 0) return state_of(call.device());
        range = call.node.host.find(address_of(pointer));
        if (!range) return cudaErrorHostMemoryNotRegistered; // another thread was faster
        call.node.host.remove_registered(address_of(pointer));
        spend_on(call, "cudaHostUnregister", call.node.file.api.host_unregister.of(bytes));
        return cudaSuccess;
    });
}

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* pointer, unsigned int flags) {
    return device_call([&](Call& call) {
        if (!device_pointer || flags != 0) return cudaErrorInvalidValue;
        if (!call.node.host.find(address_of(pointer))) return cudaErrorInvalidValue;
        *device_pointer = pointer;
        return cudaSuccess;
    });
}

cudaError_t cudaHostGetFlags(unsigned int* flags, void* pointer) {
    return device_call([&](Call& call) {
        const HostRange* range = call.node.host.find(address_of(pointer));
        if (!flags || !range) return cudaErrorInvalidValue;
        *flags = range->flags;
        return cudaSuccess;
    });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    return device_call([&](Call& call) {
        if (!attributes) return cudaErrorInvalidValue;
        constexpr int no_device = -2; // what the runtime answers for memory it does not know
        cudaPointerAttributes result{};
        result.type = cudaMemoryTypeUnregistered;
        result.device = no_device;
        result.hostPointer = const_cast<void*>(pointer);
        if (const Piece piece = call.node.piece(address_of(pointer)); piece.device) {
            result.type = cudaMemoryTypeDevice;
            result.device = piece.device->index;
            result.devicePointer = const_cast<void*>(pointer);
            result.hostPointer = nullptr;
        } else if (const HostRange* range = call.node.host.find(address_of(pointer))) {
            describe_host(*range, pointer, result);
        }
        *attributes = result;
        return cudaSuccess;
    });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
    return device_call([&](Call& call) {
        if (!free || !total) return cudaErrorInvalidValue;
        *free = call.device().free_bytes();
        *total = call.device().memory.total_bytes();
        return cudaSuccess;
    });
}
