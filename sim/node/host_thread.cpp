// Clocks of host threads. pthread_create and pthread_join are taken over so that a new thread
// begins where its creator is and a joining thread never is behind the joined one.
#include "node/host_thread.hpp"

#include <atomic>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <pthread.h>

namespace sim {
namespace {

constexpr double unknown = -1;

// Never destroyed: threads end after the process's global objects are gone.
struct Clocks {
    std::mutex mutex;
    std::map<pthread_t, double> ended;
    std::atomic<double> latest{0};
};

Clocks& clocks() {
    static auto* instance = new Clocks;
    return *instance;
}

thread_local double creators_clock = unknown;

void note_latest(double clock) {
    double latest = clocks().latest.load();
    while (latest < clock && !clocks().latest.compare_exchange_weak(latest, clock)) {
    }
}

struct StartRoutine {
    void* (*routine)(void*);
    void* argument;
    double clock;
};

void* start_at_creators_clock(void* given) {
    const std::unique_ptr<StartRoutine> start(static_cast<StartRoutine*>(given));
    creators_clock = start->clock;
    {
        std::lock_guard guard(clocks().mutex);
        clocks().ended.erase(pthread_self()); // an id of a thread that nobody joined
    }
    return start->routine(start->argument);
}

template <class Function> Function* next_definition(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

} // namespace

HostThread::HostThread()
    : clock(creators_clock != unknown ? creators_clock : clocks().latest.load()) {}

HostThread::~HostThread() {
    note_latest(clock);
    std::lock_guard guard(clocks().mutex);
    clocks().ended[pthread_self()] = clock;
}

HostThread& this_thread() {
    thread_local HostThread thread;
    note_latest(thread.clock);
    return thread;
}

} // namespace sim

extern "C" {

__attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                          const pthread_attr_t* attributes,
                                                          void* (*routine)(void*), void* argument) {
    static auto* real = sim::next_definition<decltype(pthread_create)>("pthread_create");
    auto start = std::make_unique<sim::StartRoutine>(
        sim::StartRoutine{routine, argument, sim::this_thread().clock});
    const int error = real(thread, attributes, &sim::start_at_creators_clock, start.get());
    if (error == 0) start.release();
    return error;
}

__attribute__((visibility("default"))) int pthread_join(pthread_t thread, void** result) {
    static auto* real = sim::next_definition<decltype(pthread_join)>("pthread_join");
    const int error = real(thread, result);
    if (error != 0) return error;
    std::lock_guard guard(sim::clocks().mutex);
    auto ended = sim::clocks().ended.extract(thread);
    if (!ended.empty()) sim::this_thread().wait_until(ended.mapped());
    return 0;
}
}
