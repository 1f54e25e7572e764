#pragma once
/// Programs of kernels whose builds and refusals a test changes.
#include <wye/kernel/kernel.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/internals.hpp"
#include "device/provider.hpp"

namespace wye::test {

/// The program of a kernel under another object. Tests override the functions that they count or
/// change.
class WrappedProgram : public device::Program {
 public:
  explicit WrappedProgram(const AnyKernel& kernel) : inner_(base::program_of(kernel)) {}
  std::string_view name() const noexcept override { return inner_->name(); }
  const ParamSchema& schema() const noexcept override { return inner_->schema(); }
  std::uint64_t id() const noexcept override { return inner_->id(); }
  const device::ProgramDigests& digests() const noexcept override { return inner_->digests(); }
  std::optional<Error> refusal(const device::DeviceBase& device) const override {
    return inner_->refusal(device);
  }
  Result<Digest> key(const device::DeviceBase& device) const override { return inner_->key(device); }
  bool storable(const device::DeviceBase& device) const noexcept override { return inner_->storable(device); }
  Result<device::Artefact> build(const device::DeviceBase& device) const override {
    return inner_->build(device);
  }

 private:
  std::shared_ptr<const device::Program> inner_;
};

}  // namespace wye::test
