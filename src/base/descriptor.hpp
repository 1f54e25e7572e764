#pragma once
/// File descriptors.
#include <wye/base/config.hpp>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

namespace wye::inline v0::base {

/// Repeats `call` until no signal interrupts it.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// Owns a file descriptor and closes it on destruction.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  explicit operator bool() const noexcept { return number_ >= 0; }
  int number() const noexcept { return number_; }
  /// Transfers ownership to the caller.
  int release() noexcept { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

/// Returns why the system does not open `count` further files now ("the process has reached its
/// limit of open files (1024)"), or nothing if it does. The loader reports such a shortage as a
/// missing library.
std::optional<std::string> descriptor_shortage(unsigned count);

}  // namespace wye::base
