#pragma once
// Streams of the stand-in: threads with queues.
#include <deque>
#include <functional>
#include <random>
#include <thread>

#include "support/cuda/world.hpp"

namespace standin {

/// What an event marks: everything that was in a stream when it was recorded.
struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;
};
/// Waits for a mark. Returns what state the device is in then.
CUresult wait_for(Mark& mark);

/// A thread that does what it is given, one after the other.
class Queue {
 public:
  /// Waits at random before what it does, where `delays` are wanted.
  explicit Queue(bool delays);
  ~Queue() { end(); }
  /// Does what is left, and nothing after.
  void end();
  void push(std::function<void()> operation);
  std::shared_ptr<Mark> mark();

 private:
  void run();
  static inline std::atomic<unsigned> count{0};
  const bool delays_;
  std::mt19937 random_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool ending_ = false;
  std::thread thread_;
};

/// A stream: its queue, and where a kernel's blocks run on several threads, those that help it. They are its own: what two
/// streams shared would order what nothing orders.
class Stream : public Queue {
 public:
  static constexpr std::string_view kind = "streams";
  Stream(int of, CUcontext in) : Queue(true), device(of), context(in) {}
  ~Stream() { end(); }
  /// Runs a kernel, on the stream's thread. Returns what went wrong.
  std::string run(const twin::Launch& launch);
  const int device;
  const CUcontext context;

 private:
  std::vector<std::unique_ptr<Queue>> helpers_;
};

struct Event {
  static constexpr std::string_view kind = "events";
  explicit Event(CUcontext in) : context(in) {}
  const CUcontext context;
  /// Marks what is in a stream now, or gives what was marked last: on any thread, as in a driver.
  void record(Queue& queue) {
    const std::lock_guard lock(mutex_);
    mark_ = queue.mark();
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
/// Makes a stream in `context`, whichever is current.
CUresult create_stream(CUstream* stream, unsigned flags, int priority, CUcontext context);

}  // namespace standin
