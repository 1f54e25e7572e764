#pragma once
/// The last settled jobs, as data.
#include <wye/scheduler/scheduler.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pool/fleet.hpp"
#include "scheduler/settled.hpp"

namespace wye::inline v0::scheduler {

/// A ring of the last settled jobs. Adding one allocates nothing: the memory of all entries is
/// reserved at once. The devices that were passed over are found when it is listed.
/// Threads: under the lock of its scheduler.
class RecentJobs {
 public:
  /// Throws: std::bad_alloc.
  explicit RecentJobs(std::size_t most) : most_(most) { ring_.reserve(most); }
  void add(const Settled& job) noexcept;
  /// Returns the jobs, the oldest first.
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

  const std::size_t most_;
  std::vector<Entry> ring_;
  std::size_t oldest_ = 0;
};

}  // namespace wye::scheduler
