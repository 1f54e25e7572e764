#pragma once
/// Chooses the device of a job.
#include <wye/base/clock.hpp>
#include <wye/base/error.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pool/pool.hpp"
#include "scheduler/blame.hpp"
#include "scheduler/placement.hpp"
#include "scheduler/request.hpp"
#include "scheduler/waiting.hpp"

namespace wye::inline v0::scheduler {

/// Considers the devices of a pool for jobs, in the order of the preference table, and keeps the
/// decision about each device that cannot run a job.
/// Threads: thread-safe, if each job is in one call at a time. Its mutex guards the list of tables.
class Placer {
 public:
  /// `pool` and `clock` outlive it. `add_places` is called with each further table, before a job
  /// uses it. Throws: std::bad_alloc.
  Placer(pool::Pool& pool, const Clock& clock, const SchedulerOptions& options,
         std::function<void(const Table&)> add_places);

  /// Returns the table with all devices of the pool: the last one if there is no memory for a new
  /// one. Its rows do not move.
  const Table& table() noexcept {
    const Table& last = last_table();
    return last.choices.size() == pool_.fleet().size() ? last : add_devices();
  }
  /// Returns the last table, without devices that were added since.
  const Table& last_table() const noexcept { return *table_.load(std::memory_order_acquire); }

  /// Returns the home of a job that waits; nothing if no device can run it, or the host alone. Throws:
  /// std::bad_alloc.
  std::optional<Home> find_home(Candidates& job) const;
  /// Returns the decision about the next device to try, which is the last one; null: no further
  /// device can run it. Throws: std::bad_alloc.
  Decision* find_next(Candidates& job) const;
  /// Has a job tried next on a device that has taken it from a line of several devices. Another one,
  /// which was chosen before, was passed for `why`. Throws: std::bad_alloc.
  void take_over(Candidates& job, std::size_t device, RefusalCode why) const;
  /// Returns whether a device can run a job: `refused` with its code, or open. Throws:
  /// std::bad_alloc.
  Decision consider(const Candidates& job, std::size_t device) const;
  /// Returns whether a job, which has not been tried yet, was refused because of a device that was
  /// lost and has been opened again: all devices are considered again then.
  bool reconsider(Candidates& job) const;
  /// Returns why no device of the pool is named `on`; nothing if one is.
  std::optional<Error> find_target_error(std::string_view on) const;
  /// Returns why `JobOptions::prefer` names no adapter, usable or not; nothing if it does.
  std::optional<Error> find_preference_error(std::string_view prefer) const;
  /// Returns a row with the devices first that `prefer` names; it lives as long as `row`. Throws:
  /// std::bad_alloc.
  const Row& preferring(const Row& row, std::string_view prefer);

  /// Notes that the device of a decision has run a job. The decisions about devices after it are made
  /// on request (`pass`), unless the job requests a device or uses memory of one.
  void note_run(Candidates& job, Decision& decision) const noexcept;
  /// Returns the decision about a device that was not tried, because the device `ran` comes first.
  /// Throws: std::bad_alloc.
  Decision pass(const Candidates& job, std::size_t device, std::size_t ran) const;

  /// Notes for the kernels of `work` how its attempt on a device has ended: it has completed, or the
  /// device was lost while it was in flight there.
  void note_completion(const Job& work, std::size_t device) noexcept { blame_.note_completion(work, device); }
  void note_loss(const Job& work, std::size_t device, device::DeviceRef lost) noexcept {
    blame_.note_loss(work, device, std::move(lost), clock_.now());
  }

 private:
  const Table& add_devices() noexcept;
  void add_table();
  Decision* consider_again(Candidates& job, std::initializer_list<RefusalCode> codes) const;
  bool is_lost(Decision& decision) const noexcept;
  bool is_suspect(Decision& decision) const noexcept;
  bool is_blamed(const Candidates& job, Decision& decision) const;

  pool::Pool& pool_;
  const Clock& clock_;
  const std::vector<Preference> preferences_;
  const PlacementMode mode_;
  const std::function<void(const Table&)> add_places_;
  Blame blame_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<const Table>> tables_;  // jobs refer to their rows
  std::map<std::pair<const Row*, std::string>, Row> preferring_;
  std::atomic<const Table*> table_{nullptr};  // the last one
};

/// Returns why the device that comes first for a job was passed over for the device that took the job.
RefusalCode passed_code(Chosen chosen) noexcept;
/// Returns why a device was passed over for a job that the device `ran` has run.
RefusalCode passed_code(const Row& row, std::size_t device, std::size_t ran) noexcept;

}  // namespace wye::scheduler
