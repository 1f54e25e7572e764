#pragma once
/// The calendar time, for records that one process writes and another reads.
#include <wye/base/clock.hpp>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>

#include "base/text.hpp"

namespace wye::inline v0::base {

/// Returns the minutes since 1970. The machine's clock may be set back.
inline std::uint32_t minutes_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::minutes>(now).count());
}

/// Returns an instant by the calendar, as the machine's clock shows it now.
inline CalendarTime calendar_time(Instant at) noexcept {
  return CalendarTime::clock::now() +
         std::chrono::duration_cast<CalendarTime::duration>(at - Clock::steady().now());
}

/// Returns "2026-11-30T21:04:05.123456Z".
inline std::string utc(CalendarTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  const auto all = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch());
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return text("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", parts.tm_year + 1900, parts.tm_mon + 1,
              parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, all.count() % 1'000'000);
}

}  // namespace wye::base
