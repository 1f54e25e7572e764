#pragma once
/// Making sentences. The one place that knows the formatting library.
#include <fmt/core.h>

#include <string>
#include <string_view>

namespace wye {
inline namespace v0 {
namespace base {

std::string vtext(fmt::string_view format, fmt::format_args arguments);

/// `text("Buffer size ({}) exceeds ...", n)`: checked at compile time, formatted out of line.
template <class... A>
std::string text(fmt::format_string<A...> format, A&&... arguments) {
  return vtext(format, fmt::make_format_args(arguments...));
}

}  // namespace base
}  // namespace v0
}  // namespace wye
