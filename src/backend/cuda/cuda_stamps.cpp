#include "backend/cuda/cuda_stamps.hpp"

#include "backend/cuda/cuda_device.hpp"
#include "base/process.hpp"

namespace wye::inline v0::cuda {

CudaStamps::CudaStamps(std::shared_ptr<CudaDevice> device, CUevent origin, EventHandle begin,
                       EventHandle end) noexcept
    : StampsBase(std::move(device)), origin_(origin), begin_(std::move(begin)), end_(std::move(end)) {}

Result<std::shared_ptr<device::StampsBase>> CudaStamps::create(std::shared_ptr<CudaDevice> device) {
  if (const Error* lost = device->lost()) return *lost;
  const CurrentContext current(*device);
  if (!current) return current.error();
  auto origin = device->events().origin();
  if (!origin) return std::move(origin).error();
  auto begin = device->events().take_timed();
  if (!begin) return std::move(begin).error();
  auto end = device->events().take_timed();
  if (!end) return std::move(end).error();
  return std::shared_ptr<device::StampsBase>(
      base::make_own<CudaStamps>(std::move(device), *origin, *std::move(begin), *std::move(end)));
}

std::optional<device::StampedTimes> CudaStamps::times() noexcept {
  auto& device = static_cast<CudaDevice&>(*this->device());
  const CurrentContext current(device);
  if (!current) return std::nullopt;
  const auto elapsed = [&](CUevent from, CUevent to) -> std::optional<Duration> {
    float milliseconds = 0;
    const CUresult r = device.cu.EventElapsedTime(&milliseconds, from, to);
    if (r == CUDA_SUCCESS) return Duration(static_cast<Duration::rep>(double{milliseconds} * 1e6));
    if (r != CUDA_ERROR_NOT_READY) device.lose_if_fatal(r, "cuEventElapsedTime");
    return std::nullopt;
  };
  const auto from = elapsed(origin_, begin());
  const auto taken = from ? elapsed(begin(), end()) : std::nullopt;
  if (!taken || *taken < Duration::zero()) return std::nullopt;
  return device::StampedTimes{.begin = *from, .end = *from + *taken, .clock = device::StampClock::device};
}

}  // namespace wye::cuda
