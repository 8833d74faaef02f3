// The order in which the work of all GPUs happens: discrete events in virtual time.
//
// Nothing runs when it is issued. Work runs when a host thread waits for something, and then only
// what begins before the awaited work ends.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <vector>

namespace sim {

class Device;
struct Operation;
using OperationPtr = std::shared_ptr<Operation>;
using Lock = std::unique_lock<std::mutex>;

/// What an operation says when its time has come.
struct Progress {
    double time = 0;   // when it ends, or when to ask again
    bool ends = false; // the end is known: `finish` follows at `time`
    bool idle = false; // it waits for someone else: let other host threads run meanwhile
};

/// A piece of work in a stream: copy, kernel, event record, ... Called with the node locked.
struct Operation {
    enum class State { waiting, ready, running, done };

    Operation(Device& owner, std::string text) : device(owner), what(std::move(text)) {}
    virtual ~Operation() = default;

    /// Everything it waits for is done and virtual time has reached `now`. May release `lock`
    /// while it calls the program.
    virtual Progress advance(double now, Lock& lock) = 0;
    /// Takes effect: the end has come.
    virtual void finish() {}

    Device& device; // whose context it belongs to
    std::string what;
    const char* category = nullptr; // for the timeline; null: it is not shown there
    std::uint64_t stream = 0;
    double issued = 0; // clock of the issuing thread
    double begin = 0;
    double end = 0; // valid when done
    State state = State::waiting;

    // Kept by the engine.
    std::vector<OperationPtr> after; // what it waits for; empty when done
    std::vector<OperationPtr> dependents;
    std::size_t open = 0; // how many of `after` are not done
};

class Engine {
public:
    /// `skip` says of an operation that it must not take effect any more: its context is dead.
    explicit Engine(std::function<bool(const Operation&)> skip) : skip_(std::move(skip)) {}

    /// Adds work that begins when `operation->after` is done; null entries are ignored.
    void submit(const OperationPtr& operation);
    /// Runs what has to run until `operation` is done. Ends the process when that cannot happen.
    void run_until_done(const OperationPtr& operation, Lock& lock);
    /// Runs everything that happens up to `time`.
    void run_until(double time, Lock& lock);

    /// Whether nothing else is under way or about to begin while an operation advances.
    bool is_idle() const { return events_.empty() && in_progress_ <= 1; }

private:
    struct Event {
        double time;
        std::uint64_t sequence;
        OperationPtr operation;
        bool end;
        bool operator>(const Event& other) const {
            return time != other.time ? time > other.time : sequence > other.sequence;
        }
    };

    void schedule(double time, OperationPtr operation, bool end);
    void make_ready(const OperationPtr& operation);
    void process_next(Lock& lock);
    void complete(const OperationPtr& operation);
    [[noreturn]] void report_stuck(const Operation& operation) const;

    std::function<bool(const Operation&)> skip_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::uint64_t sequence_ = 0;
    int in_progress_ = 0; // operations that run right now, perhaps on another host thread
    std::condition_variable progressed_;
};

/// Whether `later` cannot begin before `earlier` has ended.
bool depends_on(const Operation& later, const Operation& earlier);

} // namespace sim
