#pragma once
/// Stamps as events with a time.
#include <memory>
#include <optional>
#include <utility>

#include "backend/cuda/cuda_events.hpp"
#include "device/stamps.hpp"

namespace wye::inline v0::cuda {

/// Times are counted from `CudaEvents::origin`. The driver reports them as floats in milliseconds:
/// a duration to half a microsecond, a point to 2^-24 of the time since the origin.
/// Threads: thread-safe.
class CudaStamps final : public device::StampsBase {
 public:
  /// Errors: out_of_memory, device_lost, those of the driver.
  static Result<std::shared_ptr<device::StampsBase>> create(std::shared_ptr<CudaDevice> device);
  CudaStamps(std::shared_ptr<CudaDevice> device, CUevent origin, EventHandle begin, EventHandle end) noexcept;
  CUevent begin() const noexcept { return begin_->handle; }
  CUevent end() const noexcept { return end_->handle; }

 private:
  std::optional<device::StampedTimes> times() noexcept override;
  const CUevent origin_;
  const EventHandle begin_;
  const EventHandle end_;
};

}  // namespace wye::cuda
