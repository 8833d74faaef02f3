// The names that programs call when they were compiled for per-thread default streams: the null
// stream means the calling thread's own one.
#include "api/call.hpp"

namespace {

cudaStream_t own(cudaStream_t stream) {
    return stream ? stream : cudaStreamPerThread;
}

/// A blocking call on the thread's own stream: the asynchronous one and a wait.
cudaError_t and_wait(cudaError_t issued) {
    return issued == cudaSuccess ? cudaStreamSynchronize(cudaStreamPerThread) : issued;
}

} // namespace

#pragma GCC visibility push(default)
extern "C" {

cudaError_t cudaMemcpy_ptds(void* destination, const void* source, std::size_t bytes,
                            cudaMemcpyKind kind) {
    return and_wait(cudaMemcpyAsync(destination, source, bytes, kind, cudaStreamPerThread));
}

cudaError_t cudaMemcpy2D_ptds(void* destination, std::size_t destination_pitch, const void* source,
                              std::size_t source_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind) {
    return and_wait(cudaMemcpy2DAsync(destination, destination_pitch, source, source_pitch, width,
                                      height, kind, cudaStreamPerThread));
}

cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* source, std::size_t bytes,
                                    std::size_t offset, cudaMemcpyKind kind) {
    return and_wait(
        cudaMemcpyToSymbolAsync(symbol, source, bytes, offset, kind, cudaStreamPerThread));
}

cudaError_t cudaMemcpyFromSymbol_ptds(void* destination, const void* symbol, std::size_t bytes,
                                      std::size_t offset, cudaMemcpyKind kind) {
    return and_wait(
        cudaMemcpyFromSymbolAsync(destination, symbol, bytes, offset, kind, cudaStreamPerThread));
}

cudaError_t cudaMemset_ptds(void* destination, int value, std::size_t bytes) {
    return cudaMemsetAsync(destination, value, bytes, cudaStreamPerThread);
}

cudaError_t cudaMemset2D_ptds(void* destination, std::size_t pitch, int value, std::size_t width,
                              std::size_t height) {
    return cudaMemset2DAsync(destination, pitch, value, width, height, cudaStreamPerThread);
}

cudaError_t cudaMemcpyAsync_ptsz(void* destination, const void* source, std::size_t bytes,
                                 cudaMemcpyKind kind, cudaStream_t stream) {
    return cudaMemcpyAsync(destination, source, bytes, kind, own(stream));
}

cudaError_t cudaMemcpy2DAsync_ptsz(void* destination, std::size_t destination_pitch,
                                   const void* source, std::size_t source_pitch, std::size_t width,
                                   std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return cudaMemcpy2DAsync(destination, destination_pitch, source, source_pitch, width, height,
                             kind, own(stream));
}

cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void* symbol, const void* source, std::size_t bytes,
                                         std::size_t offset, cudaMemcpyKind kind,
                                         cudaStream_t stream) {
    return cudaMemcpyToSymbolAsync(symbol, source, bytes, offset, kind, own(stream));
}

cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void* destination, const void* symbol, std::size_t bytes,
                                           std::size_t offset, cudaMemcpyKind kind,
                                           cudaStream_t stream) {
    return cudaMemcpyFromSymbolAsync(destination, symbol, bytes, offset, kind, own(stream));
}

cudaError_t cudaMemsetAsync_ptsz(void* destination, int value, std::size_t bytes,
                                 cudaStream_t stream) {
    return cudaMemsetAsync(destination, value, bytes, own(stream));
}

cudaError_t cudaMemset2DAsync_ptsz(void* destination, std::size_t pitch, int value,
                                   std::size_t width, std::size_t height, cudaStream_t stream) {
    return cudaMemset2DAsync(destination, pitch, value, width, height, own(stream));
}

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) {
    return cudaStreamSynchronize(own(stream));
}

cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) {
    return cudaStreamQuery(own(stream));
}

cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    return cudaStreamWaitEvent(own(stream), event, flags);
}

cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned* flags) {
    return cudaStreamGetFlags(own(stream), flags);
}

cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int* priority) {
    return cudaStreamGetPriority(own(stream), priority);
}

cudaError_t cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long* id) {
    return cudaStreamGetId(own(stream), id);
}

cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int* device) {
    return cudaStreamGetDevice(own(stream), device);
}

cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    return cudaStreamIsCapturing(own(stream), status);
}

cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t callback,
                                       void* data, unsigned flags) {
    return cudaStreamAddCallback(own(stream), callback, data, flags);
}

cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void* data) {
    return cudaLaunchHostFunc(own(stream), function, data);
}

cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
    return cudaEventRecord(event, own(stream));
}

cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    return cudaEventRecordWithFlags(event, own(stream), flags);
}

cudaError_t cudaLaunchKernel_ptsz(const void* function, dim3 grid, dim3 block, void** arguments,
                                  std::size_t shared_bytes, cudaStream_t stream) {
    return cudaLaunchKernel(function, grid, block, arguments, shared_bytes, own(stream));
}

cudaError_t cudaLaunchCooperativeKernel_ptsz(const void* function, dim3 grid, dim3 block,
                                             void** arguments, std::size_t shared_bytes,
                                             cudaStream_t stream) {
    return cudaLaunchCooperativeKernel(function, grid, block, arguments, shared_bytes, own(stream));
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* function,
                                     void** arguments) {
    if (!config) return cudaLaunchKernelExC(config, function, arguments);
    cudaLaunchConfig_t changed = *config;
    changed.stream = own(config->stream);
    return cudaLaunchKernelExC(&changed, function, arguments);
}

cudaError_t cudaMallocAsync_ptsz(void** pointer, std::size_t bytes, cudaStream_t stream) {
    return cudaMallocAsync(pointer, bytes, own(stream));
}

cudaError_t cudaMallocFromPoolAsync_ptsz(void** pointer, std::size_t bytes, cudaMemPool_t pool,
                                         cudaStream_t stream) {
    return cudaMallocFromPoolAsync(pointer, bytes, pool, own(stream));
}

#if CUDART_VERSION >= 13000
cudaError_t cudaMemPrefetchAsync_ptsz(const void* pointer, std::size_t bytes,
                                      cudaMemLocation location, unsigned flags,
                                      cudaStream_t stream) {
    return cudaMemPrefetchAsync(pointer, bytes, location, flags, own(stream));
}

cudaError_t cudaMemcpyBatchAsync_ptsz(void* const* destinations, const void* const* sources,
                                      const std::size_t* sizes, std::size_t count,
                                      cudaMemcpyAttributes* attributes, std::size_t* indices,
                                      std::size_t attribute_count, cudaStream_t stream) {
    return cudaMemcpyBatchAsync(destinations, sources, sizes, count, attributes, indices,
                                attribute_count, own(stream));
}
#endif

cudaError_t cudaStreamAttachMemAsync_ptsz(cudaStream_t stream, void* pointer, std::size_t bytes,
                                          unsigned flags) {
    return cudaStreamAttachMemAsync(own(stream), pointer, bytes, flags);
}

cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream) {
    return cudaFreeAsync(pointer, own(stream));
}

cudaError_t cudaMemcpy3D_ptds(const cudaMemcpy3DParms* what) {
    return and_wait(cudaMemcpy3DAsync(what, cudaStreamPerThread));
}

cudaError_t cudaMemcpy3DAsync_ptsz(const cudaMemcpy3DParms* what, cudaStream_t stream) {
    return cudaMemcpy3DAsync(what, own(stream));
}

cudaError_t cudaMemset3D_ptds(cudaPitchedPtr memory, int value, cudaExtent size) {
    return cudaMemset3DAsync(memory, value, size, cudaStreamPerThread);
}

cudaError_t cudaMemset3DAsync_ptsz(cudaPitchedPtr memory, int value, cudaExtent size,
                                   cudaStream_t stream) {
    return cudaMemset3DAsync(memory, value, size, own(stream));
}

cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode mode) {
    return cudaStreamBeginCapture(own(stream), mode);
}

cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t* graph) {
    return cudaStreamEndCapture(own(stream), graph);
}

cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t executable, cudaStream_t stream) {
    return cudaGraphLaunch(executable, own(stream));
}

cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t executable, cudaStream_t stream) {
    return cudaGraphUpload(executable, own(stream));
}
}
#pragma GCC visibility pop
