#include "device/contract.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/sizes.hpp"
#include "base/text.hpp"
#include "device/native.hpp"
#include "device/turns.hpp"

namespace wye {
inline namespace v0 {
namespace device {

Timeline::~Timeline() = default;
ExecutableBase::~ExecutableBase() = default;
ReplayBase::~ReplayBase() = default;
LaneBase::~LaneBase() = default;
DeviceBase::~DeviceBase() = default;
Adapter::~Adapter() = default;
Backend::~Backend() = default;

Result<void> MemoryAccount::reserve(Bytes bytes) {
  std::uint64_t held = held_.load(std::memory_order_relaxed);
  do {
    if (held > limit_ || bytes.count > limit_ - held) {
      const base::Sizes size(bytes, Bytes{limit_ - std::min(held, limit_)});
      return Error(Errc::over_budget,
                   base::text("Allocation ({}) exceeds what is left of the budget of '{}' ({} held of {}).",
                              size(bytes), owner_, size(Bytes{held}), size(Bytes{limit_})));
    }
  } while (!held_.compare_exchange_weak(held, held + bytes.count, std::memory_order_relaxed));
  return {};
}

Result<void> fits(Bytes bytes, const AdapterInfo& adapter) {
  if (bytes <= adapter.limits.buffer) return {};
  return Error(Errc::out_of_memory,
               base::text("Buffer size ({} bytes) exceeds the largest buffer of '{}' ({} bytes).",
                          bytes.count, adapter.id, adapter.limits.buffer.count));
}

Error not_larger(std::uint64_t value, std::uint64_t reached) {
  return Error(Errc::invalid_argument,
               base::text("A timeline only grows: the new value ({}) is not larger than the one it has ({}).",
                          value, reached));
}

Result<BufferView> view_of(const Operand& operand, const DeviceBase& device) {
  const auto refused = [&](std::string what) {
    return Error(Errc::invalid_argument,
                 base::text("An operand given to a lane of device '{}' {}.", device.info().id, what));
  };
  if ((operand.kind != Operand::Kind::buffer && operand.kind != Operand::Kind::address) || !operand.object)
    return refused("is not a buffer");
  BufferView view{.buffer = static_cast<BufferBase*>(operand.object.get())};
  if (view.buffer->device().get() != &device) return refused("is a buffer of another device");
  const std::uint64_t size = view.buffer->bytes().count;
  if (operand.kind == Operand::Kind::address) {
    view.bytes = size;
  } else if (__builtin_mul_overflow(operand.offset, std::uint64_t{operand.size}, &view.offset) ||
             __builtin_mul_overflow(operand.count, std::uint64_t{operand.size}, &view.bytes) ||
             view.offset > size || view.bytes > size - view.offset) {
    return refused(base::text("ends outside its buffer ({} bytes)", size));
  }
  return view;
}

bool NativeDoor::reaches(const DeviceBase&) const noexcept { return false; }

bool reaches(DeviceBase& device, const DeviceBase& other) noexcept {
  const NativeDoor* const door = device.native_door();
  return door && door->reaches(other);
}

const DeviceBase& source_device(const Operand& source, const DeviceBase& device) {
  if (source.kind != Operand::Kind::buffer || !source.object) return device;
  const DeviceBase& other = *buffer_of(source)->device();
  // A lane has its device to look at only here; the door is only asked.
  return &other != &device && reaches(const_cast<DeviceBase&>(device), other) ? other : device;
}

namespace {

std::uint64_t next_instance() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

DeviceBase::DeviceBase(AdapterInfo info) : info_(std::move(info)), instance_(next_instance()) {}

BufferBase::BufferBase(std::shared_ptr<DeviceBase> device, const BufferRequest& request)
    : device_(std::move(device)), account_(request.account), bytes_(request.bytes) {
  static std::atomic<std::uint64_t> last{0};
  id_ = last.fetch_add(1, std::memory_order_relaxed) + 1;
}

BufferBase::~BufferBase() {
  if (account_) account_->release(bytes_);
}

Result<void> BufferBase::charge(const BufferRequest& request) {
  return request.account ? request.account->reserve(request.bytes) : Result<void>();
}

Digest DeviceBase::driver_identity() const {
  const AdapterInfo& i = info_;
  return Hasher()
      .add("wye driver")
      .add(std::string_view(i.backend))
      .add(std::string_view(i.name))
      .add(std::as_bytes(std::span(i.device_uuid)))
      .add(std::as_bytes(std::span(i.driver_uuid)))
      .add(std::string_view(i.driver))
      .add(i.driver_version)
      .add(std::string_view(i.api))
      .finish();
}

void DeviceBase::note_shared(const std::shared_ptr<Timeline>& timeline) {
  const std::lock_guard lock(shared_mutex_);
  shared_.push_back(timeline);
  shares_.store(true, std::memory_order_release);
}

Instant DeviceBase::sleep_until(Instant until) {
  // What is lost is seen as late as this. Nobody wakes for it where nothing is shared.
  constexpr Duration look = std::chrono::milliseconds(50);
  if (!shares_.load(std::memory_order_acquire)) return until;
  const Instant now = Clock::steady().now();
  if (until <= now) return until;
  std::vector<std::shared_ptr<Timeline>> shared;
  {
    const std::lock_guard lock(shared_mutex_);
    std::erase_if(shared_, [&](const std::weak_ptr<Timeline>& one) {
      auto timeline = one.lock();
      if (timeline) shared.push_back(std::move(timeline));
      return one.expired();
    });
    shares_.store(!shared_.empty(), std::memory_order_release);
  }
  bool open = false;
  for (const auto& timeline : shared) open |= timeline->turns() && timeline->turns()->open();
  return open ? std::min(until, now + look) : until;
}

std::optional<Error> DeviceBase::known_refusal_by(NativeProbe probe) const {
  const std::lock_guard lock(asked_mutex_);
  const auto known = asked_.find(probe);
  return known != asked_.end() ? known->second : std::nullopt;
}

std::optional<Error> DeviceBase::refusal_by(NativeProbe probe) {
  if (!probe) return std::nullopt;
  {
    const std::lock_guard lock(asked_mutex_);
    if (const auto known = asked_.find(probe); known != asked_.end()) return known->second;
  }
  const auto useful = ask(probe);
  if (const Error* gone = lost()) return *gone;  // that says nothing of it
  // Threads may come to it at once: one of them wins.
  const std::lock_guard lock(asked_mutex_);
  return asked_.emplace(probe, useful ? std::nullopt : std::optional(useful.error())).first->second;
}

Result<void> DeviceBase::ask(NativeProbe probe) {
  std::string what;
  try {
    return probe({.backend = info_.backend, .device = info_.id});
  } catch (const Exception& exception) {
    return exception.error();
  } catch (const std::exception& exception) {
    what = exception.what();
  } catch (...) {
    what = "an exception that is no std::exception";
  }
  return Error(Errc::unavailable,
               base::text("A native function asked about '{}' threw: {}.", info_.id, what));
}

Monitoring unmonitored(std::string device, const std::string& why) {
  Monitoring none;
  none.device = std::move(device);
  none.memory_total.absence = none.memory_used.absence = why;
  none.utilization.absence = none.temperature.absence = why;
  none.corrected_errors.absence = none.uncorrected_errors.absence = why;
  return none;
}

Monitoring DeviceBase::monitor() {
  return unmonitored(info_.id, base::text("Backend '{}' has no monitor of its devices.", info_.backend));
}

Result<Discovered> Backend::adopt(const NativeDevice&, std::string id, const BackendOptions&) {
  return Error(Errc::unsupported,
               base::text("Backend '{}' takes no device that the host has opened ('{}').", name(), id));
}

Result<std::vector<std::byte>> DeviceBase::driver_code() { return std::vector<std::byte>(); }
Result<void> DeviceBase::preload(std::span<const std::byte>) { return {}; }

std::shared_ptr<ReplayBase> DeviceBase::create_replay() {
  return std::make_shared<ReplayBase>(shared_from_this());
}

ExecutableBase::ExecutableBase(std::shared_ptr<DeviceBase> device, Artefact artefact)
    : device_(std::move(device)), artefact_(std::move(artefact)) {
  artefact_.code = {};
}

}  // namespace device
}  // namespace v0
}  // namespace wye
