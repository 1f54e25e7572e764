#pragma once
/// Text formatting. Only this header uses the formatting library.
#include <fmt/core.h>
#include <wye/base/clock.hpp>
#include <wye/base/error.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace wye::inline v0::base {

std::string vtext(fmt::string_view format, fmt::format_args arguments);

/// Formats text: `text("Buffer size ({}) exceeds ...", n)`. The format is checked at compile time.
template <class... A>
std::string text(fmt::format_string<A...> format, A&&... arguments) {
  return vtext(format, fmt::make_format_args(arguments...));
}

inline double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }
inline double milliseconds(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

/// Returns " ('name')", or an empty text if `name` is empty.
std::string parenthesized(std::string_view name);

/// Returns a sentence without its full stop, for use inside another sentence.
std::string clause(std::string sentence);

/// Returns an error with the code `invalid_argument`.
inline Error invalid(std::string sentence, Place place = Place::here()) {
  return Error(Errc::invalid_argument, std::move(sentence), place);
}

}  // namespace wye::base
