#pragma once
// Streams of the stand-in: threads with queues.
#include <chrono>
#include <deque>
#include <functional>
#include <random>
#include <thread>

#include "support/cuda/order.hpp"
#include "support/cuda/team.hpp"

namespace standin {

/// The target of an event: everything in a stream when it was recorded.
struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;
  std::chrono::steady_clock::time_point time{};  // when it was reached
  Moment moment{};                               // of a stream
  void reach();
};
/// Waits for a mark. Returns the state of the device then. A thread that had to wait then spends
/// `wake`, if it is not null.
CUresult wait_for(Mark& mark, Latency* wake = nullptr);

/// A thread that runs its operations one after the other.
class Queue {
 public:
  /// Waits at random before each operation if `delays` is set.
  explicit Queue(bool delays);
  ~Queue() { end(); }
  /// Runs the remaining operations and ends.
  void end();
  void push(std::function<void()> operation);
  bool idle();
  std::shared_ptr<Mark> mark();

 private:
  void run();
  /// Spins for the next operation for a while if the device does not sleep.
  void spin() const;
  static inline std::atomic<unsigned> count{0};
  const bool delays_;
  std::mt19937 random_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::atomic<bool> has_operations_{false};
  bool ending_ = false;
  std::thread thread_;
};

/// Runs a kernel on this thread, and its blocks on helper threads too if there are several. Returns
/// the error. Each thread has its own helpers: two streams with common helpers would be ordered by
/// them.
std::string run_kernel(const twin::Launch& launch);

/// A stream: its queue, and its team for graphs.
class Stream final : public Queue, public Sequence {
 public:
  static constexpr std::string_view kind = "streams";
  Stream(int of, CUcontext in);
  ~Stream() override;
  void push(std::function<void()> operation) override { Queue::push(std::move(operation)); }
  std::shared_ptr<Mark> mark();
  Team team;

 private:
  static inline std::atomic<unsigned> created{0};
};

struct Event {
  static constexpr std::string_view kind = "events";
  Event(CUcontext in, unsigned flags)
      : context(in),
        blocking((flags & CU_EVENT_BLOCKING_SYNC) != 0),
        timed((flags & CU_EVENT_DISABLE_TIMING) == 0) {}
  const CUcontext context;
  const bool blocking;  // a thread that waits for it sleeps
  const bool timed;
  /// Marks the present contents of a stream, or returns the last mark. Any thread may call it, as
  /// in a driver.
  void record(Stream& stream) {
    const std::lock_guard lock(mutex_);
    mark_ = stream.mark();
  }
  /// Sets the mark that a node of a graph will reach.
  void record(std::shared_ptr<Mark> mark) {
    const std::lock_guard lock(mutex_);
    mark_ = std::move(mark);
  }
  std::shared_ptr<Mark> last() {
    const std::lock_guard lock(mutex_);
    return mark_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<Mark> mark_;
};

constexpr int highest_priority = -5;
/// Creates a stream in `context`, whichever context is current.
CUresult create_stream(CUstream* stream, unsigned flags, int priority, CUcontext context);

}  // namespace standin
