#pragma once
/// The CPU team: parked threads that share one grid at a time with the thread that asks.
#include <wye/base/clock.hpp>
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>

namespace wye {
inline namespace v0 {
namespace base {

/// A reference to a callable that outlives the call; no allocation.
class ChunkFunction {
 public:
  // Not for a ChunkFunction: the copy of one refers to the same callable, not to the one copied.
  template <class F, std::enable_if_t<!std::is_same_v<std::remove_const_t<F>, ChunkFunction>, int> = 0>
  ChunkFunction(F& f)  // NOLINT: implicit on purpose
      : object_(&f), call_([](void* object, std::uint64_t first, std::uint64_t last) {
          (*static_cast<F*>(object))(first, last);
        }) {}
  void operator()(std::uint64_t first, std::uint64_t last) const { call_(object_, first, last); }

 private:
  void* object_;
  void (*call_)(void*, std::uint64_t, std::uint64_t);
};

/// What items of one kind have cost so far, so that small grids of cheap ones stay with their caller.
/// Threads: thread-safe. A hint and never more: what is wrong in it costs a wake too many, or one grid that is
///          not shared out at once.
class Pace {
 public:
  bool known() const noexcept { return nanoseconds_.load(std::memory_order_relaxed) >= 0; }
  /// What `items` may take on one thread.
  Duration expected(std::uint64_t items) const noexcept;
  void saw(std::uint64_t items, Duration took) noexcept;

 private:
  std::atomic<float> nanoseconds_{-1};  // of one item; negative: nothing was seen
};

/// Parked threads, all but the first started when work asks for them. One team of a size per process, shared,
/// counted: the threads are joined when its last handle ends. (Where that is inside a task, the thread that
/// runs it is detached.)
/// Threads: thread-safe; calls from inside a chunk or a task share the same threads and cannot deadlock.
/// Cost:    nothing while idle.
class Team {
 public:
  virtual ~Team();

  /// The process's team of `threads` threads; 0 means one per processor this process may use.
  /// A team for which the system gives no thread works on its callers' threads, and asks for threads again later.
  /// Errors: invalid_argument (over 1024).
  static Result<std::shared_ptr<Team>> share(unsigned threads);

  /// Whether the calling thread is one of a team's, at work: what it waits for may be waiting for it.
  static bool inside() noexcept;

  /// How many threads work on one grid at most, the caller included.
  virtual unsigned size() const noexcept = 0;

  /// Calls `chunk(first, last)` over [0, count) in runs whose length is a multiple of `grain` (but for the
  /// last), on the team's threads and the caller's; returns when all are done. Runs on the caller alone where
  /// count <= grain, or while all of it takes less than waking somebody, by `pace` or as it turns out.
  /// `chunk` must not throw.
  virtual void each(std::uint64_t count, std::uint64_t grain, ChunkFunction chunk, Pace& pace) = 0;
  void each(std::uint64_t count, std::uint64_t grain, ChunkFunction chunk) {
    Pace unknown;
    each(count, grain, chunk, unknown);
  }

  /// Runs `task` on a team thread some time soon; tasks begin in the order they were posted, before waiting
  /// grids. It must not throw, and must not wait for a task posted later: all threads might do that. What is
  /// posted when the last handle ends still runs.
  /// Returns false, and does nothing, if the team has no thread and the system gives none: the caller runs the task.
  virtual bool post(std::function<void()> task) = 0;
};

}  // namespace base
}  // namespace v0
}  // namespace wye
