#include "support/untouched.hpp"

#include "support/report.hpp"

#include <string>

namespace check {

Untouched::Untouched() {
    cudaGetLastError();
    cudaGetDevice(&device_);
}

Untouched::~Untouched() {
    if (open_) done();
}

void Untouched::done() {
    open_ = false;
    int device = -1;
    cudaGetDevice(&device);
    const cudaError_t error = cudaGetLastError();
    expect(device == device_, "the current device was " + std::to_string(device_) +
                                  " before and is " + std::to_string(device) + " now");
    expect(error == cudaSuccess,
           std::string("the runtime's last error is left set: ") + cudaGetErrorName(error));
    if (device != device_) cudaSetDevice(device_);
}

} // namespace check
