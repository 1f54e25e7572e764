#pragma once
/// JSON as text: each function gives one value.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace document_network::json {

/// Bytes that are not UTF-8 become U+FFFD, each one.
std::string text(std::string_view value);
/// JSON has no infinity and no NaN: these become the largest number there is.
std::string number(double value);
std::string number(std::size_t value);
std::string array(const std::vector<std::string>& values);
std::string object(const std::vector<std::pair<std::string, std::string>>& members);

}  // namespace document_network::json
