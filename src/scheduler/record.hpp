#pragma once
/// The state of one job: shared by its ticket, the queue and the thread that runs it.
#include <wye/scheduler/job.hpp>
#include <wye/scheduler/plan.hpp>
#include <wye/scheduler/scheduler.hpp>
#include <wye/scheduler/ticket.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/block_pool.hpp"
#include "base/gate.hpp"
#include "base/id.hpp"
#include "base/text.hpp"
#include "data/array_state.hpp"
#include "data/completion.hpp"
#include "device/provider.hpp"
#include "flight/flight.hpp"
#include "scheduler/request.hpp"
#include "scheduler/waiting.hpp"

namespace wye::inline v0::scheduler {

class Core;
class Comparison;
struct PlanRun;

using base::milliseconds;

inline std::optional<Error> to_optional(const Error* error) {
  return error ? std::optional<Error>(*error) : std::nullopt;
}

/// Parks the threads that wait for some of the records of a scheduler.
struct Parking {
  std::mutex mutex;
  base::Gate gate;
};

/// One call of `wait_any`. Its lock is inside those of `Parking`.
struct AnyWait {
  std::mutex mutex;
  base::Gate gate;
  bool any_settled = false;

  void notify() noexcept {
    const base::Lock lock(mutex);
    any_settled = true;
    gate.wake_all();
  }
};

struct Record;
struct TypeRow;

/// How far a job has come on the thread that ran it.
enum class Progress : std::uint8_t {
  completed,
  in_flight,
  requeued,  ///< it waits again: for another device, or for memory
};

/// The place of a job among those that run.
/// Threads: under the mutex of its scheduler.
struct Active {
  bool is_unattended = false;   ///< abandoned in flight, and no worker waits for it yet
  bool counts_for_tag = false;  ///< as one of the running jobs of its tag
  bool is_committed = false;    ///< to its place; a job of a batch shares that of its leader
  bool is_due = false;          ///< it counts as running, and starts when its stage ends
  std::uint32_t flight = 0;     ///< the number of its last submission that no thread waited for
  std::uint32_t callbacks = 0;  ///< pending ones of all its flights: a late one may follow a next flight
  TypeRow* type_row = nullptr;  ///< of its type; null: it is not counted
  Record* active_previous = nullptr;  ///< neighbours in the list of running jobs
  Record* active_next = nullptr;
  Record* batch = nullptr;  ///< the other jobs of its submission, until they settle
};

/// How a job ended.
/// Threads: the thread that runs or settles it writes this; others read it once the job has settled.
///          Of an abandoned job, other threads read the error only.
struct Verdict {
  bool leads_batch = false;  ///< it was submitted with `Active::batch`
  CacheTier tier = CacheTier::none;
  std::uint8_t batch_size = 1;           ///< the jobs of its submission
  std::uint8_t launch_size = 1;          ///< the jobs of its launch
  std::uint32_t device = 0;              ///< index of the device that ran it
  std::uint32_t attempts = 0;            ///< devices that it was tried on, so far
  const std::string* context = nullptr;  ///< the id of the context that ran it; null: none
  std::optional<Error> error;
  Instant started{};
  Instant ended{};  ///< of its last command, if it completed
  Instant settled_at{};
  flight::Times times{};
  Bytes bytes_transferred;

  Duration run_time() const noexcept { return settled_at - started - times.sum(); }
};

/// One job: shared by its ticket, the queue and the thread that runs it.
///
/// The state changes by compare-and-swap. The thread that moves it to `running` runs the job; the
/// thread that moves it to `settled` settles it. A job that was in flight and returned runs again,
/// on any worker.
/// Threads: as its bases. The thread that runs it writes the members from `lacks_memory` on.
struct Record : Waiting, Candidates, Active, Verdict, std::enable_shared_from_this<Record>, base::Identified {
  Record(std::shared_ptr<Core> of, Job&& kept) noexcept;
  ~Record();

  /// Elements that it writes, which fail if it does.
  struct Output {
    std::shared_ptr<data::ArrayState> array;
    data::IntervalSet elements = {};
  };
  /// The jobs that it follows, and the arrays that its followers use.
  struct Dependencies {
    explicit Dependencies(base::BlockPool& pool) noexcept : pool_(pool) {}
    base::BlockPool& block_pool() const noexcept { return pool_; }

    detail::InlineList<std::shared_ptr<Record>, 1> after;  ///< `JobOptions::after`, until they have settled
    data::Predecessors predecessors;
    detail::InlineList<Output, 1> outputs;
    /// The next record without predecessors, on the thread that queues them.
    Record* next_released = nullptr;
    AfterFailure after_failure = AfterFailure::fail;
    bool has_failed_too = false;            ///< the error of the job is that of a job that it followed
    std::atomic<bool> is_half_over{false};  ///< see `release_followers`

