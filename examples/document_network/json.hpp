#pragma once
/// JSON as text: each function returns one value.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace document_network::json {

/// Replaces each byte that is not UTF-8 by U+FFFD.
std::string text(std::string_view value);
/// JSON has no infinity and no NaN: both become the largest finite number.
std::string number(double value);
std::string number(std::size_t value);
std::string array(const std::vector<std::string>& values);
std::string object(const std::vector<std::pair<std::string, std::string>>& members);

}  // namespace document_network::json
