#include "node/engine.hpp"

#include "node/trace.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>
#include <utility>

namespace sim {

void Engine::schedule(double time, OperationPtr operation, bool end) {
    events_.push({time, sequence_++, std::move(operation), end});
}

void Engine::make_ready(const OperationPtr& operation) {
    double ready = operation->issued;
    for (const OperationPtr& earlier : operation->after)
        ready = std::max(ready, earlier->end);
    operation->state = Operation::State::ready;
    operation->begin = ready;
    schedule(ready, operation, false);
}

void Engine::submit(const OperationPtr& operation) {
    auto& after = operation->after;
    std::erase(after, nullptr);
    for (const OperationPtr& earlier : after) {
        if (earlier->state == Operation::State::done) continue;
        earlier->dependents.push_back(operation);
        ++operation->open;
    }
    if (operation->open == 0) make_ready(operation);
}

void Engine::complete(const OperationPtr& operation) {
    if (!skip_(*operation)) operation->finish();
    operation->state = Operation::State::done;
    if (Trace* trace = Trace::active()) trace->add(*operation);
    operation->after.clear(); // or every stream would keep its whole history alive
    for (const OperationPtr& next : std::exchange(operation->dependents, {})) {
        if (--next->open == 0) make_ready(next);
    }
}

void Engine::process_next(Lock& lock) {
    const Event event = events_.top();
    events_.pop();
    const OperationPtr& operation = event.operation;
    if (event.end || skip_(*operation)) {
        operation->end = event.time;
        complete(operation);
        return;
    }
    operation->state = Operation::State::running;
    ++in_progress_;
    const Progress progress = operation->advance(event.time, lock);
    --in_progress_;
    schedule(progress.time, operation, progress.ends);
    progressed_.notify_all();
    if (!progress.idle) return;
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
}

void Engine::run_until_done(const OperationPtr& operation, Lock& lock) {
    while (operation->state != Operation::State::done) {
        if (!events_.empty())
            process_next(lock);
        else if (in_progress_ > 0)
            progressed_.wait(lock);
        else
            report_stuck(*operation);
    }
    progressed_.notify_all();
}

void Engine::run_until(double time, Lock& lock) {
    while (!events_.empty() && events_.top().time <= time)
        process_next(lock);
}

void Engine::report_stuck(const Operation& operation) const {
    std::fprintf(stderr, "sim: this wait can never end: %s\n", operation.what.c_str());
    for (const OperationPtr& earlier : operation.after) {
        if (earlier->state != Operation::State::done)
            std::fprintf(stderr, "sim:   it waits for %s\n", earlier->what.c_str());
    }
    std::abort();
}

bool depends_on(const Operation& later, const Operation& earlier) {
    std::set<const Operation*> seen;
    std::vector<const Operation*> open{&later};
    while (!open.empty()) {
        const Operation* operation = open.back();
        open.pop_back();
        if (operation == &earlier) return true;
        for (const OperationPtr& next : operation->after) {
            if (seen.insert(next.get()).second) open.push_back(next.get());
        }
    }
    return false;
}

} // namespace sim
