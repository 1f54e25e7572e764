#pragma once
/// The CPU team: parked threads that share one grid at a time with the calling thread.
#include <wye/base/clock.hpp>
#include <wye/base/extent.hpp>
#include <wye/base/result.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>

namespace wye::inline v0::base {

/// A reference to a callable that outlives the call; no allocation.
class ChunkFunction {
 public:
  // Not for a ChunkFunction: its copy refers to the same callable, not to the original
  // ChunkFunction.
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

/// The measured cost of items of one kind, so that small grids of cheap items stay with their
/// caller.
/// Threads: thread-safe. It is a hint: a wrong value costs one wake too many, or one grid that is
///          shared late.
class Pace {
 public:
  bool known() const noexcept { return nanoseconds_.load(std::memory_order_relaxed) >= 0; }
  /// Returns the expected time of `items` on one thread.
  Duration expected(std::uint64_t items) const noexcept;
  void saw(std::uint64_t items, Duration took) noexcept;

 private:
  std::atomic<float> nanoseconds_{-1};  // of one item; negative: not measured
};

/// The time from a wake until the parked thread begins: 5 us, or 50 us on some virtual machines.
/// This is the cost of parking, so a thread of a team polls for as long before it parks.
/// Threads: any may read it; one at a time measures.
class WakeTime {
 public:
  static constexpr Duration longest = std::chrono::microseconds(64);

  WakeTime() noexcept;
  Duration expected() const noexcept { return Duration(nanoseconds_.load(std::memory_order_relaxed)); }
  /// Shorter times count more: on a busy machine a woken thread also waits for a processor, which
  /// polling would not avoid.
  void saw(Duration took) noexcept;

 private:
  std::atomic<Duration::rep> nanoseconds_;
};

/// Parked threads, started on demand. A process has one shared team of each size. Its threads are
/// joined when its last handle ends. If that happens inside a task, the thread of the task is
/// detached.
/// Threads: thread-safe; calls from inside a chunk or a task share the same threads and cannot
///          deadlock.
/// Cost:    nothing while idle.
class Team {
 public:
  virtual ~Team();

  /// Returns the process's team of `threads` threads; 0 means one per processor that this process
  /// may use. If the system gives no thread, the team works on its callers' threads and asks for
  /// threads again later.
  /// Errors: invalid_argument (over 1024).
  static Result<std::shared_ptr<Team>> share(unsigned threads);

  /// Returns whether the calling thread works for a team. Such a thread must not wait for another
  /// task of the team.
  static bool inside() noexcept;

  /// Returns the largest number of threads that work on one grid, including the caller.
  virtual unsigned size() const noexcept = 0;

  /// Calls `chunk(first, last)` over [0, count) on the team's threads and the caller's. The length
  /// of each run except the last is a multiple of `grain`. Returns when all runs completed. Runs on
  /// the caller alone if count <= grain, or while the remaining work costs less than waking a
  /// thread, by `pace` or as measured. `chunk` must not throw.
  virtual void each(std::uint64_t count, std::uint64_t grain, ChunkFunction chunk, Pace& pace) = 0;
  void each(std::uint64_t count, std::uint64_t grain, ChunkFunction chunk) {
    Pace unknown;
    each(count, grain, chunk, unknown);
  }

  /// Queues `task` for a team thread. Tasks begin in the order in which they were posted, before
  /// waiting grids. A task must not throw. It must not wait for a task posted later, because all
  /// threads might do so. Tasks that are queued when the last handle ends still run. Returns false
  /// without effect if the team has no thread and the system gives none; the caller then runs the
  /// task.
  virtual bool post(std::function<void()> task) = 0;
};

}  // namespace wye::base
