#include "kernel/compilers/diagnostics.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace wye::inline v0::kernel {

namespace {

/// Limits of an error: the messages in its description, and its diagnostics.
constexpr std::size_t most_errors = 20;
constexpr std::size_t most_diagnostics = 1000;

}  // namespace

Error compile_error(const std::string& kernel, std::vector<Diagnostic> errors) {
  const std::size_t count = errors.size();
  errors.resize(std::min(count, most_diagnostics));
  std::vector<std::string> others;
  for (std::size_t i = 1; i < count && i < most_errors; ++i) others.push_back(to_string(errors[i]));
  if (count > most_errors) others.push_back(base::text("and {} more errors", count - most_errors));
  const std::string first = to_string(errors.front());
  Error error(Errc::compile_failed,
              base::text("Kernel '{}' does not compile: {}{}", kernel, first, first.back() == '.' ? "" : "."),
              std::move(errors));
  for (std::string& other : others) error = error.with_context(std::move(other));
  return error;
}

std::optional<std::uint32_t> small_number(std::string_view digits) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (digits.empty() || digits.size() > 9 || !std::all_of(digits.begin(), digits.end(), is_digit)) return {};
  std::uint32_t value = 0;
  for (const char c : digits) value = value * 10 + static_cast<std::uint32_t>(c - '0');
  return value;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

}  // namespace wye::kernel
