// A device that executes no command, transfers no byte, waits for no other timeline, and completes
// every submission at once. Measurements on it show the cost of wye itself. The rest of the
// contract holds.
#include <wye/base/config.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "base/process.hpp"
#include "device/artefact.hpp"
#include "device/backend.hpp"
#include "device/buffer.hpp"
#include "device/device.hpp"
#include "device/executable.hpp"
#include "device/host_stamps.hpp"
#include "device/host_timeline.hpp"
#include "device/lane_base.hpp"
#include "device/timeline.hpp"

namespace wye::inline v0::null {
namespace {

using namespace device;

constexpr Bytes memory_size{1ull << 40};

AdapterInfo describe() {
  AdapterInfo info;
  info.id = "null:0";
  info.backend = "null";
  info.name = "null device";
  info.type = AdapterType::other;
  info.driver = "wye " + to_string(library_version());
  info.api = "none";
  info.memory = memory_size;
  constexpr std::uint64_t any = ~std::uint64_t{0};
  info.limits = {.workgroup = {any, any, any},
                 .workgroup_invocations = any,
                 .groups = {any, any, any},
                 .buffer = memory_size,
                 .descriptor_range = memory_size,
                 .shared_memory = memory_size,
                 .parameter_bytes = memory_size,
                 .bound_buffers = ~std::uint32_t{0},
                 .offset_alignment = 1,
                 .subgroup_size = 1};
  info.features = {Feature::float16,       Feature::float64,         Feature::int8,       Feature::int16,
                   Feature::int64,         Feature::storage8,        Feature::storage16,  Feature::subgroups,
                   Feature::atomics_int64, Feature::atomics_float32, Feature::host_memory};
  info.usable = true;
  return info;
}

class NullBuffer final : public BufferBase {
 public:
  using BufferBase::BufferBase;
  std::uint64_t address() const noexcept override { return 0; }
  std::byte* host() const noexcept override { return nullptr; }
};

class NullExecutable final : public ExecutableBase {
 public:
  NullExecutable(std::shared_ptr<DeviceBase> device, const Artefact& artefact)
      : ExecutableBase(std::move(device), artefact) {}
  Bytes bytes() const noexcept override { return {}; }
};

class NullLane final : public LaneBase {
 public:
  explicit NullLane(std::shared_ptr<DeviceBase> device)
      : LaneBase(std::move(device)),
        reached_(base::make_own<HostTimeline>(this->device().get(), HostTimeline::SignaledBy::lane)),
        timeline_(reached_) {}
  ~NullLane() override { reached_->fail(ended_); }

  Result<std::uint64_t> submit(const Submission& submission) override {
    const std::uint64_t value = ++last_;
    if (!submission.recording->stamps().empty()) take_stamps(*submission.recording);
    if (auto signalled = reached_->reach(value); !signalled) return std::move(signalled).error();
    return value;
  }
  Result<void> wait(std::uint64_t value, Instant until) override { return reached_->wait(value, until); }
  void abandon() noexcept override {}
  const std::shared_ptr<Timeline>& timeline() const noexcept override { return timeline_; }

 private:
  static void take_stamps(const Recording& recording) noexcept {
    for (const Command& command : recording.commands()) {
      if (command.kind == Command::Kind::stamp_begin)
        static_cast<HostStamps&>(recording.stamps_of(command)).take_begin();
      if (command.kind == Command::Kind::stamp_end)
        static_cast<HostStamps&>(recording.stamps_of(command)).take_end();
    }
  }
  std::shared_ptr<HostTimeline> reached_;
  std::shared_ptr<Timeline> timeline_;  // the same object, in the type of the contract
  std::uint64_t last_ = 0;
  const Error ended_{Errc::closed, "A lane of 'null:0' has ended."};  // created in advance
};

class NullDevice final : public DeviceBase {
 public:
  explicit NullDevice(AdapterInfo info) : DeviceBase(std::move(info)) {}

  std::span<const std::string_view> languages() const noexcept override {
    static constexpr std::array<std::string_view, 2> preferred = {
        "host", "spirv"};  // accepts every other language too
    return preferred;
  }
  MemoryInfo memory() override {
    const Bytes in_use = silicon()->account()->held();
    return {.total = memory_size, .in_use = in_use, .available = memory_size - std::min(in_use, memory_size)};
  }
  const Error* ended_by() const noexcept override { return nullptr; }

  Result<std::shared_ptr<BufferBase>> create_buffer(const BufferRequest& request) override {
    if (auto fitting = fits(request.bytes, info()); !fitting) return std::move(fitting).error();
    auto charge = this->charge(request);
    if (!charge) return std::move(charge).error();
    return std::shared_ptr<BufferBase>(
        base::make_own<NullBuffer>(shared_from_this(), request.bytes, *std::move(charge)));
  }
  Result<std::shared_ptr<ExecutableBase>> create_executable(const Artefact& artefact) override {
    return std::shared_ptr<ExecutableBase>(base::make_own<NullExecutable>(shared_from_this(), artefact));
  }
  Result<std::unique_ptr<LaneBase>> create_lane(const LaneOptions&) override {
    return std::unique_ptr<LaneBase>(std::make_unique<NullLane>(shared_from_this()));
  }
  Result<std::shared_ptr<StampsBase>> create_stamps() override {
    return std::shared_ptr<StampsBase>(base::make_own<HostStamps>(shared_from_this()));
  }
  Result<std::shared_ptr<Timeline>> create_timeline() override {
    return std::shared_ptr<Timeline>(base::make_own<HostTimeline>(this));
  }
};

class NullAdapter final : public Adapter {
 public:
  const AdapterInfo& info() const noexcept override { return info_; }
  Result<std::shared_ptr<DeviceBase>> open() override {
    return std::shared_ptr<DeviceBase>(base::make_own<NullDevice>(info_));
  }

 private:
  AdapterInfo info_ = describe();
};

class NullBackend final : public Backend {
 public:
  std::string_view name() const noexcept override { return "null"; }
  std::vector<Discovered> discover(const BackendOptions&) override {
    return {{.info = describe(), .adapter = std::make_shared<NullAdapter>()}};
  }
};

}  // namespace

std::unique_ptr<Backend> make_backend();
std::unique_ptr<Backend> make_backend() { return std::make_unique<NullBackend>(); }

}  // namespace wye::null
