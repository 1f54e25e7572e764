#pragma once
/// Runs the calls of a job, or recorded commands, on a leased lane of one device.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/device/detail/inline_list.hpp>
#include <wye/device/executable.hpp>
#include <wye/pool/lease.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/block_pool.hpp"
#include "base/internals.hpp"
#include "device/lane.hpp"
#include "device/stamps.hpp"
#include "flight/binding.hpp"
#include "flight/calls.hpp"
#include "pool/pool.hpp"

namespace wye::inline v0::flight {

class Flight;
class Flights;

/// Copies of this size and more are submitted alone, to measure their time. The submission costs
/// little beside them.
inline constexpr Bytes least_measured{1 << 20};

/// Names a job in error texts.
struct Labels {
  std::string_view name;
  std::string_view tag = {};

  /// Returns "job 'scale'" or "job 'scale' (tag 'frame 7')", for the middle of a sentence.
  std::string object() const;
  /// Returns the same for the beginning of a sentence.
  std::string subject() const;
};

/// The time of a job that is not the time of its commands.
struct Times {
  Duration lane{};      ///< failed attempts, and the wait for a lane
  Duration build{};     ///< the builds of its kernels
  Duration transfer{};  ///< the transfers of its operands

  Duration sum() const noexcept { return lane + build + transfer; }
};

/// A call, ready for the device of its flight.
struct Step {
  Executable executable;
  bool is_timed = false;     ///< it is submitted alone
  bool is_measured = false;  ///< it was timed, and has completed
  Duration took{};
};

/// The work of a flight. The caller keeps all of it.
struct Work {
  Calls calls;
  const Binding::Operands* operands = nullptr;  ///< of recorded commands; null: of the calls
  Times* times = nullptr;                       ///< the flight adds its times
  Instant until = Instant::max();               ///< when its time limit passes, by the clock of `Flights`
  const std::atomic<bool>* stop = nullptr;      ///< set when it is cancelled; null: it never is
  bool is_stamped = false;                      ///< see `Flight::stamped`
};

/// Why a flight failed, if it may succeed later.
enum class Shortage : std::uint8_t {
  none,
  memory,      ///< memory of the device may be free later
  tag_memory,  ///< the budget of the tag is spent
};

/// One try to run some work on one device: `prepare`, `lease`, `bind`, `record`, then `submit` and
/// `complete` until it has completed, and `publish` or `fail`. The destructor ends the lease.
///
/// A flight may lead others (`lead`), which share its lease and its submission: the leader binds,
/// records, submits and completes for all of them. Equal calls of neighbours share a launch.
/// Threads: one thread at a time.
class Flight {
 public:
  /// `index`: the number of the device in the pool. `tag` has a budget if the pool gives it one.
  Flight(const Flights& by, const Work& work, const Device& on, std::size_t index, std::string_view tag);
  Flight(const Flight&) = delete;

  base::BlockPool& block_pool() const noexcept;
  std::size_t device() const noexcept { return device_; }
  Instant until() const noexcept { return until_; }
  /// Returns until when threads wait for it: `until`, by the steady clock.
  Instant park() const noexcept { return park_; }
  /// Has threads wait for it no longer than `until`, of the steady clock.
  void park_until(Instant until) noexcept { park_ = std::min(park_, until); }
  /// Returns whether a command may have run.
  bool has_begun() const noexcept { return has_begun_; }
  /// Returns whether it was cancelled and ends although its work is in flight. Host functions use
  /// the memory of the caller, so their work does not.
  bool is_cut_short() const noexcept { return stop_ && *stop_ && !binding_.is_in_place(); }
  Shortage shortage() const noexcept { return shortage_; }
  /// Returns how many flights share its launch.
  std::uint8_t launch_size() const noexcept { return launch_size_; }
  Bytes transferred() const noexcept { return binding_.transferred(); }
  /// Returns its lane, or that of its leader.
  device::Lane& lane() const noexcept { return base::state_of(leased())->lane(); }

  /// Returns the id of its context, which is valid as long as the pool; null before the lease.
  const std::string* context_id() const noexcept { return leader_ || lease_ ? &context().id : nullptr; }

  /// Adds the step of the next call.
  void add_step(Executable executable, bool is_timed) { steps_.push_back({std::move(executable), is_timed}); }
  /// Returns how long the timed step of a call took. Returns nothing if it has not completed, or is
  /// not timed.
  std::optional<Duration> time_of(std::size_t call) const noexcept {
    return steps_[call].is_measured ? std::optional(steps_[call].took) : std::nullopt;
  }

  /// Returns when its dispatches ran, without its transfers, once `complete` has returned a time.
  /// Returns nothing unless `Work::is_stamped`, and if the device has no clock, if it runs recorded
  /// commands or a timed step, or if it shares its submission.
  /// Cost:    a barrier before its dispatches, two stamps, and a few calls of the driver in
  ///          `complete`; the first stamps of a lane and of its recordings allocate.
  const std::optional<device::StampedTimes>& stamped() const noexcept { return stamped_; }

