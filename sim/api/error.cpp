// Names and texts of errors, and the calling thread's last one.
#include "api/call.hpp"

#include <utility>

namespace {

struct ErrorText {
    int code;
    const char* name;
    const char* text;
};

constexpr ErrorText errors[] = {
#include "api/error_table.inc"
};

constexpr ErrorText unknown{-1, "unrecognized error code", "unrecognized error code"};

const ErrorText& find_error(int code) {
    for (const ErrorText& error : errors) {
        if (error.code == code) return error;
    }
    return unknown;
}

} // namespace

const char* cudaGetErrorName(cudaError_t error) {
    return find_error(error).name;
}

const char* cudaGetErrorString(cudaError_t error) {
    return find_error(error).text;
}

cudaError_t cudaPeekAtLastError() {
    return static_cast<cudaError_t>(sim::this_thread().last_error);
}

cudaError_t cudaGetLastError() {
    return static_cast<cudaError_t>(std::exchange(sim::this_thread().last_error, 0));
}
