#pragma once
/// The run times of jobs.
#include <wye/base/clock.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <unordered_map>

namespace wye::inline v0::scheduler {

/// The mean run times of the completed jobs of one kernel, with operands of one size to a power of
/// two, on equal devices. The latest ones count most.
/// Threads: under the mutex of its scheduler.
class RunTimes {
 public:
  /// Returns the mean of jobs of a program, whose operands have `bytes`, on the devices of `group`;
  /// zero: none has completed. It does not move. Null: there are too many means, and this one is
  /// not among them, or there is no memory for it.
  Duration* of(std::uint64_t program, std::uint16_t group, std::uint64_t bytes) noexcept {
    const auto known = means_.find(key(program, group, bytes));
    if (known != means_.end()) return &known->second;
    try {
      return means_.size() < most ? &means_[key(program, group, bytes)] : nullptr;
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  /// Returns the same mean; zero if it is not known.
  Duration find(std::uint64_t program, std::uint16_t group, std::uint64_t bytes) const noexcept {
    const auto known = means_.find(key(program, group, bytes));
    return known != means_.end() ? known->second : Duration::zero();
  }
  /// Adds the time that a completed job took.
  static void note(Duration& mean, Duration took) noexcept {
    mean = mean == Duration::zero() ? std::max(took, Duration(1)) : mean + (took - mean) / 8;
  }

 private:
  static std::uint64_t key(std::uint64_t program, std::uint16_t group, std::uint64_t bytes) noexcept {
    return program << 24 | std::uint64_t{group} << 8 | static_cast<std::uint64_t>(std::bit_width(bytes));
  }
  static constexpr std::size_t most = 65'536;
  std::unordered_map<std::uint64_t, Duration> means_;
};

}  // namespace wye::scheduler
