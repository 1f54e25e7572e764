#pragma once
/// The run times of jobs.
#include <wye/base/clock.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace wye::inline v0::scheduler {

/// The mean run times of the completed jobs of one kernel, with operands of one size to a power of
/// two, in one queue. The latest ones count most.
/// Threads: under the mutex of its scheduler.
class RunTimes {
 public:
  /// Returns the mean of jobs of a program, whose operands have `bytes`, in a queue; zero: none has
  /// completed. It stays where it is. Null: there are too many means, and this one is not among them.
  /// Throws: std::bad_alloc.
  Duration* of(std::uint64_t program, std::size_t queue, std::uint64_t bytes) {
    const std::uint64_t key = program << 24 | queue << 8 | static_cast<std::uint64_t>(std::bit_width(bytes));
    const auto known = means_.find(key);
    if (known != means_.end()) return &known->second;
    return means_.size() < most ? &means_[key] : nullptr;
  }
  /// Adds the time that a completed job took.
  static void note(Duration& mean, Duration took) noexcept {
    mean = mean == Duration::zero() ? std::max(took, Duration(1)) : mean + (took - mean) / 8;
  }

 private:
  static constexpr std::size_t most = 65'536;
  std::unordered_map<std::uint64_t, Duration> means_;
};

}  // namespace wye::scheduler
