#pragma once
/// Making sentences. The one place that knows the formatting library.
#include <fmt/core.h>
#include <wye/base/error.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace wye {
inline namespace v0 {
namespace base {

std::string vtext(fmt::string_view format, fmt::format_args arguments);

/// `text("Buffer size ({}) exceeds ...", n)`: checked at compile time, formatted out of line.
template <class... A>
std::string text(fmt::format_string<A...> format, A&&... arguments) {
  return vtext(format, fmt::make_format_args(arguments...));
}

/// " ('name')"; nothing where there is no name.
std::string parenthesized(std::string_view name);

/// A sentence as a part of another: without its full stop.
std::string clause(std::string sentence);

/// What a caller gave is wrong, in one sentence.
inline Error invalid(std::string sentence, Place place = Place::here()) {
  return Error(Errc::invalid_argument, std::move(sentence), place);
}

}  // namespace base
}  // namespace v0
}  // namespace wye
