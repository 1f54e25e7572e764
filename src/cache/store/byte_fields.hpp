#pragma once
/// Fields of this room's files, the same on every machine.
#include <wye/base/extent.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wye {
inline namespace v0 {
namespace cache {

/// Appends fields: numbers in little endian, texts and lists after their length.
class ByteWriter {
 public:
  void number(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) out_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  void bytes(std::span<const std::byte> value) { out_.insert(out_.end(), value.begin(), value.end()); }
  void list(std::span<const std::byte> value) {
    number(value.size(), 8);
    bytes(value);
  }
  void text(std::string_view value) { list(std::as_bytes(std::span(value))); }
  template <class Enum>
  void word(Enum value) {
    number(static_cast<std::uint64_t>(value), 1);
  }
  void extent(Extent3 value) {
    number(value.x, 8);
    number(value.y, 8);
    number(value.z, 8);
  }
  std::vector<std::byte> take() { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
};

/// Reads the output of `ByteWriter`. After the first missing field, all fields read as zero and `good` is false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::uint64_t number(unsigned bytes) {
    std::uint64_t value = 0;
    const auto field = take(bytes);
    for (std::size_t i = 0; i < field.size(); ++i)
      value |= std::to_integer<std::uint64_t>(field[i]) << (8 * i);
    return value;
  }
  std::uint32_t number32() { return static_cast<std::uint32_t>(number(4)); }
  std::span<const std::byte> take(std::uint64_t bytes) {
    if (bytes > rest_.size()) good_ = false, rest_ = {};
    if (!good_) return {};
    const auto field = rest_.first(static_cast<std::size_t>(bytes));
    rest_ = rest_.subspan(field.size());
    return field;
  }
  std::span<const std::byte> list() { return take(number(8)); }
  std::string text() {
    const auto field = list();
    return std::string(reinterpret_cast<const char*>(field.data()), field.size());
  }
  template <class Enum>
  Enum word(Enum last) {
    const std::uint64_t value = number(1);
    if (value > static_cast<std::uint64_t>(last)) good_ = false;
    return good_ ? static_cast<Enum>(value) : Enum{};
  }
  Extent3 extent() {
    const std::uint64_t x = number(8), y = number(8);
    return Extent3(x, y, number(8));
  }
  /// Returns the number of following entries, each of at least `least` bytes; at most as many as the remaining bytes can hold.
  std::size_t count(std::size_t least) {
    const std::uint64_t n = number(8);
    if (n > rest_.size() / least) good_ = false;
    return good_ ? static_cast<std::size_t>(n) : 0;
  }
  bool good() const { return good_; }
  bool at_end() const { return good_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool good_ = true;
};

}  // namespace cache
}  // namespace v0
}  // namespace wye
