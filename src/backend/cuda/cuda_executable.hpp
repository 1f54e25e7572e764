#pragma once
/// A kernel that a context has loaded, or a function of the host that enqueues.
#include <wye/base/result.hpp>

#include <memory>

#include "backend/cuda/cuda_device.hpp"
#include "device/contract.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

/// Threads: thread-safe.
class CudaExecutable final : public device::ExecutableBase {
 public:
  /// Errors: unsupported (language, architecture, limit or feature), compile_failed, not_found (no such kernel in
  ///         the code), out_of_memory, device_lost.
  static Result<std::shared_ptr<CudaExecutable>> create(std::shared_ptr<CudaDevice> device,
                                                        const device::Artefact& artefact);
  CudaExecutable(std::shared_ptr<CudaDevice> device, const device::Artefact& artefact)
      : ExecutableBase(std::move(device), artefact), bytes_{artefact.code.size()} {}
  ~CudaExecutable() override;
  Bytes bytes() const noexcept override { return bytes_; }
  bool is_native() const noexcept { return function_ == nullptr; }
  CUfunction function() const noexcept { return function_; }

 private:
  Result<void> load(const device::Artefact& artefact);
  Result<void> check_limits();
  CudaDevice& cuda() const noexcept { return static_cast<CudaDevice&>(*device()); }
  Bytes bytes_;
  CUlibrary library_ = nullptr;
  CUfunction function_ = nullptr;
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
