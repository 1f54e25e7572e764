#pragma once
/// The state behind a Scheduler.
#include <wye/scheduler/scheduler.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/block_pool.hpp"
#include "base/gate.hpp"
#include "base/process.hpp"
#include "device/provider.hpp"
#include "scheduler/parts.hpp"
#include "scheduler/queue.hpp"
#include "scheduler/record.hpp"
#include "scheduler/runner.hpp"
#include "scheduler/workers.hpp"

namespace wye::inline v0 {

struct PlanOptions;

namespace scheduler {

struct GraphState;
struct PlanState;

/// Accepts jobs and waits for them.
/// Threads: thread-safe.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(std::shared_ptr<pool::Pool> pool, std::shared_ptr<device::ExecutableProvider> provider,
       SchedulerOptions options);
  ~Core();

  /// Returns the record of a job. If memory runs out, the record has settled as out_of_memory.
  std::shared_ptr<Record> accept(Job&& job, const JobOptions& options) noexcept;
  /// Implements `Graph::compile`.
  Result<std::shared_ptr<PlanState>> compile(const GraphState& graph, const PlanOptions& options);
  /// Returns the record of a run of a plan, as `accept` does.
  std::shared_ptr<Record> accept(const std::shared_ptr<PlanState>& plan, const JobOptions& options) noexcept;
  /// Returns the record of a job. Throws: std::bad_alloc.
  std::shared_ptr<Record> make_record(Job&& job, const JobOptions& options);
  /// Queues an accepted record. Settles it if it cannot be queued.
  void submit(const std::shared_ptr<Record>& record) noexcept;
  /// Queues at most `most_submitted` accepted records in their order: one lock, and one call of a
  /// worker.
  void submit(std::span<const std::shared_ptr<Record>> records) noexcept;
  static constexpr std::size_t most_submitted = 64;
  /// Runs an accepted record on this thread if `concurrent_jobs` allows it, otherwise queues it;
  /// waits for its result.
  Result<Outcome> run_here(const std::shared_ptr<Record>& record);
  /// Implements `Scheduler::estimate`.
  Result<Explanation> estimate(Job&& job, const JobOptions& options);
  Result<Outcome> wait(Record& record, Deadline deadline);
  /// Implements `wye::wait_any` for one record or more, of any schedulers.
  static Result<std::size_t> wait_any(std::span<const std::shared_ptr<Record>> records, Deadline deadline);
  void cancel(Record& record) noexcept;
  /// Called by the destructor of a ticket.
  void release(const std::shared_ptr<Record>& record) noexcept;

  /// Returns a completion for a record. Throws: std::bad_alloc.
  std::shared_ptr<data::Completion> make_completion() const {
    return std::allocate_shared<data::Completion>(base::BlockAllocator<data::Completion>(*completions_));
  }

  /// Returns the process that opened it. A child of `fork` takes no lock of it and runs nothing.
  const base::Origin& origin() const noexcept { return origin_; }
  /// Returns where threads wait for a record. Few threads wait at a time, so records share.
  Parking& parking_of(const Record& record) noexcept {
    return parking_[std::hash<const void*>()(&record) / 64 % parking_.size()];
  }
  Parts& parts() noexcept { return parts_; }
  const Parts& parts() const noexcept { return parts_; }
  Workers& workers() noexcept { return workers_; }
  const pool::Pool& pool() const noexcept { return *parts_.pool; }
  const Clock& clock() const noexcept { return parts_.clock; }
  /// Returns the row of the preference table for `size` of `type`.
  const Row& preferred(WorkloadType type, Bytes size) noexcept {
    return parts_.placer.table().preferences.row(type, size);
  }
  std::vector<Placement> recent() const;

  SchedulerMetrics metrics() const { return queue_.metrics(); }
  std::vector<Cost> costs() const;
  void forget() noexcept;

  /// Refuses new jobs, settles queued ones and waits for running ones until `until` (of the steady
  /// clock). Jobs that run then are abandoned: they settle as `closed`, and this object stays until
  /// the process ends, because threads still use it.
  /// Errors:  timed_out, naming the abandoned jobs; closed in a child of `fork`.
  Result<void> close(Instant until) noexcept;
  /// Implements `Scheduler::quiesce`, for a deadline by the clock of the pool.
  Result<void> quiesce(Deadline deadline);
  /// Calls a function of a ticket whose job has settled on the calling thread, which `quiesce` waits
  /// for.
  void call_at_once(const std::function<void(const Result<Outcome>&)>& then, Record& record) noexcept;
  /// Returns the time until which the destructor of the last handle waits for running jobs.
  Instant closes_by() const noexcept {
    const auto& timeout = parts_.options.close_timeout;
    return timeout ? Deadline(*timeout).at(Clock::steady()) : Instant::max();
  }

 private:
  // accept.cpp
  void make_dependencies(Record& record);
  std::shared_ptr<Record> without_memory() noexcept;
  std::optional<Error> examine(Record& record) noexcept;
  std::optional<Error> order(base::Lock& lock, Record& record, bool is_bounded,
                             std::optional<Error> refused) noexcept;
  bool wait_or_settle(const std::shared_ptr<Record>& record, std::optional<Error> error) noexcept;
  base::Lock enter(const std::shared_ptr<Record>& record, bool is_bounded) noexcept;
  void push(base::Lock lock, const std::shared_ptr<Record>& record) noexcept;
  static void on_predecessors_complete(void* object) noexcept;
  // wait.cpp
  class YieldedSlot;
  // close.cpp
  std::string abandon(Record& record) noexcept;

  const base::Origin origin_;
  using Blocks = std::unique_ptr<base::BlockPool, base::BlockPool::Leave>;
  const Blocks records_;  // memory of records that have ended; likewise:
  const Blocks completions_;
  const Blocks dependencies_;
  Parts parts_;
  Queue queue_;
  Workers workers_;
  Runner runner_;
  std::array<Parking, 32> parking_;
  std::shared_ptr<Core> self_;  // holds this until the process ends, if jobs were abandoned
  Record refused_;              // the record of jobs for which memory ran out
};

/// Opens a scheduler that takes its executables from `provider`.
Result<Scheduler> open(const ContextPool& pool, std::shared_ptr<device::ExecutableProvider> provider,
                       SchedulerOptions options = {});

}  // namespace scheduler
}  // namespace wye
