#pragma once
/// Buffers: memory of a device's pool, or pinned memory of the host.
#include <wye/base/result.hpp>

#include <memory>

#include "backend/cuda/cuda_device.hpp"
#include "device/buffer.hpp"

namespace wye::inline v0::cuda {

class CudaBuffer final : public device::BufferBase {
 public:
  /// Errors: out_of_memory, over_budget, device_lost.
  static Result<std::shared_ptr<device::BufferBase>> create(std::shared_ptr<CudaDevice> device,
                                                            const device::BufferRequest& request);
  /// Creates a buffer over memory of the application. The destructor calls `release`.
  static std::shared_ptr<device::BufferBase> adopt(std::shared_ptr<CudaDevice> device,
                                                   const NativeMemory& memory, Release release);
  using BufferBase::BufferBase;
  ~CudaBuffer() override;
  std::uint64_t address() const noexcept override { return address_; }
  std::byte* host() const noexcept override { return host_; }

 private:
  Result<void> allocate_memory(const device::BufferRequest& request);
  CudaDevice& cuda() const noexcept { return static_cast<CudaDevice&>(*device()); }
  CUdeviceptr address_ = 0;
  std::byte* host_ = nullptr;
  bool is_borrowed_ = false;  // the application frees it
  Release release_;
};

}  // namespace wye::cuda
