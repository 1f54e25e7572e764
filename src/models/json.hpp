#pragma once
#include <wye/base/result.hpp>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace wye::inline v0::models {

using Json = nlohmann::json;

/// Parses JSON whose objects name no key twice.
/// Errors: corrupt, with `subject`, which begins the sentence ("File 'a/config.json'"), and the byte.
Result<Json> parse_json(std::string_view text, const std::string& subject);

/// Reads and parses a file. Errors: those of `MappedFile::open`; corrupt.
Result<Json> read_json(const std::string& path);

}  // namespace wye::models
