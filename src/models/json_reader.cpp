#include "json_reader.hpp"

#include <algorithm>
#include <utility>

namespace wye::inline v0::models {
namespace {

std::string join(const std::string& path, std::string_view key) {
  return path.empty() ? shown(key) : path + "." + shown(key);
}

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::size_t limit = 60;
  if (text.size() <= limit) return std::string(text);
  std::size_t end = limit;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string shown(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

JsonReader::JsonReader(const Json& root, std::string file) : file_(std::move(file)), root_{&root, ""} {
  if (!root.is_object()) fail(Errc::corrupt, "File '" + file_ + "' has no JSON object.");
}

void JsonReader::fail(Errc code, std::string sentence) {
  if (!error_) error_ = Error(code, std::move(sentence));
}

std::string JsonReader::named(const std::string& path) const {
  return "Key '" + path + "' of file '" + file_ + "'";
}

JsonPlace JsonReader::find(const JsonPlace& object, std::string_view key) {
  if (!typed(object, object.value && object.value->is_object(), "an object")) return {};
  const auto found = object.value->find(key);
  if (found == object.value->end() || found->is_null()) return {};
  return {&*found, join(object.path, key)};
}

JsonPlace JsonReader::at(const JsonPlace& object, std::string_view key) {
  if (!typed(object, object.value && object.value->is_object(), "an object")) return {};
  const auto found = object.value->find(key);
  if (found != object.value->end()) return {&*found, join(object.path, key)};
  fail(Errc::corrupt, "File '" + file_ + "' has no key '" + join(object.path, key) + "'.");
  return {};
}

std::vector<JsonPlace> JsonReader::elements(const JsonPlace& array, std::optional<std::size_t> count) {
  std::vector<JsonPlace> result;
  if (!typed(array, array.value && array.value->is_array(), "an array")) return result;
  if (count && array.value->size() != *count) {
    fail(Errc::corrupt, named(array.path) + " has " + std::to_string(array.value->size()) +
                            " elements; it must have " + std::to_string(*count) + ".");
    return result;
  }
  for (const Json& one : *array.value)
    result.push_back({&one, array.path + "[" + std::to_string(result.size()) + "]"});
  return result;
}

std::string JsonReader::text(const JsonPlace& place) {
  if (!typed(place, place.value && place.value->is_string(), "a string")) return {};
  return *place.value->get_ptr<const Json::string_t*>();
}

bool JsonReader::boolean(const JsonPlace& place) {
  return typed(place, place.value && place.value->is_boolean(), "true or false") &&
         *place.value->get_ptr<const Json::boolean_t*>();
}

std::uint32_t JsonReader::number(const JsonPlace& place, std::uint32_t least, std::uint32_t most) {
  if (!typed(place, place.value && place.value->is_number_integer(), "an integer")) return 0;
  const auto value =
      place.value->is_number_unsigned() ? place.value->get<std::uint64_t>() : ~std::uint64_t{0};
  if (value >= least && value <= most) return static_cast<std::uint32_t>(value);
  fail(Errc::corrupt, named(place.path) + " is " + place.value->dump() + "; it must be from " +
                          std::to_string(least) + " to " + std::to_string(most) + ".");
  return 0;
}

std::string JsonReader::choice(const JsonPlace& place, std::initializer_list<std::string_view> supported) {
  const std::string found = place.value && place.value->is_null() ? place.value->type_name() : text(place);
  if (error_ || std::ranges::find(supported, found) != supported.end()) return found;
  std::string list;
  for (const auto one : supported) list += (list.empty() ? "'" : ", '") + std::string(one) + "'";
  fail(Errc::unsupported, named(place.path) + " is '" + shown(found) + "'; supported: " + list + ".");
  return {};
}

std::string JsonReader::type(const JsonPlace& object, std::initializer_list<std::string_view> supported) {
  if (object.value && object.value->is_null()) return choice(object, supported);
  return choice(at(object, "type"), supported);
}

bool JsonReader::typed(const JsonPlace& place, bool right, std::string_view wanted) {
  if (error_ || !place.value) return false;
  if (!right)
    fail(Errc::corrupt, named(place.path) + " is of type " + place.value->type_name() + "; it must be " +
                            std::string(wanted) + ".");
  return right;
}

}  // namespace wye::models
