#pragma once
/// The last settled jobs, as data.
#include <wye/scheduler/scheduler.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/gate.hpp"
#include "pool/fleet.hpp"
#include "scheduler/settled.hpp"

namespace wye::inline v0::scheduler {

/// A ring of the last settled jobs. Adding one allocates nothing: the memory of all entries is
/// reserved at once. The devices that were passed over are found when it is listed.
/// Threads: thread-safe. Its lock is a leaf, held for one entry at a time.
class RecentJobs {
 public:
  /// Throws: std::bad_alloc.
  explicit RecentJobs(std::size_t most) : most_(most) { ring_.reserve(most); }
  void add(const Settled& job) noexcept;
  /// Returns the jobs, the oldest first. Jobs that are added meanwhile may replace the oldest ones.
  std::vector<Placement> list(const pool::Fleet& devices) const;

 private:
  struct Tried {
    std::uint16_t device = 0;
    Candidate::Verdict verdict = Candidate::Verdict::passed;
    RefusalCode code = RefusalCode::none;
  };
  struct Entry {
    std::uint64_t number = 0;
    WorkloadType type;
    const Row* order = nullptr;
    Bytes size;
    Bytes bytes_transferred;
    JobTimes times;
    std::array<Tried, 8> tried;
    std::uint8_t tried_count = 0;
    std::uint8_t jobs_in_submission = 1;  // at most 64
    std::uint8_t jobs_in_launch = 1;
    Errc error{};  // zero: none
    std::array<char, 48> job;
    std::array<char, 32> tag;
  };

  static Placement placement_of(const Entry& entry, const pool::Fleet& devices);

  const std::size_t most_;
  mutable base::SpinLock lock_;
  std::vector<Entry> ring_;
  std::uint64_t added_ = 0;  // the job with number `n`, from 0, is at `n % most_`
};

}  // namespace wye::scheduler
