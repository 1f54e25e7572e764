#include "backend/cpu/cpu_device.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "backend/cpu/cpu_lane.hpp"
#include "base/host_info.hpp"
#include "base/process.hpp"
#include "base/sizes.hpp"
#include "base/text.hpp"
#include "device/host_stamps.hpp"
#include "device/host_timeline.hpp"

namespace wye::inline v0::cpu {
namespace {

using namespace device;

class CpuBuffer final : public BufferBase {
 public:
  static Result<std::shared_ptr<BufferBase>> make(std::shared_ptr<CpuDevice> device,
                                                  const BufferRequest& request, MemoryCharge charge) {
    const Bytes bytes = request.bytes;
    auto buffer = base::make_own<CpuBuffer>(device, bytes, std::move(charge));
    buffer->block_ = device->host_memory().allocate(bytes.count, request.is_overwritten);
    if (buffer->block_.memory) return std::shared_ptr<BufferBase>(std::move(buffer));
    const AdapterInfo& info = device->info();
    const Bytes held = device->silicon()->account()->held() - bytes;
    const base::Sizes size(bytes, info.memory - std::min(held, info.memory));
    return Error(Errc::out_of_memory,
                 base::text("Buffer size ({}) exceeds the available memory of '{}' ({} of {} in use).",
                            size(bytes), info.id, size(held), size(info.memory)));
  }

  using BufferBase::BufferBase;
  ~CpuBuffer() override {
    if (block_.memory) static_cast<CpuDevice&>(*device()).host_memory().free(block_);
  }
  std::uint64_t address() const noexcept override { return reinterpret_cast<std::uintptr_t>(block_.memory); }
  std::byte* host() const noexcept override { return block_.memory; }

 private:
  HostBlock block_;
};

}  // namespace

CpuDevice::CpuDevice(AdapterInfo info, std::shared_ptr<base::Team> team, Bytes kept_memory)
    : DeviceBase(std::move(info)), team_(std::move(team)), memory_(kept_memory) {}

std::span<const std::string_view> CpuDevice::languages() const noexcept {
  static constexpr std::array<std::string_view, 1> host = {"host"};
  return host;
}

MemoryInfo CpuDevice::memory() {
  const Bytes total = info().memory, held = silicon()->account()->held();
  const Bytes rest = total - std::min(held, total);
  return {.total = total,
          .in_use = held,
          .available = std::min(rest, base::available_memory()),
          .spare = memory_.kept()};
}

Result<std::shared_ptr<BufferBase>> CpuDevice::create_buffer(const BufferRequest& request) {
  if (auto fitting = fits(request.bytes, info()); !fitting) return std::move(fitting).error();
  auto charge = this->charge(request);
  if (!charge) return std::move(charge).error();
  return CpuBuffer::make(std::static_pointer_cast<CpuDevice>(shared_from_this()), request,
                         *std::move(charge));
}

Result<std::shared_ptr<ExecutableBase>> CpuDevice::create_executable(const Artefact& artefact) {
  if (artefact.language != "host")
    return Error(Errc::unsupported,
                 base::text("The language of kernel '{}' ('{}') is not supported by device '{}' ('host').",
                            artefact.kernel, artefact.language, info().id));
  if (!artefact.host)
    return Error(Errc::invalid_argument,
                 base::text("Kernel '{}' for '{}' has no host function.", artefact.kernel, info().id));
  if (!info().features.contains(artefact.needs))
    return Error(Errc::unsupported,
                 base::text("Kernel '{}' needs {}, which device '{}' does not support.", artefact.kernel,
                            device::lacking(info(), artefact.needs), info().id));
  return std::shared_ptr<ExecutableBase>(base::make_own<CpuExecutable>(shared_from_this(), artefact));
}

Result<std::unique_ptr<LaneBase>> CpuDevice::create_lane(const LaneOptions&) {
  return std::unique_ptr<LaneBase>(
      std::make_unique<CpuLane>(std::static_pointer_cast<CpuDevice>(shared_from_this())));
}

Result<std::shared_ptr<StampsBase>> CpuDevice::create_stamps() {
  return std::shared_ptr<StampsBase>(base::make_own<HostStamps>(shared_from_this()));
}

Result<std::shared_ptr<Timeline>> CpuDevice::create_timeline() {
  return std::shared_ptr<Timeline>(base::make_own<HostTimeline>(this));
}

}  // namespace wye::cpu
