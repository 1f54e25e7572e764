#pragma once
/// Sentences.
#include <cstdint>
#include <string>
#include <string_view>

namespace wye::inline v0::records {

inline std::string piece(std::string_view text) { return std::string(text); }
template <class Number>
requires std::is_integral_v<Number> std::string piece(Number value) { return std::to_string(value); }

/// Joins texts and numbers.
template <class... P>
std::string text(const P&... pieces) {
  return (piece(pieces) + ...);
}

/// Returns "1,000,000".
std::string grouped(std::uint64_t number);

/// Returns "41.2 s", with one decimal.
std::string seconds(double value);

}  // namespace wye::records
