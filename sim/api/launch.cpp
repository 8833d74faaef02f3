// Launching kernels and asking about them.
#include "api/module.hpp"

#include <cstring>

using namespace sim;
using namespace sim::api;

namespace {

constexpr unsigned most_threads = 1024;

bool valid_dimensions(dim3 grid, dim3 block) {
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return false;
    if (block.x == 0 || block.y == 0 || block.z == 0) return false;
    if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) return false;
    if (block.x > most_threads || block.y > most_threads || block.z > 64) return false;
    return std::uint64_t{block.x} * block.y * block.z <= most_threads;
}

KernelShape shape_of(const ptx::Kernel& kernel, dim3 grid, dim3 block, std::size_t shared) {
    return {std::uint64_t{grid.x} * grid.y * grid.z, block.x * block.y * block.z,
            kernel.static_shared_bytes() + shared, kernel.registers()};
}

std::vector<std::byte> pack(const ptx::Kernel& kernel, void** arguments) {
    std::vector<std::byte> bytes(kernel.parameter_bytes());
    for (std::size_t i = 0; i < kernel.parameters().size(); ++i) {
        const ptx::Parameter& parameter = kernel.parameters()[i];
        std::memcpy(bytes.data() + parameter.offset, arguments[i], parameter.bytes);
    }
    return bytes;
}

struct LaunchRequest {
    const void* function;
    dim3 grid;
    dim3 block;
    void** arguments;
    std::size_t shared_bytes;
    cudaStream_t stream;
    bool cooperative = false;
};

cudaError_t check(const NodeFile& file, const Function& function, const LaunchRequest& request) {
    if (!valid_dimensions(request.grid, request.block)) return cudaErrorInvalidConfiguration;
    if (request.shared_bytes + function.kernel->static_shared_bytes() >
        function.dynamic_shared_limit)
        return cudaErrorInvalidValue;
    const KernelShape shape =
        shape_of(*function.kernel, request.grid, request.block, request.shared_bytes);
    const int fit = blocks_per_multiprocessor(file.gpu, shape);
    if (fit == 0 || shape.threads_per_block > function.kernel->max_threads_per_block())
        return cudaErrorLaunchOutOfResources;
    const auto places =
        static_cast<std::uint64_t>(fit) * static_cast<std::uint64_t>(file.gpu.multiprocessors);
    if (request.cooperative && shape.blocks > places) return cudaErrorCooperativeLaunchTooLarge;
    return cudaSuccess;
}

cudaError_t launch(const LaunchRequest& request) {
    return device_call([&](Call& call) -> cudaError_t {
        Stream* stream = find_stream(call, request.stream);
        if (!stream || stream->device != &call.device()) return cudaErrorInvalidResourceHandle;
        cudaError_t error = ready_for_work(call, *stream);
        if (error != cudaSuccess) return error;
        Function* function = find_function(request.function, error);
        if (!function) return error;
        error = check(call.node.file, *function, request);
        if (error != cudaSuccess) return error;
        std::vector<std::uint64_t>* variables = nullptr;
        error = variables_on_device(call, *function->binary, variables);
        if (error != cudaSuccess) return error;

        ptx::Launch what;
        what.module = function->binary->module.get();
        what.kernel = function->kernel;
        what.grid = {request.grid.x, request.grid.y, request.grid.z};
        what.block = {request.block.x, request.block.y, request.block.z};
        what.dynamic_shared_bytes = static_cast<std::uint32_t>(request.shared_bytes);
        what.parameters = pack(*function->kernel, request.arguments);
        what.variables = *variables;
        what.print = [](std::string_view text) {
            std::fwrite(text.data(), 1, text.size(), stdout);
        };
        what.clock_ghz = call.node.file.gpu.clock_mhz / 1e3;
        what.cooperative = request.cooperative;
        what.multiprocessors = static_cast<std::uint32_t>(call.node.file.gpu.multiprocessors);
        call.thread.spend(call.node.file.api.launch.of(0));
        const KernelShape shape =
            shape_of(*function->kernel, request.grid, request.block, request.shared_bytes);
        const auto make = [&node = call.node, &device = call.device(), what = std::move(what),
                           shape, name = ptx::demangle(function->name)] {
            return std::make_shared<KernelOperation>(node, device, what, shape, name);
        };
        call.node.submit(*stream, make, call.thread);
        return cudaSuccess;
    });
}

/// Hands the kernel behind `handle` to `body`, or the reason why there is none to `no_kernel`.
template <class NoKernel, class Body>
cudaError_t with_function(const void* handle, NoKernel&& no_kernel, Body&& body) {
    return device_call([&](Call& call) -> cudaError_t {
        cudaError_t error = cudaSuccess;
        Function* function = find_function(handle, error);
        return function ? body(call, *function) : no_kernel(error);
    });
}

