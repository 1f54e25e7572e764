#pragma once
/// Workers: threads of this process, or processes that run its program again. For components of wye;
/// not installed.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace wye::inline v0::process {

/// The worker's end of the memory that it shares with its parent.
/// Threads: thread-safe.
class WYE_API WorkerEnd {
 public:
  /// Joins the parent, if this process is a worker. Returns nothing if it is none. Removes the variable
  /// of workers from the environment: no other thread may use that at the same time.
  /// Errors: unavailable (the parent has ended), those of the system, and invalid_argument (the
  ///         descriptors of the parent are not there).
  static Result<std::optional<WorkerEnd>> join();
  /// Returns whether this process was started as a worker, whether it has joined or not.
  static bool is_worker_process() noexcept;

  WorkerEnd(WorkerEnd&&) noexcept;
  WorkerEnd& operator=(WorkerEnd&&) = delete;
  ~WorkerEnd();

  std::span<const std::byte> message() const noexcept;
  std::span<std::byte> memory() const noexcept;
  /// Returns a number that each `Worker::wake` changes.
  std::uint32_t calls() const noexcept;
  /// Parks until `calls()` differs from `seen`.
  void wait(std::uint32_t seen) const noexcept;
  /// Wakes the parent.
  void ring() const noexcept;
  /// Returns whether the parent asks the worker to end.
  bool is_ending() const noexcept;
  /// Returns the flag behind `is_ending`, which lives as long as this object.
  const std::atomic<bool>& ending() const noexcept;

 private:
  friend class Worker;
  friend class Workers;
  struct State;
  explicit WorkerEnd(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// Describes a worker to start.
struct WorkerOptions {
  /// Shown by the system: the name of its thread, or an argument of its program.
  std::string name = {};
  std::span<const std::byte> message = {};
  Bytes memory = {};
  /// Set: the worker is a thread that calls it. It must not throw.
  std::function<void(WorkerEnd&)> body = {};
  /// Variables of the environment of a process, beside those of its parent.
  std::vector<std::pair<std::string, std::string>> variables = {};
};

/// How a worker ended.
struct WorkerExit {
  /// Returns "killed by signal 11 (SIGSEGV)" or the like.
  std::string reason;
  bool is_by_signal = false;
  int number = 0;           ///< exit status or signal; 0 if the application has collected it
  std::string output = {};  ///< the last 4 KiB that the process wrote to its standard error
};

/// The parent's end of a worker.
/// Threads: one thread at a time.
class WYE_API Worker {
 public:
  Worker(Worker&&) noexcept;
  Worker& operator=(Worker&&) = delete;
  /// Kills a process. Waits for a thread, which must be about to return.
  ~Worker();

  std::span<std::byte> memory() const noexcept;
  void wake() noexcept;
  /// Asks the worker to end, and wakes it.
  void ask_to_end() noexcept;
  bool is_process() const noexcept;
  std::int64_t process_number() const noexcept;  ///< 0 for a thread
  /// Returns whether the process has called `WorkerEnd::join`; true for a thread.
  bool has_joined() const noexcept;
  /// Returns whether the process has ended, or the body of the thread has returned.
  bool has_ended() const noexcept;
  /// Kills a process. Does nothing to a thread.
  void kill() noexcept;
  /// Waits for the end of the worker, and returns how it ended.
  WorkerExit collect();

 private:
  friend class Workers;
  struct State;
  explicit Worker(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// The workers of one call, and the bell that they ring. It must outlive its workers.
/// Threads: one thread at a time.
class WYE_API Workers {
 public:
  static Result<Workers> open();
  Workers(Workers&&) noexcept;
  Workers& operator=(Workers&&) = delete;
  ~Workers();

  /// Errors: unavailable, out_of_memory, unsupported.
  Result<Worker> start(const WorkerOptions& options);
  /// Changes `calls()`, as a worker does. Thread-safe.
  void ring() const noexcept;
  /// Returns a number that changes when a worker rings, joins or ends.
  std::uint32_t calls() const noexcept;
  /// Parks until `calls()` differs from `seen`, or until `until`.
  void wait(std::uint32_t seen, Instant until) const noexcept;

 private:
  friend class Worker;
  struct State;
  explicit Workers(std::unique_ptr<State> state) noexcept;
  Result<Worker> start_thread(const WorkerOptions& options, std::uint64_t size);
  Result<Worker> start_process(const WorkerOptions& options, std::uint64_t size);
  std::unique_ptr<State> state_;
};

}  // namespace wye::process
