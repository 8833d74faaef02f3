/// Calls student code in a hostile setting and checks that it leaves the setting as it was.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include <cuda_runtime_api.h>

namespace check {

/// From construction to done(), or to the end of the scope, the calling thread's current device and
/// the runtime's last error must not change: CHECKs that they are as found, and clears an error
/// that was left behind. An error that was there at construction is cleared first.
class Untouched {
public:
    Untouched();
    ~Untouched();

    Untouched(const Untouched&) = delete;
    Untouched& operator=(const Untouched&) = delete;

    /// Checks now, and no more at the end of the scope.
    void done();

private:
    int device_ = 0;
    bool open_ = true;
};

/// Runs `code` with `current` as the current device, CHECKs that the current device and the last
/// error are as found, puts the caller's device back, and returns what `code` returns.
template <class Code> auto untouched(int current, Code&& code) {
    struct Former {
        int device = 0;
        Former() { cudaGetDevice(&device); }
        ~Former() { cudaSetDevice(device); }
    };
    const Former former;
    cudaSetDevice(current);
    const Untouched setting;
    return std::forward<Code>(code)();
}

/// Runs `code` on a thread of its own, whose current device is therefore 0, waits for it, and
/// returns what it returns. Exceptions come through. Assertions belong outside of `code`.
template <class Code> auto on_second_thread(Code&& code) {
    using Result = std::invoke_result_t<Code>;
    std::exception_ptr error;
    const auto guarded = [&](auto&& run) {
        std::thread([&] {
            try {
                run();
            } catch (...) {
                error = std::current_exception();
            }
        }).join();
        if (error) std::rethrow_exception(error);
    };
    if constexpr (std::is_void_v<Result>) {
        guarded([&] { code(); });
    } else {
        std::optional<Result> result;
        guarded([&] { result.emplace(code()); });
        return std::move(*result);
    }
}

} // namespace check
