#pragma once
#include <wye/base/error.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json.hpp"

namespace wye::inline v0::models {

/// Returns the beginning of a text of a file, for an error.
std::string shown(std::string_view text);
/// Returns "[2, 3]".
std::string shown(std::span<const std::uint64_t> shape);

/// A value of a file and the path of keys to it. Without a value, the key is absent, or an error was
/// found before.
struct JsonPlace {
  const Json* value = nullptr;
  std::string path;
};

/// Reads values of one file and keeps the first error. After an error, values are empty.
/// Threads: one thread at a time.
class JsonReader {
 public:
  /// Tokens and dimensions are below this limit.
  static constexpr std::uint32_t number_limit = std::uint32_t{1} << 31;

  /// `root` must outlive the reader.
  JsonReader(const Json& root, std::string file);

  const std::string& file() const { return file_; }
  const std::optional<Error>& error() const { return error_; }
  void fail(Errc code, std::string sentence);
  /// Returns "Key 'a.b' of file 'c'".
  std::string named(const std::string& path) const;

  JsonPlace root() const { return error_ ? JsonPlace{} : root_; }
  /// Returns the value of a key, which may be absent or null.
  JsonPlace find(const JsonPlace& object, std::string_view key);
  /// Returns the value of a key, which must be there.
  JsonPlace at(const JsonPlace& object, std::string_view key);
  /// Returns the elements of an array of `count`; of any number without `count`.
  std::vector<JsonPlace> elements(const JsonPlace& array, std::optional<std::size_t> count = {});
  std::string text(const JsonPlace& place);
  bool boolean(const JsonPlace& place);
  std::uint32_t number(const JsonPlace& place, std::uint32_t least = 0,
                       std::uint32_t most = number_limit - 1);
  /// Returns the string at `place`, which must be one of `supported`.
  std::string choice(const JsonPlace& place, std::initializer_list<std::string_view> supported);
  /// Requires that an object (a normalizer, say) has one of the supported types.
  std::string type(const JsonPlace& object, std::initializer_list<std::string_view> supported);

 private:
  bool typed(const JsonPlace& place, bool right, std::string_view wanted);

  const std::string file_;
  const JsonPlace root_;
  std::optional<Error> error_;
};

}  // namespace wye::models
