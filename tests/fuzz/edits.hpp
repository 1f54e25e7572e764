#pragma once
/// Inputs as edits of valid data: they get further into a reader than noise does.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace wye::test {

/// Reads a fuzzer's input from its beginning; zeros follow its end.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}

  template <class T>
  T take() {
    T value{};
    const std::size_t n = rest_.size() < sizeof(T) ? rest_.size() : sizeof(T);
    if (n > 0) std::memcpy(&value, rest_.data(), n);
    rest_ = rest_.subspan(n);
    return value;
  }
  bool empty() const { return rest_.empty(); }
  std::span<const std::uint8_t> rest() const { return rest_; }

 private:
  std::span<const std::uint8_t> rest_;
};

/// Returns `valid` with the edits of `input`: until it is used up, one of {set, flip a bit, copy
/// from elsewhere, cut off, insert}.
template <class T>
std::vector<T> edited(std::vector<T> valid, Input& input) {
  while (!input.empty() && !valid.empty()) {
    const auto what = input.take<std::uint8_t>();
    const std::size_t at = input.take<std::uint16_t>() % valid.size();
    switch (what % 8) {
      case 0: valid.resize(at); break;
      case 1: valid.insert(valid.begin() + static_cast<std::ptrdiff_t>(at), input.take<T>()); break;
      case 2: valid[at] = valid[input.take<std::uint16_t>() % valid.size()]; break;
      case 3:
        valid[at] = static_cast<T>(static_cast<std::uint64_t>(valid[at]) ^
                                   1u << input.take<std::uint8_t>() % (8 * sizeof(T)));
        break;
      case 4: valid.erase(valid.begin() + static_cast<std::ptrdiff_t>(at)); break;
      default: valid[at] = input.take<T>();
    }
  }
  return valid;
}

}  // namespace wye::test