  /// Makes the arrays that it reads available. `reserves`: reserves all memory that it has yet to
  /// allocate before that, or nothing: flights that each hold a part would wait for each other.
  /// `lap`: up to here the times are known. Holds no lane yet, see `Binding::fetch`.
  /// Errors: over_budget, out_of_memory, and those of `Binding::fetch`.
  Result<void> prepare(const Labels& labels, Instant lap, bool reserves);
  /// Adds a prepared flight on the same device to those that this one leads. Each of them, also
  /// this one, has one step, which is not timed, and copies less than `least_measured`. This one
  /// ends last.
  void lead(Flight& member) noexcept;
  /// Leases a lane for this flight and those that it leads.
  /// Errors: unavailable (no lane is free in time), and those of a lease.
  Result<void> lease();
  /// Allocates buffers and records the uploads. If a flight fails, nothing was submitted for the
  /// others, unless arrays were copied.
  Result<void> bind();
  /// Records the steps and the downloads. Submits timed steps by themselves.
  /// Errors: timed_out, cancelled, and those of timed steps.
  Result<void> record();
  /// Submits `dispatches` recorded commands, and records the downloads.
  void record(device::SequenceState& sequence, std::size_t dispatches);
  /// Submits the recorded commands. Returns the point that they reach. Returns nothing if they have
  /// completed or failed. `waits`: this thread waits for them.
  std::optional<device::TimelinePoint> submit(bool waits);
  /// Waits for the submission. Returns when it completed. Returns nothing if large downloads are
  /// recorded now, which the next `submit` submits.
  /// Errors: timed_out; cancelled; the first failure of the lane. Of a flight with a leader: those
  ///         of the leader.
  Result<std::optional<Instant>> complete();
  /// Drops the downloads: the caller may have freed its memory.
  void discard() noexcept;
  /// Waits for work that may be in flight, after an exception: it may use the caller's memory.
  /// Throws: std::bad_alloc.
  void await_submitted();
  /// Ends the lead: each of the other flights returns `result` from its `complete`. It lives until
  /// then.
  void end_lead(const Result<std::optional<Instant>>& result) noexcept;

  /// Called after success: marks the copies that it wrote as the only valid copies.
  void publish() { binding_.publish(); }
  /// Called after a failure, with the name of the work that may still be in flight on the lane.
  void fail(const Error& error, std::string work);

 private:
  const Lease& leased() const noexcept { return leader_ ? *leader_->lease_ : *lease_; }
  pool::Context& context() const noexcept { return *base::state_of(leased())->context; }
  StopToken stop_token() const noexcept;
  void add_lap(Duration& sum) noexcept;
  Result<void> reserve(const Labels& labels, Instant now);
  void form_launches() noexcept;
  Result<void> bind_members();
  Result<void> dispatch_alone(Step& step, std::size_t call);
  Result<void> submit_and_wait();
  void record_downloads();
  bool find_stamps() const noexcept;

  const Flights& by_;
  const std::uint32_t device_;
  bool has_begun_ = false;
  bool has_downloads_ = false;  ///< the downloads of all of its flights are recorded
  bool is_stamped_;             ///< stamps are around its dispatches, or will be
  Shortage shortage_ = Shortage::none;
  std::uint8_t launch_size_ = 1;
  detail::InlineList<Step, 1> steps_;
  const Instant until_;
  Instant park_;
  Instant lap_{};  ///< up to here the times are known
  Times& times_;
  const std::atomic<bool>* const stop_;
  const Flight* leader_ = nullptr;                           ///< has the lease; null: this has one
  Flight* next_ = nullptr;                                   ///< the next flight of its submission
  const Result<std::optional<Instant>>* of_lead_ = nullptr;  ///< see `end_lead`
  std::optional<device::StampedTimes> stamped_;
  const std::shared_ptr<silicon::MemoryAccount> tag_;  ///< null: the tag has no budget
  Binding binding_;
  std::optional<Lease> lease_;  ///< ends before the binding
};

using FlightPointer = base::BlockPointer<Flight>;

/// Makes flights in memory of flights that have ended.
/// Threads: thread-safe.
class Flights {
 public:
  /// `pool` and `clock` outlive it.
  Flights(pool::Pool& pool, const Clock& clock, std::size_t most_kept)
      : pool_(pool), clock_(clock), blocks_(new base::BlockPool(most_kept)) {}

  /// Throws: std::bad_alloc.
  FlightPointer make(const Work& work, const Device& on, std::size_t index, std::string_view tag) const {
    return base::make_in<Flight>(*blocks_, *this, work, on, index, tag);
  }
  base::BlockPool& blocks() const noexcept { return *blocks_; }
  pool::Pool& pool() const noexcept { return pool_; }
  const Clock& clock() const noexcept { return clock_; }
  /// Returns the error of a cancelled flight. It was constructed in advance.
  const Error& cancelled() const noexcept { return cancelled_; }

 private:
  pool::Pool& pool_;
  const Clock& clock_;
  const std::unique_ptr<base::BlockPool, base::BlockPool::Leave> blocks_;
  const Error cancelled_{Errc::cancelled, "The work was cancelled."};
};

inline base::BlockPool& Flight::block_pool() const noexcept { return by_.blocks(); }

}  // namespace wye::flight
