#include "json.hpp"

#include <cmath>
#include <cstdio>
#include <limits>

#include "text.hpp"

namespace document_network::json {
namespace {

std::string enclosed(char open, const std::vector<std::string>& parts, char close) {
  std::string list(1, open);
  for (const std::string& part : parts) {
    if (list.size() > 1) list += ", ";
    list += part;
  }
  return list + close;
}

}  // namespace

std::string text(std::string_view value) {
  std::string quoted = "\"";
  for (std::size_t at = 0; at < value.size();) {
    const CodePoint c = code_point(value, at);
    at += c.bytes;
    if (!c.valid) {
      append_utf8(quoted, 0xFFFD);
    } else if (c.value == '"' || c.value == '\\') {
      quoted += '\\';
      append_utf8(quoted, c.value);
    } else if (c.value < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c.value));
      quoted += escape;
    } else {
      append_utf8(quoted, c.value);
    }
  }
  return quoted + '"';
}

std::string number(double value) {
  if (!std::isfinite(value))
    value = std::signbit(value) ? std::numeric_limits<double>::lowest() : std::numeric_limits<double>::max();
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.9g", value);
  return digits;
}

std::string number(std::size_t value) { return std::to_string(value); }

std::string array(const std::vector<std::string>& values) { return enclosed('[', values, ']'); }

std::string object(const std::vector<std::pair<std::string, std::string>>& members) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : members) parts.push_back(text(name) + ": " + value);
  return enclosed('{', parts, '}');
}

}  // namespace document_network::json
