#include "json.hpp"

#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "mapped_file.hpp"

namespace wye::inline v0::models {

Result<Json> parse_json(std::string_view text, const std::string& subject) {
  const auto no_json = [&](std::size_t at) {
    return Error(Errc::corrupt, subject + " is no JSON: the error is at byte " + std::to_string(at) + " of " +
                                    std::to_string(text.size()) + ".");
  };
  // JSON has no zero byte. The parser takes it for the end of the text.
  if (const auto zero = text.find('\0'); zero != text.npos) return no_json(zero + 1);
  std::vector<std::set<std::string>> keys;  // of the open objects
  std::optional<std::string> twice;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !twice) {
      auto name = parsed.get<std::string>();
      if (!keys.back().insert(name).second) twice = std::move(name);
    }
    return true;
  };
  try {
    Json parsed = Json::parse(text.begin(), text.end(), watch);
    if (twice) return Error(Errc::corrupt, subject + " names the key '" + *twice + "' twice in one object.");
    return parsed;
  } catch (const Json::parse_error& error) {
    return no_json(error.byte);
  }
}

Result<Json> read_json(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return std::move(file).error();
  const auto bytes = file->bytes();
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "File '" + path + "'");
}

}  // namespace wye::models
