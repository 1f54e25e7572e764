#include "base/text.hpp"

#include <fmt/format.h>

namespace wye::inline v0 {

std::string base::vtext(fmt::string_view format, fmt::format_args arguments) {
  return fmt::vformat(format, arguments);
}

std::string base::parenthesized(std::string_view name) {
  return name.empty() ? std::string() : text(" ('{}')", name);
}

std::string base::clause(std::string sentence) {
  if (!sentence.empty() && sentence.back() == '.') sentence.pop_back();
  return sentence;
}

}  // namespace wye
