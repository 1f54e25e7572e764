#pragma once
/// The calendar time, for records that one process writes and another reads.
#include <chrono>
#include <cstdint>

namespace wye::inline v0::base {

/// Returns the minutes since 1970. The machine's clock may be set back.
inline std::uint32_t minutes_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::minutes>(now).count());
}

}  // namespace wye::base
