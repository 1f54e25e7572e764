#pragma once
/// Fields of files, the same on every machine.
#include <wye/base/clock.hpp>
#include <wye/base/extent.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wye::inline v0::base {

/// Appends fields: numbers in little endian, texts and lists after their length. `ByteReader` has
/// the same functions, so that one template describes a record for both.
class ByteWriter {
 public:
  template <class Number>
  void number(Number value, unsigned bytes = sizeof(Number)) {
    for (unsigned i = 0; i < bytes; ++i)
      out_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
  void bytes(std::span<const std::byte> value) { out_.insert(out_.end(), value.begin(), value.end()); }
  void list(std::span<const std::byte> value) {
    number(value.size());
    bytes(value);
  }
  void text(std::string_view value) { list(std::as_bytes(std::span(value))); }
  template <class Enum>
  void word(Enum value, Enum) {
    number(value, 1);
  }
  void duration(Duration value) { number(value.count()); }
  void extent(const Extent3& value) {
    number(value.x);
    number(value.y);
    number(value.z);
  }
  template <class T, class F>
  void each(const std::vector<T>& values, std::size_t, F field) {
    number(values.size());
    for (const T& value : values) field(value);
  }
  /// Whether the fields at the end of a record follow.
  bool more(bool is_given) const { return is_given; }
  std::vector<std::byte> take() { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
};

/// Reads the output of `ByteWriter`. After the first missing field, all fields read as zero and
/// `at_end` is false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class Number>
  void number(Number& value, unsigned bytes = sizeof(Number)) {
    std::uint64_t read = 0;
    const auto field = take(bytes);
    for (std::size_t i = 0; i < field.size(); ++i)
      read |= std::to_integer<std::uint64_t>(field[i]) << (8 * i);
    value = static_cast<Number>(read);
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    number(value);
    return value;
  }
  std::span<const std::byte> take(std::uint64_t bytes) {
    if (bytes > rest_.size()) good_ = false, rest_ = {};
    if (!good_) return {};
    const auto field = rest_.first(static_cast<std::size_t>(bytes));
    rest_ = rest_.subspan(field.size());
    return field;
  }
  void bytes(std::span<std::byte> value) { std::ranges::copy(take(value.size()), value.begin()); }
  void list(std::vector<std::byte>& value) {
    const auto field = take(number());
    value.assign(field.begin(), field.end());
  }
  void text(std::string& value) {
    const auto field = take(number());
    value.assign(reinterpret_cast<const char*>(field.data()), field.size());
  }
  template <class Enum>
  void word(Enum& value, Enum last) {
    std::uint8_t read = 0;
    number(read);
    if (read > static_cast<std::uint8_t>(last)) good_ = false;
    value = good_ ? static_cast<Enum>(read) : Enum{};
  }
  void duration(Duration& value) { value = Duration(static_cast<Duration::rep>(number())); }
  void extent(Extent3& value) {
    number(value.x);
    number(value.y);
    number(value.z);
  }
  /// Reads values of at least `least` bytes: at most as many as the remaining bytes can hold.
  template <class T, class F>
  void each(std::vector<T>& values, std::size_t least, F field) {
    const std::uint64_t count = number();
    if (count > rest_.size() / least) good_ = false;
    values.resize(good_ ? static_cast<std::size_t>(count) : 0);
    for (T& value : values) field(value);
  }
  bool more(bool) const { return !at_end(); }
  bool at_end() const { return good_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool good_ = true;
};

}  // namespace wye::base
