// Peer access between devices.
#include "api/call.hpp"

using namespace sim;
using namespace sim::api;

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
    return host_call([&](Call& call) {
        if (!can) return cudaErrorInvalidValue;
        const Device* from = call.node.device(device);
        const Device* to = call.node.device(peer);
        if (!from || !to) return cudaErrorInvalidDevice;
        *can = call.node.can_access(*from, *to);
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
    return device_call([&](Call& call) {
        if (flags != 0) return cudaErrorInvalidValue;
        Device* other = call.node.device(peer);
        if (!other) return cudaErrorInvalidDevice;
        if (!call.node.can_access(call.device(), *other)) return cudaErrorPeerAccessUnsupported;
        if (cudaError_t error = use_context(call, *other)) return error;
        if (!call.device().peers.insert(peer).second) return cudaErrorPeerAccessAlreadyEnabled;
        call.thread.spend(call.node.file.api.enable_peer.of(0));
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    return device_call([&](Call& call) {
        if (!call.node.device(peer)) return cudaErrorInvalidDevice;
        if (!call.device().peers.contains(peer)) return cudaErrorPeerAccessNotEnabled;
        call.node.wait(call.device(), call.thread, call.lock);
        call.device().peers.erase(peer);
        return state_of(call.device());
    });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device,
                                      int peer) {
    return host_call([&](Call& call) {
        const Device* from = call.node.device(device);
        const Device* to = call.node.device(peer);
        if (!value) return cudaErrorInvalidValue;
        if (!from || !to || from == to) return cudaErrorInvalidDevice;
        const bool reach = call.node.can_access(*from, *to);
        const bool nvlink = call.node.file.peer.link == PeerLink::nvlink;
        switch (attribute) {
        case cudaDevP2PAttrAccessSupported:
            *value = reach;
            return cudaSuccess;
        case cudaDevP2PAttrNativeAtomicSupported:
            *value = nvlink;
            return cudaSuccess;
        case cudaDevP2PAttrPerformanceRank:
        case cudaDevP2PAttrCudaArrayAccessSupported:
            *value = 0;
            return cudaSuccess;
        default:
            return cudaErrorInvalidValue;
        }
    });
}
