#pragma once
/// What the system knows open files by.
#include <wye/base/config.hpp>

#include <optional>
#include <string>
#include <utility>

namespace wye {
inline namespace v0 {
namespace base {

/// A descriptor of the system's. It is closed once: by this, or by whoever it was released to.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  explicit operator bool() const noexcept { return number_ >= 0; }
  int number() const noexcept { return number_; }
  /// Leaves it to somebody else to close.
  int release() noexcept { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

/// Returns why the system does not open `count` further files now ("the process has as many files open as it may (1024)");
/// nothing if it does. Without it, a library that cannot be opened for this reason looks like a missing library.
std::optional<std::string> descriptor_shortage(unsigned count);

}  // namespace base
}  // namespace v0
}  // namespace wye
