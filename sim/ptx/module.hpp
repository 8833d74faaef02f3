// A module in memory and its kernels, decoded when they are first needed.
#pragma once

#include "ptx/program.hpp"

#include <mutex>

namespace sim::ptx {

class LoadedKernel : public Kernel {
public:
    /// `module` must outlive the kernel.
    LoadedKernel(const ModuleText& module, std::uint32_t function);

    const std::string& name() const override;
    const std::vector<Parameter>& parameters() const override { return parameters_; }
    std::uint64_t parameter_bytes() const override { return parameter_bytes_; }
    std::uint32_t static_shared_bytes() const override;
    std::uint32_t local_bytes() const override;
    std::uint32_t registers() const override;
    std::uint32_t max_threads_per_block() const override;

    /// May be called from several threads. Throws Error.
    const Program& program() const;
    const ModuleText& module() const { return module_; }

private:
    const ModuleText& module_;
    std::uint32_t function_;
    std::vector<Parameter> parameters_;
    std::uint64_t parameter_bytes_ = 0;
    mutable std::mutex mutex_;
    mutable std::unique_ptr<const Program> program_;
};

class LoadedModule : public Module {
public:
    explicit LoadedModule(std::string text);

    const Kernel* kernel(std::string_view name) const override;
    const std::vector<Variable>& variables() const override { return text_.variables; }

private:
    ModuleText text_;
    std::map<std::string, std::unique_ptr<LoadedKernel>, std::less<>> kernels_;
};

} // namespace sim::ptx
