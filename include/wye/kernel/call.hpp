#pragma once
/// A kernel with its arguments: the smallest piece of work.
#include <wye/base/extent.hpp>
#include <wye/device/operand.hpp>

#include <memory>
#include <string_view>
#include <utility>

namespace wye {
inline namespace v0 {

namespace device {
class Program;
}

/// A kernel, its arguments, and the grid to run it over.
/// Threads: thread-compatible. Host memory among the arguments is borrowed until the job has settled.
class WYE_API Call {
 public:
  Call(std::shared_ptr<const device::Program> program, Arguments arguments)
      : program_(std::move(program)), arguments_(std::move(arguments)), items_(default_items()) {}

  /// The grid, in items. Without this: as many as the first written operand has elements.
  Call& over(Extent3 items) & { return items_ = items, *this; }
  Call&& over(Extent3 items) && { return items_ = items, std::move(*this); }

  const std::shared_ptr<const device::Program>& program() const noexcept { return program_; }
  const Arguments& arguments() const noexcept { return arguments_; }
  Arguments& arguments() noexcept { return arguments_; }
  Extent3 items() const noexcept { return items_; }
  std::string_view name() const noexcept;

 private:
  Extent3 default_items() const noexcept;
  std::shared_ptr<const device::Program> program_;
  Arguments arguments_;
  Extent3 items_;
};

}  // namespace v0
}  // namespace wye
