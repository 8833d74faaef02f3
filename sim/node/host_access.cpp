#include "node/host_access.hpp"

#include "node/node.hpp"

#include <csignal>
#include <cstdio>
#include <ucontext.h>

namespace sim {
namespace {

struct sigaction previous;

void explain(Node& node, std::uint64_t address) {
    Device* device = node.owner(address);
    if (!device) return;
    // A fault inside the simulator itself would hold the lock already.
    Lock lock(node.mutex, std::try_to_lock);
    std::fprintf(stderr,
                 "sim: the host program touched the device address 0x%llx\n"
                 "sim:   %s\n"
                 "sim:   a pointer to device memory can be handed to kernels and to cudaMemcpy; "
                 "host code cannot dereference it\n",
                 static_cast<unsigned long long>(address),
                 lock.owns_lock() ? node.describe(address).c_str() : "a GPU owns it");
    std::fflush(stderr);
}

void on_fault(int signal, siginfo_t* info, void* context) {
    // Positive codes come from the hardware; others have no address.
    Node* node = info->si_code > 0 ? the_node_if_made() : nullptr;
    if (node) explain(*node, reinterpret_cast<std::uint64_t>(info->si_addr));
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(signal, info, context);
        return;
    }
    // Back to where the fault happened, with the handler that was there before.
    sigaction(signal, &previous, nullptr);
    if (info->si_code <= 0) raise(signal);
}

} // namespace

void watch_host_access() {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous);
}

} // namespace sim
