#pragma once
/// The CPU as a device: host memory, host functions, the threads of the process's team.
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "backend/cpu/cpu_memory.hpp"
#include "base/team.hpp"
#include "device/artefact.hpp"
#include "device/buffer.hpp"
#include "device/device.hpp"
#include "device/executable.hpp"
#include "device/lane_base.hpp"
#include "device/stamps.hpp"
#include "device/timeline.hpp"

namespace wye::inline v0::cpu {

class CpuDevice final : public device::DeviceBase {
 public:
  CpuDevice(AdapterInfo info, std::shared_ptr<base::Team> team, Bytes kept_memory);

  base::Team& team() const noexcept { return *team_; }
  CpuMemory& host_memory() noexcept { return memory_; }
  std::span<const std::string_view> languages() const noexcept override;
  MemoryInfo memory() override;
  bool has_unified_memory() const noexcept override { return true; }
  void release_spare_memory() noexcept override { memory_.release(); }
  const Error* ended_by() const noexcept override { return nullptr; }

  Result<std::shared_ptr<device::BufferBase>> create_buffer(const device::BufferRequest& request) override;
  Result<std::shared_ptr<device::ExecutableBase>> create_executable(
      const device::Artefact& artefact) override;
  Result<std::unique_ptr<device::LaneBase>> create_lane(const device::LaneOptions&) override;
  Result<std::shared_ptr<device::StampsBase>> create_stamps() override;
  Result<std::shared_ptr<device::Timeline>> create_timeline() override;

 private:
  std::shared_ptr<base::Team> team_;
  CpuMemory memory_;
};

class CpuExecutable final : public device::ExecutableBase {
 public:
  CpuExecutable(std::shared_ptr<device::DeviceBase> device, const device::Artefact& artefact)
      : ExecutableBase(std::move(device), artefact) {}
  Bytes bytes() const noexcept override { return {}; }
  /// Returns the measured cost of its items.
  base::Pace& pace() const noexcept { return pace_; }

 private:
  mutable base::Pace pace_;
};

}  // namespace wye::cpu
