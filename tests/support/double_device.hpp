#pragma once
/// A device that only counts its calls.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/artefact.hpp"
#include "device/buffer.hpp"
#include "device/device.hpp"
#include "device/executable.hpp"
#include "device/lane_base.hpp"
#include "device/timeline.hpp"

namespace wye::test {

class DoubleDevice final : public device::DeviceBase {
 public:
  explicit DoubleDevice(std::string id = "double:0",
                        std::vector<std::string_view> languages = {"host", "spirv"}, Features features = {},
                        std::string architecture = {}, std::string driver = "doubles 1.0",
                        std::uint64_t driver_version = 0)
      : DeviceBase(
            adapter(std::move(id), features, std::move(architecture), std::move(driver), driver_version)),
        languages_(std::move(languages)) {}

  std::span<const std::string_view> languages() const noexcept override {
    ++routed;
    return languages_;
  }
  MemoryInfo memory() override { return {}; }
  const Error* ended_by() const noexcept override { return is_lost_.load() ? &lost_ : nullptr; }

  Result<std::shared_ptr<device::BufferBase>> create_buffer(const device::BufferRequest&) override {
    return no("buffers");
  }
  Result<std::shared_ptr<device::ExecutableBase>> create_executable(
      const device::Artefact& artefact) override {
    ++created;
    if (on_create) on_create();
    if (refuse) return *refuse;
    return std::shared_ptr<device::ExecutableBase>(
        std::make_shared<Executable>(shared_from_this(), artefact, executable_bytes.load(), alive));
  }
  Result<std::shared_ptr<DeviceBase>> open_again() const override {
    return on_open_again ? on_open_again() : DeviceBase::open_again();
  }
  Result<std::vector<std::byte>> driver_code() override { return code; }
  Result<void> preload(std::span<const std::byte> given) override {
    if (on_preload) on_preload();
    if (refuse_preload) return *refuse_preload;
    preloaded.assign(given.begin(), given.end());
    return {};
  }
  Result<std::unique_ptr<device::LaneBase>> create_lane(const device::LaneOptions&) override {
    return no("lanes");
  }
  Result<std::shared_ptr<device::Timeline>> create_timeline() override { return no("timelines"); }

  void lose() { is_lost_ = true; }

  mutable std::atomic<int> routed{0};  ///< calls of `languages`: one for each choice of a source
  std::atomic<int> created{0};         ///< calls of create_executable
  std::shared_ptr<std::atomic<int>> alive = std::make_shared<std::atomic<int>>(0);  ///< live executables
  std::atomic<std::uint64_t> executable_bytes{100};  ///< of each executable created from now on
  std::optional<Error> refuse;                       ///< result of `create_executable`
  std::vector<std::byte> code;                       ///< the code that its driver reports
  std::vector<std::byte> preloaded;                  ///< the code that its driver received
  std::optional<Error> refuse_preload;               ///< result of `preload`
  std::function<void()> on_preload;                  ///< called by it first
  std::function<void()> on_create;                   ///< called by it first
  std::function<Result<std::shared_ptr<DeviceBase>>()> on_open_again;  ///< result of `open_again`

 private:
  class Executable final : public device::ExecutableBase {
   public:
    Executable(std::shared_ptr<DeviceBase> device, device::Artefact artefact, std::uint64_t bytes,
               std::shared_ptr<std::atomic<int>> alive)
        : ExecutableBase(std::move(device), std::move(artefact)), bytes_(bytes), alive_(std::move(alive)) {
      ++*alive_;
    }
    ~Executable() override { --*alive_; }
    Bytes bytes() const noexcept override { return Bytes{bytes_}; }

   private:
    std::uint64_t bytes_;
    std::shared_ptr<std::atomic<int>> alive_;
  };

  static AdapterInfo adapter(std::string id, Features features, std::string architecture, std::string driver,
                             std::uint64_t driver_version) {
    AdapterInfo info;
    info.backend = id.substr(0, id.find(':'));
    info.id = std::move(id);
    info.name = "a double";
    info.driver = std::move(driver);
    info.driver_version = driver_version;
    info.features = features;
    info.usable = true;
    info.architecture = std::move(architecture);
    return info;
  }
  static Error no(const char* what) {
    return Error(Errc::unsupported, std::string("A double has no ") + what + ".");
  }

  std::vector<std::string_view> languages_;
  const Error lost_{Errc::device_lost, "The double was lost."};
  std::atomic<bool> is_lost_{false};
};

}  // namespace wye::test
