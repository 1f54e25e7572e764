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
#include "data/array_state.hpp"
#include "data/completion.hpp"
#include "device/provider.hpp"
#include "flight/flight.hpp"
#include "scheduler/waiting.hpp"

namespace wye::inline v0::scheduler {

class Core;
class Trial;
struct PlanRun;
struct Row;

inline double milliseconds(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

/// The decision about one device, as data. `Core::explain` and `Core::reason` make sentences of it.
struct Decision {
  /// Objects that the sentence of a decision names.
  struct Detail {
    std::shared_ptr<const device::Program> program =
        nullptr;  ///< kernel_unsupported, kernel_blamed, foreign_buffer
    std::shared_ptr<const device::DeviceBase> owner = nullptr;  ///< foreign_buffer: the device of the buffer
    std::optional<Error> error = std::nullopt;                  ///< device_lost, attempt_failed
  };

  std::uint32_t device = 0;
  std::uint16_t argument = 0;  ///< foreign_buffer: its number, from 1
  Candidate::Verdict verdict = Candidate::Verdict::passed;
  RefusalCode code = RefusalCode::none;
  std::shared_ptr<const Detail> detail = nullptr;

  /// Returns the error of device_lost and attempt_failed. Null if the attempt ended with the error
  /// of the job.
  const Error* error() const noexcept { return detail && detail->error ? &*detail->error : nullptr; }

  /// Throws: std::bad_alloc.
  void set_error(const Error& error) { detail = std::make_shared<Detail>(Detail{.error = error}); }
  /// Returns whether the device may run the job and has not been tried.
  bool is_open() const noexcept { return verdict == Candidate::Verdict::passed && code == RefusalCode::none; }
  void refuse(RefusalCode why) noexcept {
    verdict = Candidate::Verdict::refused;
    code = why;
  }
};

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

/// The state changes by compare-and-swap. The thread that moves it to `running` runs the job; the
/// thread that moves it to `settled` settles it. A job that was in flight and returned runs again,
/// on any worker.
/// Threads: that thread writes the members below the state, but for those under a mutex; other
///          threads read them once the job has settled. Of an abandoned record, other threads read
///          the name, the tag and the error only.
struct Record : Waiting, std::enable_shared_from_this<Record>, base::Identified {
  Record(std::shared_ptr<Core> of, Job&& kept) noexcept;
  ~Record();

  /// Elements that it writes, which fail if it does.
  struct Output {
    std::shared_ptr<data::ArrayState> array;
    data::IntervalSet elements = {};
  };
  /// The jobs that it follows, and the arrays that its followers use.
  struct Dependencies {
    detail::InlineList<std::shared_ptr<Record>, 1> after;  ///< `JobOptions::after`, until they have settled
    data::Predecessors predecessors;
    detail::InlineList<Output, 1> outputs;
    /// The next record without predecessors, on the thread that queues them.
    Record* next_released = nullptr;
    AfterFailure after_failure = AfterFailure::fail;
    std::atomic<bool> is_half_over{false};  ///< see `Core::release_followers`
  };
  /// Members that few jobs need.
  struct Extras {
    struct Variant {  // of a call, that it ran
      std::shared_ptr<Trial> trial;
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
    struct Shortage {                             // of memory on its device: see `Core::wait_for_memory`
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

  // Set when it is submitted.
  const std::shared_ptr<Core> core;
  Job job;  ///< its arguments are released when it settles: they hold the caller's arrays and buffers
  const Row* row = nullptr;  ///< of the preference table
  Duration time_limit{};
  Fallback fallback = Fallback::allow;
  bool has_own_limits = false;  ///< the job's options have a `start_by` or a time limit
  bool borrows = false;         ///< an argument is host memory of the caller

  std::atomic<bool> stop{false};
  std::atomic<bool> is_settled{false};
  std::atomic<bool> is_watched{false};  ///< set by `watch`, and never cleared

  // Under the mutex of the core; further ones follow below.
  bool is_unattended = false;   ///< abandoned in flight, and no worker waits for it yet
  bool counts_for_tag = false;  ///< as one of the running jobs of its tag
  bool is_due = false;          ///< it counts as running, and starts when its stage ends
  std::uint32_t flight = 0;     ///< the number of its last submission that no thread waited for
  std::uint32_t callbacks = 0;  ///< pending ones of all its flights: a late one may follow a next flight

  // Written by the thread that runs or settles it.
  bool failed_as_follower = false;  ///< `error` is that of a job in `after`
  bool has_failed = false;          ///< on a device; a further device is a fallback
  bool leads_batch = false;         ///< it was submitted with `batch`
  bool lacks_memory = false;        ///< its attempt failed for want of memory, which may be free later
  bool lacks_tag_memory = false;    ///< of the budget of its tag
  CacheTier tier = CacheTier::none;
  std::uint8_t batch_size = 1;               ///< the jobs of its submission
  std::uint8_t launch_size = 1;              ///< the jobs of its launch
  std::size_t device = 0;                    ///< index of the device that ran it
  std::atomic<std::uint32_t> tried_on{~0u};  ///< the device that it is being tried on
  std::uint32_t tag_size = 0;                ///< of the text that `tag` returns
  std::uint32_t next_candidate = 0;          ///< an index into `Row::devices`
  detail::InlineList<Decision, 3> decisions;
  flight::FlightPointer attempt;      ///< on the device that it is being tried on
  std::unique_ptr<PlanRun> plan_run;  ///< null: it is a job; released as the arguments of `job` are
  std::unique_ptr<Extras> extras;     ///< null: none
  std::optional<Error> error;
  const void* run_by = nullptr;  ///< the thread that runs it
  Instant started{};
  Instant ended{};  ///< of its last command, if it completed
  Instant settled_at{};
  flight::Times times{};
  Bytes bytes_transferred;

  // Under the mutex of the core.
  TypeMetrics* type_metrics = nullptr;  ///< the row of its type; null: it is not counted
  Record* active_previous = nullptr;    ///< neighbours in the core's list of running jobs
  Record* active_next = nullptr;
  Record* batch = nullptr;  ///< the other jobs of its submission, until they settle
  Instant flight_until{};   ///< in flight: when its time limit passes, of the steady clock

  // Of its place among other jobs.
  std::shared_ptr<Record> self;  ///< set until its predecessors are complete, and while callbacks are pending
  std::shared_ptr<data::Completion> completion;  ///< for its followers; null if it has none and uses no array
  base::BlockPointer<Dependencies> dependencies;  ///< null: it follows no jobs and uses no arrays

  std::unique_ptr<Listeners> listeners;  ///< under the mutex of `parking`; null: none

  /// Adds a decision. Throws: std::bad_alloc.
  Decision& add_decision(std::size_t about) {
    Decision& decision = decisions.emplace_back();
    decision.device = static_cast<std::uint32_t>(about);
    return decision;
  }
  bool has_decision(std::size_t about) const noexcept {
    for (const Decision& decision : decisions)
      if (decision.device == about) return true;
    return false;
  }
  std::string_view name() const noexcept { return job.name(); }
  std::string_view tag() const noexcept { return std::string_view(labels_).substr(0, tag_size); }
  /// Returns the device or backend that the job requests; empty: any.
  std::string_view on() const noexcept { return std::string_view(labels_).substr(tag_size); }
  flight::Labels labels() const noexcept { return {name(), tag()}; }
  /// Throws: std::bad_alloc.
  void set_labels(std::string_view tag, std::string_view on) {
    labels_.reserve(tag.size() + on.size());
    labels_.append(tag).append(on);
    tag_size = static_cast<std::uint32_t>(tag.size());
  }
  /// Throws: std::bad_alloc.
  Extras& make_extras() { return extras ? *extras : *(extras = std::make_unique<Extras>()); }
  /// Requires the mutex of `parking`. Throws: std::bad_alloc.
  Listeners& make_listeners() {
    return listeners ? *listeners : *(listeners = std::make_unique<Listeners>());
  }
  Bytes bytes_prefetched() const noexcept { return extras ? extras->bytes_prefetched : Bytes{}; }
  /// Returns "Job 'scale'" or "Job 'scale' (tag 'frame 7')", for the beginning of a sentence.
  std::string subject() const { return labels().subject(); }
  /// Returns the same for the middle of a sentence.
  std::string object() const { return labels().object(); }

  Duration queue_time() const noexcept { return started - submitted + times.lane; }
  Duration run_time() const noexcept { return settled_at - started - times.sum(); }
  /// Returns where threads wait for this record, and for others.
  Parking& parking() const noexcept;
  /// Has the thread that settles this take the mutex of `parking`, because `listeners` or
  /// `completion` is about to change or a thread is about to wait. Returns false if this has
  /// settled, and then no thread takes it. Requires the mutex.
  bool watch() noexcept {
    is_watched =
        true;  // before `is_settled` is read: `Core::publish` writes and reads them in the other order
    return !is_settled;
  }
  /// Returns the next job of its batch, which begins with the job that leads it; null if it is the
  /// last one.
  Record* next_in_batch() const noexcept { return batch ? batch : static_cast<Record*>(next_listed); }
  bool advance(State from, State to) noexcept { return state.compare_exchange_strong(from, to); }
  /// Returns the completion of this record, which another one follows; null if this one has
  /// settled.
  /// Throws: std::bad_alloc.
  std::shared_ptr<data::Completion> followed();
  /// Returns the result of a settled job.
  Result<Outcome> result();

 private:
  std::string labels_;  // the tag, then `on`
};

}  // namespace wye::scheduler
