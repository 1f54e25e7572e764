#pragma once
/// A kernel with its arguments: the smallest piece of work.
#include <wye/base/extent.hpp>
#include <wye/device/operand.hpp>

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace wye {
inline namespace v0 {

namespace device {
class Program;
}

/// The program of a kernel, and those of kernels that do the same (`fastest_of`).
/// Threads: thread-compatible; copies share them.
class Programs {
 public:
  Programs(std::shared_ptr<const device::Program> first)
      : first_(std::move(first)) {}  // NOLINT: most have one
  Programs(std::shared_ptr<const device::Program> first,
           std::vector<std::shared_ptr<const device::Program>> others)
      : first_(std::move(first)),
        // Not by make_shared, see WYE_LOCAL.
        others_(new std::vector<std::shared_ptr<const device::Program>>(std::move(others))) {}

  std::size_t size() const noexcept { return 1 + (others_ ? others_->size() : 0); }
  const std::shared_ptr<const device::Program>& operator[](std::size_t i) const {
    return i == 0 ? first_ : (*others_)[i - 1];
  }

 private:
  std::shared_ptr<const device::Program> first_;
  std::shared_ptr<const std::vector<std::shared_ptr<const device::Program>>> others_;  ///< null: none
};

/// A kernel, its arguments, and the grid to run it over.
/// Threads: thread-compatible. Host memory among the arguments is borrowed until the job has settled.
class WYE_API Call {
 public:
  Call(Programs programs, Arguments arguments)
      : programs_(std::move(programs)), arguments_(std::move(arguments)), items_(default_items()) {}

  /// The grid, in items. Without this: as many as the first written operand has elements.
  Call& over(Extent3 items) & { return items_ = items, *this; }
  Call&& over(Extent3 items) && { return items_ = items, std::move(*this); }

  const Programs& programs() const noexcept { return programs_; }
  const Arguments& arguments() const noexcept { return arguments_; }
  Arguments& arguments() noexcept { return arguments_; }
  Extent3 items() const noexcept { return items_; }
  std::string_view name() const noexcept;

 private:
  Extent3 default_items() const noexcept;
  Programs programs_;
  Arguments arguments_;
  Extent3 items_;
};

}  // namespace v0
}  // namespace wye
