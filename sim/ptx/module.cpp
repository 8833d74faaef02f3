#include "ptx/module.hpp"

#include <algorithm>
#include <cstdlib>

#include <cxxabi.h>

namespace sim::ptx {

LoadedKernel::LoadedKernel(const ModuleText& module, std::uint32_t function)
    : module_(module), function_(function) {
    for (const Storage& storage : module.functions[function].parameters) {
        parameters_.push_back({storage.offset, storage.bytes});
        parameter_bytes_ = std::max(parameter_bytes_, storage.offset + storage.bytes);
    }
}

const std::string& LoadedKernel::name() const {
    return module_.functions[function_].name;
}

const Program& LoadedKernel::program() const {
    const std::lock_guard lock(mutex_);
    if (!program_) program_ = decode(module_, function_);
    return *program_;
}

std::uint32_t LoadedKernel::static_shared_bytes() const {
    return program().static_shared_bytes;
}

std::uint32_t LoadedKernel::local_bytes() const {
    return program().local_bytes;
}

/// PTX has as many registers as values; a GPU gives a thread at most 255 of 32 bits.
std::uint32_t LoadedKernel::registers() const {
    const std::uint32_t words = program().code.front().frame_bytes / array_bytes(4);
    return std::clamp(words + 8, 16u, 255u);
}

std::uint32_t LoadedKernel::max_threads_per_block() const {
    return module_.functions[function_].max_threads;
}

LoadedModule::LoadedModule(std::string text) {
    text_.text = std::move(text);
    parse_module(text_);
    for (std::uint32_t i = 0; i < text_.functions.size(); ++i)
        if (text_.functions[i].entry && text_.functions[i].defined)
            kernels_.try_emplace(text_.functions[i].name, std::make_unique<LoadedKernel>(text_, i));
}

const Kernel* LoadedModule::kernel(std::string_view name) const {
    const auto found = kernels_.find(name);
    return found == kernels_.end() ? nullptr : found->second.get();
}

std::unique_ptr<Module> Module::parse(std::string text) {
    return std::make_unique<LoadedModule>(std::move(text));
}

std::string demangle(const std::string& name) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> readable(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
    return status == 0 && readable ? readable.get() : name;
}

} // namespace sim::ptx