   private:
    base::BlockPool& pool_;
  };
  /// Members that few jobs need.
  struct Extras {
    struct Variant {  // of a call, that it ran
      std::shared_ptr<Comparison> comparison;
      std::size_t program = 0;
      std::size_t call = 0;
    };
    std::vector<Variant> variants;
    /// The programs that it ran, if it has several calls or a kernel with variants.
    std::vector<std::shared_ptr<const device::Program>> programs;
    /// Programs with a source that comes before the one in use and that the device refuses.
    std::vector<std::shared_ptr<const device::Program>> passed_over;
    /// Programs whose executables `may_end_loops_early`.
    std::vector<std::shared_ptr<const device::Program>> early_loop_ends;
    std::shared_ptr<const PlanDescription> plan;  ///< of the run of a plan that has started
    struct Shortage {                             // of memory on its device: see `Workers::wait_for_memory`
      std::uint32_t waits = 0;
      std::uint32_t retries = 0;  // of these, while no other job used the processor
      Instant since{};            // its first wait, of the steady clock
    } shortage;
    Bytes bytes_prefetched;
    std::size_t prefetched_on = 0;  ///< the device with these copies
  };
  struct Listeners {
    std::vector<std::function<void(const Result<Outcome>&)>> continuations;
    std::vector<AnyWait*> any_waits;  ///< calls of `wait_any` that wait for it among others
  };

  const std::shared_ptr<Core> core;

  std::atomic<bool> stop{false};
  std::atomic<bool> is_settled{false};
  std::atomic<bool> is_watched{false};  ///< set by `watch`, and never cleared
  bool lacks_memory = false;            ///< its attempt failed for want of memory, which may be free later
  bool lacks_tag_memory = false;        ///< of the budget of its tag
  bool is_sampled = false;              ///< `TimeBook::samples` has chosen it
  std::atomic<std::uint32_t> tried_on{~0u};  ///< the device that it is being tried on
  std::uint32_t run_by = 0;                  ///< the number of the thread that runs it; 0: none
  flight::FlightPointer attempt;             ///< on the device that it is being tried on
  std::unique_ptr<PlanRun> plan_run;         ///< null: it is a job; released as the arguments of `job` are
  std::unique_ptr<Extras> extras;            ///< null: none

  // Of its place among other jobs.
  std::shared_ptr<Record> self;  ///< set until its predecessors are complete, and while callbacks are pending
  std::shared_ptr<data::Completion> completion;  ///< for its followers; null if it has none and uses no array
  base::BlockPointer<Dependencies> dependencies;  ///< null: it follows no jobs and uses no arrays

  std::unique_ptr<Listeners> listeners;  ///< under the mutex of `parking`; null: none

  /// Throws: std::bad_alloc.
  Extras& make_extras() { return extras ? *extras : *(extras = std::make_unique<Extras>()); }
  /// Requires the mutex of `parking`. Throws: std::bad_alloc.
  Listeners& make_listeners() {
    return listeners ? *listeners : *(listeners = std::make_unique<Listeners>());
  }
  /// Returns whether it follows a job. Before it is ready.
  bool follows() const noexcept {
    return dependencies && (!dependencies->predecessors.empty() || !dependencies->after.empty());
  }
  Bytes bytes_prefetched() const noexcept { return extras ? extras->bytes_prefetched : Bytes{}; }
  Duration queue_time() const noexcept { return started - submitted + times.lane; }
  /// Returns where threads wait for this record, and for others.
  Parking& parking() const noexcept;
  /// Has the thread that settles this take the mutex of `parking`, because `listeners` or
  /// `completion` is about to change or a thread is about to wait. Returns false if this has
  /// settled, and then no thread takes it. Requires the mutex.
  bool watch() noexcept {
    is_watched = true;  // before `is_settled` is read: `publish` writes and reads them in the other order
    return !is_settled;
  }
  /// Returns the next job of its batch, which begins with the job that leads it; null if it is the
  /// last one.
  Record* next_in_batch() const noexcept { return batch ? batch : static_cast<Record*>(listed.next); }
  bool advance(State from, State to) noexcept { return state.compare_exchange_strong(from, to); }
  /// Returns the completion of this record, which another one follows; null if this one has
  /// settled.
  /// Throws: std::bad_alloc.
  std::shared_ptr<data::Completion> followed();
  /// Returns the result of a settled job.
  Result<Outcome> result();
};

/// Adds the times of a job that has completed to those of its kind. Of the time that it held its
/// device, the part counts that it had the processor (`Choosing::part`).
void note_times(TimeBook& times, TimeBook::Row& row, const Record& record) noexcept;

}  // namespace wye::scheduler
