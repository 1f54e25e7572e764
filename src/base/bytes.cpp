#include <wye/base/bytes.hpp>

#include <array>

#include "base/text.hpp"

namespace wye::inline v0 {

std::string to_string(Bytes bytes) {
  if (bytes.count == 1) return "1 byte";
  if (bytes.count < 1024) return base::text("{} bytes", bytes.count);
  constexpr std::array units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double size = static_cast<double>(bytes.count) / 1024;
  std::size_t unit = 0;
  // 1023.5 KiB would be shown as 1024 KiB: it is 1.00 MiB.
  while (size >= 1023.5 && unit + 1 < units.size()) {
    size /= 1024;
    ++unit;
  }
  const int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return base::text("{:.{}f} {}", size, decimals, units[unit]);
}

}  // namespace wye