template <class Body> cudaError_t with_function(const void* handle, Body&& body) {
    return with_function(
        handle, [](cudaError_t error) { return error; }, std::forward<Body>(body));
}

int compute_capability(const NodeFile& file) {
    return 10 * file.gpu.compute_major + file.gpu.compute_minor;
}

} // namespace

#pragma GCC visibility push(default)
extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes,
                                     void* stream) {
    this_thread().configurations.push_back(
        {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes, stream});
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes,
                                       void* stream) {
    auto& waiting = this_thread().configurations;
    if (waiting.empty()) return cudaErrorMissingConfiguration;
    const CallConfiguration top = waiting.back();
    waiting.pop_back();
    *grid = {top.grid[0], top.grid[1], top.grid[2]};
    *block = {top.block[0], top.block[1], top.block[2]};
    *shared_bytes = top.shared_bytes;
    *static_cast<void**>(stream) = top.stream;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
    *kernel = static_cast<cudaKernel_t>(const_cast<void*>(host_function));
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared_bytes, cudaStream_t stream) {
    return launch({kernel, grid, block, arguments, shared_bytes, stream});
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared_bytes, cudaStream_t stream) {
    return launch(
        {kernel, grid, block, arguments, shared_bytes, stream ? stream : cudaStreamPerThread});
}
}
#pragma GCC visibility pop

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
    return __cudaGetKernel(kernel, host_function);
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream) {
    return launch({function, grid, block, arguments, shared_bytes, stream});
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, std::size_t shared_bytes,
                                        cudaStream_t stream) {
    return launch({function, grid, block, arguments, shared_bytes, stream, true});
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
    if (!config) return host_call([](Call&) { return cudaErrorInvalidValue; });
    bool cooperative = false;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        if (config->attrs[i].id == cudaLaunchAttributeCooperative)
            cooperative = config->attrs[i].val.cooperative != 0;
    }
    return launch({function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes,
                   config->stream, cooperative});
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
    const auto unknown = [](cudaError_t error) {
        return error == cudaErrorInvalidDeviceFunction ? cudaErrorInvalidResourceHandle : error;
    };
    return with_function(function, unknown, [&](Call& call, Function& found) {
        if (!attributes) return cudaErrorInvalidValue;
        const ptx::Kernel& kernel = *found.kernel;
        cudaFuncAttributes result{};
        result.sharedSizeBytes = kernel.static_shared_bytes();
        result.localSizeBytes = kernel.local_bytes();
        result.maxThreadsPerBlock = static_cast<int>(kernel.max_threads_per_block());
        result.numRegs = static_cast<int>(kernel.registers());
        result.ptxVersion = compute_capability(call.node.file);
        result.binaryVersion = compute_capability(call.node.file);
        result.maxDynamicSharedSizeBytes =
            static_cast<int>(found.dynamic_shared_limit - kernel.static_shared_bytes());
        *attributes = result;
        return cudaSuccess;
    });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
    return with_function(function, [&](Call& call, Function& found) {
        if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
        const std::uint64_t wanted =
            static_cast<std::uint64_t>(value) + found.kernel->static_shared_bytes();
        if (value < 0 || wanted > call.node.file.gpu.shared_per_block_optin_bytes)
            return cudaErrorInvalidValue;
        found.dynamic_shared_limit = wanted;
        return cudaSuccess;
    });
}

// Hints for caches that are not modelled.
cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
    return with_function(function, [](Call&, Function&) { return cudaSuccess; });
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
    return with_function(function, [&](Call&, Function& found) {
        if (!name) return cudaErrorInvalidValue;
        *name = found.name.c_str();
        return cudaSuccess;
    });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int block_size, std::size_t shared_bytes, unsigned int) {
    return with_function(function, [&](Call& call, Function& found) {
        if (!blocks || block_size <= 0) return cudaErrorInvalidValue;
        const auto threads = static_cast<unsigned>(block_size);
        *blocks = threads > found.kernel->max_threads_per_block()
                      ? 0
                      : blocks_per_multiprocessor(
                            call.node.file.gpu, shape_of(*found.kernel, 1, threads, shared_bytes));
        return cudaSuccess;
    });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_size,
                                                          std::size_t shared_bytes) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks, function, block_size, shared_bytes, cudaOccupancyDefault);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* function,
                                                      int blocks, int block_size) {
    return with_function(function, [&](Call& call, Function& found) {
        if (!bytes || blocks <= 0 || block_size <= 0) return cudaErrorInvalidValue;
        const GpuFigures& gpu = call.node.file.gpu;
        const std::size_t taken = found.kernel->static_shared_bytes() + reserved_shared_bytes;
        const std::size_t share =
            gpu.shared_per_multiprocessor_bytes / static_cast<std::size_t>(blocks);
        *bytes = share > taken
                     ? std::min<std::size_t>(share - taken, gpu.shared_per_block_optin_bytes)
                     : 0;
        return cudaSuccess;
    });
}
