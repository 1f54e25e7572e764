#pragma once
/// A kernel made ready for one device.
#include <wye/base/config.hpp>
#include <wye/device/schema.hpp>

#include <memory>
#include <string>

namespace wye {
inline namespace v0 {

namespace device {
class ExecutableBase;
}

/// A kernel compiled for, and living on, one device. Copies share it.
/// Threads: thread-safe.
class WYE_API Executable {
 public:
  Executable() = default;
  explicit Executable(std::shared_ptr<device::ExecutableBase> base) : base_(std::move(base)) {}
  explicit operator bool() const noexcept { return base_ != nullptr; }
  const std::string& name() const;
  const ParamSchema& schema() const;
  const std::shared_ptr<device::ExecutableBase>& base() const noexcept { return base_; }

 private:
  std::shared_ptr<device::ExecutableBase> base_;
};

}  // namespace v0
}  // namespace wye
