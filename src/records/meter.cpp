#include "meter.hpp"

#include <chrono>

namespace wye::inline v0::records {

double Meter::rate(std::size_t which, std::uint64_t count, Instant now) {
  auto& history = history_[which];
  history.emplace_back(now, count);
  // The oldest sample is from 5 s ago, or the last one before that.
  while (history.size() > 2 && now - history[1].first >= std::chrono::seconds(5)) history.pop_front();
  const auto& [since, before] = history.front();
  const double seconds = std::chrono::duration<double>(now - since).count();
  return seconds > 0 ? static_cast<double>(count - before) / seconds : 0;
}

}  // namespace wye::records
