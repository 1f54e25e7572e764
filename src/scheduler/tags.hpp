#pragma once
/// The tags of jobs: how many jobs of each run, and its part of the time.
#include <wye/base/clock.hpp>
#include <wye/pool/context_pool.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace wye::inline v0::scheduler {

struct Waiting;

/// Jobs of a place, or of a tag, that do not start because the first of them lacks memory.
struct MemoryPause {
  std::optional<Instant> until;  ///< of the steady clock; unset: they may start
  bool has_no_memory = false;    ///< the last job that lacked memory did not get any
};

/// The jobs of one tag that wait or run.
struct TagState {
  double share = 1.0;
  std::uint32_t limit = std::numeric_limits<std::uint32_t>::max();  ///< of `running`
  bool is_listed = false;                                           ///< in the options: it is never forgotten
  std::uint32_t jobs = 0;                                           ///< that have not settled
  std::uint32_t running = 0;
  Duration run_time = std::chrono::milliseconds(1);  ///< of its jobs, expected: the latest ones count most
  Instant finish{};                                  ///< virtual time at which its last ready job ends
  MemoryPause pause;                                 ///< the tag's budget is spent
  Waiting* first_held = nullptr;  ///< jobs that left their queue while the tag was full, in this order
  Waiting** last_held = &first_held;

  bool is_full() const noexcept { return running >= limit || pause.until; }
};

/// Start-time fair queueing (Goyal, Vin, Cheng, "Start-time fair queueing", SIGCOMM 1996): a job's
/// virtual start is the virtual end of its tag's job before it, or the virtual time of the
/// scheduler if that is later; its virtual length is its expected run time divided by its tag's
/// share. The first virtual start is served first. The virtual time is the virtual start of the job
/// that started last.
/// Threads: the core's lock guards it.
class Tags {
 public:
  /// `budgets` have a limit of memory.
  Tags(const std::vector<TagOptions>& options, const std::vector<TagBudget>& budgets, bool has_shares);

  /// Returns the state of a tag for a further job; null if nothing depends on it.
  /// Throws: std::bad_alloc.
  TagState* enter(std::string_view tag);
  /// A job has settled, after it ran for `run_time` if it did.
  void leave(TagState& tag, Duration run_time) noexcept;
  /// Returns the virtual start of the next job of a tag.
  Instant next_start(const TagState& tag) const noexcept { return std::max(now_, tag.finish); }
  /// A job of a tag is ready. Returns its virtual start.
  Instant ready(TagState& tag) noexcept;
  /// A job with a virtual start has started.
  void started(Instant virtual_start) noexcept { now_ = std::max(now_, virtual_start); }
  bool has_shares() const noexcept { return has_shares_; }
  std::size_t size() const noexcept { return states_.size(); }
  template <class F>
  void each(F f) noexcept {
    for (auto& [name, state] : states_) f(state);
  }
  /// Returns a tag with jobs that were set aside; null if there is none.
  TagState* with_held() noexcept;

 private:
  void forget_idle();

  const bool has_shares_;
  std::map<std::string, TagState, std::less<>> states_;
  std::size_t forgets_at_ = 64;  ///< number of states
  Instant now_{};
};

}  // namespace wye::scheduler
