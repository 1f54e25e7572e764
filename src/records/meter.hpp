#pragma once
/// The rates of a set.
#include <wye/base/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace wye::inline v0::records {

/// Measures records per second over the last seconds.
/// Threads: one thread at a time.
class Meter {
 public:
  explicit Meter(std::size_t counts) : history_(counts) {}
  /// Records a count, which rises only, and returns its rate.
  double rate(std::size_t which, std::uint64_t count, Instant now);

 private:
  std::vector<std::deque<std::pair<Instant, std::uint64_t>>> history_;
};

}  // namespace wye::records
