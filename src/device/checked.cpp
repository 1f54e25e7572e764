#include "device/checked.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "device/native.hpp"
#include "device/stamps.hpp"

namespace wye::inline v0::device {
namespace {

/// Bytes [first, last) of some memory.
struct ByteRange {
  const void* memory = nullptr;  // a buffer; null for host memory
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool overlaps(const ByteRange& other) const {
    return memory == other.memory && first < other.last && other.first < last;
  }
};

ByteRange byte_range_of(const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::buffer: {
      const std::uint64_t first = operand.offset * operand.size;
      return {buffer_of(operand), first, first + operand.bytes().count};
    }
    case Operand::Kind::address: return {buffer_of(operand), 0, buffer_of(operand)->bytes().count};
    case Operand::Kind::host: {
      const std::uint64_t first = reinterpret_cast<std::uintptr_t>(operand.data);
      return {nullptr, first, first + operand.bytes().count};
    }
    default: return {};
  }
}

/// Returns the reason why `operand` is no range of a buffer of `device`, as the end of a sentence
/// about the operand.
std::optional<std::string> misuse(const Operand& operand, const DeviceBase& device) {
  const std::string& id = device.info().id;
  const BufferBase* buffer = buffer_of(operand);
  if (!buffer) return base::text(" holds no buffer; '{}' needs one.", id);
  if (buffer->device().get() != &device)
    return base::text(" is memory of another device ('{}'); the lane is on '{}'.",
                      buffer->device()->info().id, id);
  if (operand.kind == Operand::Kind::address) return std::nullopt;
  std::uint64_t first = 0, size = 0, last = 0;
  const bool overflows = __builtin_mul_overflow(operand.offset, std::uint64_t{operand.size}, &first) ||
                         __builtin_mul_overflow(operand.count, std::uint64_t{operand.size}, &size) ||
                         __builtin_add_overflow(first, size, &last);
  if (overflows || last > buffer->bytes().count)
    return base::text(" ({} elements of {} bytes from element {}) exceeds its buffer on '{}' ({} bytes).",
                      operand.count, operand.size, operand.offset, id, buffer->bytes().count);
  return std::nullopt;
}

Result<void> check_memory(const Operand& operand, std::string_view what, const DeviceBase& device) {
  if (auto wrong = misuse(operand, device)) return base::invalid(std::string(what) + *wrong);
  return {};
}

Result<void> check_host_side(const Command& command, const Operand& operand, const void* memory,
                             std::string_view what, const DeviceBase& device) {
  if (command.host_bytes != operand.bytes())
    return base::invalid(base::text("{} ({} bytes) differs in size from its buffer range on '{}' ({} bytes).",
                                    what, command.host_bytes.count, device.info().id, operand.bytes().count));
  if (!memory && command.host_bytes.count != 0)
    return base::invalid(base::text("{} ({} bytes) for '{}' is a null pointer.", what,
                                    command.host_bytes.count, device.info().id));
  return {};
}

Result<void> check_fill(const Operand& target, const DeviceBase& device) {
  if (target.offset % 4 == 0 && target.count % 4 == 0) return {};
  return base::invalid(
      base::text("Range of a fill on '{}' (bytes {} to {}) does not consist of 4-byte words.",
                 device.info().id, target.offset, target.offset + target.count));
}

Result<void> check_copy(const Operand& source, const Operand& target, const DeviceBase& device) {
  if (source.count != target.count)
    return base::invalid(
        base::text("Source of a copy ({} bytes) differs in size from its target on '{}' ({} bytes).",
                   source.count, device.info().id, target.count));
  if (byte_range_of(source).overlaps(byte_range_of(target)))
    return base::invalid(base::text(
        "Source of a copy (bytes {} to {}) overlaps its target in the same buffer on '{}' (bytes {} "
        "to {}).",
        source.offset, source.offset + source.count, device.info().id, target.offset,
        target.offset + target.count));
  return {};
}

/// Returns the device that must own `source` of a copy in a lane of `device`: the owner of the
/// buffer if `device` reaches it, otherwise `device`.
const DeviceBase& source_device(const Operand& source, const DeviceBase& device) {
  if (source.kind != Operand::Kind::buffer || !source.object) return device;
  const DeviceBase& other = *buffer_of(source)->device();
  // The check has a const device; `reaches` does not change it.
  return &other != &device && reaches(const_cast<DeviceBase&>(device), other) ? other : device;
}

/// The checks of one dispatch.
class DispatchCheck {
 public:
  DispatchCheck(const Command& command, std::span<const Operand> operands, const DeviceBase& device)
      : command_(command),
        operands_(operands),
        device_(device),
        artefact_(command.executable->artefact()),
        id_(device.info().id) {}

  Result<void> run() const {
    if (command_.executable->device().get() != &device_)
      return base::invalid(base::text("Kernel '{}' was built for another device ('{}'); the lane is on '{}'.",
                                      artefact_.kernel, command_.executable->device()->info().id, id_));
    const std::vector<Slot>& slots = artefact_.schema.slots;
    if (operands_.size() != slots.size())
      return base::invalid(base::text("Kernel '{}' takes {} arguments {}; {} were given on '{}'.",
                                      artefact_.kernel, slots.size(), to_string(artefact_.schema),
                                      operands_.size(), id_));
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (auto matched = check_slot(i); !matched) return matched;
    if (auto bound = check_descriptors(); !bound) return bound;
    if (auto apart = check_aliasing(); !apart) return apart;
    return check_groups(artefact_, groups_for(artefact_, command_.items), device_.info().limits, id_,
                        command_.executable->row_groups());
  }

 private:
  /// "Argument 'x' (slot 0) of kernel 'axpy'".
  std::string argument(std::size_t i) const {
    const std::string& name = artefact_.schema.slots[i].name;
    return name.empty() ? base::text("Argument in slot {} of kernel '{}'", i, artefact_.kernel)
                        : base::text("Argument '{}' (slot {}) of kernel '{}'", name, i, artefact_.kernel);
  }

  static bool accepts(SlotKind slot, Operand::Kind kind) {
    switch (slot) {
      case SlotKind::buffer: return kind == Operand::Kind::buffer || kind == Operand::Kind::host;
      case SlotKind::scalar:
      case SlotKind::structure: return kind == Operand::Kind::value;
      case SlotKind::address: return kind == Operand::Kind::address;
    }
    return false;
  }

  Result<void> check_slot(std::size_t i) const {
    const Slot& slot = artefact_.schema.slots[i];
    const Operand& operand = operands_[i];
    if (!accepts(slot.kind, operand.kind))
      return base::invalid(base::text("{} is {}; the kernel on '{}' takes a {}.", argument(i),
                                      name(operand.kind), id_, name(slot.kind)));
    const bool typed = slot.kind != SlotKind::address;
    const bool known = slot.element != ElementType::opaque && operand.element != ElementType::opaque;
    if (typed && (slot.size != operand.size || (known && slot.element != operand.element)))
      return base::invalid(base::text("{} is of {} ({} bytes); the kernel on '{}' takes {} ({} bytes).",
                                      argument(i), name(operand.element), operand.size, id_,
                                      name(slot.element), slot.size));
    if (operand.kind == Operand::Kind::value) return {};
    if (operand.access != slot.access)
      return base::invalid(base::text("{} allows {}; the kernel on '{}' needs {}.", argument(i),
                                      name(operand.access), id_, name(slot.access)));
    if (operand.kind != Operand::Kind::host) {
      if (auto wrong = misuse(operand, device_)) return base::invalid(argument(i) + *wrong);
      return {};
    }
    if (!device_.info().features.has(Feature::host_memory))
      return Error(Errc::unsupported,
                   base::text("{} is host memory, which '{}' cannot use in place.", argument(i), id_));
    if (!operand.data && operand.count != 0)
      return base::invalid(base::text("{} ({} elements of host memory) for '{}' is a null pointer.",
                                      argument(i), operand.count, id_));
    return {};
  }

  Result<void> check_descriptors() const {
    const Limits& limits = device_.info().limits;
    std::uint32_t bound = 0;
    for (std::size_t i = 0; i < operands_.size() && i < artefact_.passing.size(); ++i) {
      if (artefact_.passing[i].kind != Passing::Kind::descriptor) continue;
      ++bound;
      const ByteRange range = byte_range_of(operands_[i]);
      if (Bytes{range.last - range.first} > limits.descriptor_range)
        return Error(Errc::unsupported,
                     base::text("{} ({} bytes) exceeds the largest descriptor range of '{}' ({} bytes).",
                                argument(i), range.last - range.first, id_, limits.descriptor_range.count));
      if (limits.offset_alignment > 1 && range.first % limits.offset_alignment != 0)
        return Error(Errc::unsupported,
                     base::text("{} begins at byte {}; descriptors of '{}' begin at multiples of {}.",
                                argument(i), range.first, id_, limits.offset_alignment));
    }
    if (bound > limits.bound_buffers)
      return Error(Errc::unsupported, base::text("Kernel '{}' binds {} buffers; '{}' can bind {}.",
                                                 artefact_.kernel, bound, id_, limits.bound_buffers));
    return {};
  }

  Result<void> check_aliasing() const {
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].kind == Operand::Kind::value || !writes(operands_[i].access)) continue;
      for (std::size_t j = 0; j < operands_.size(); ++j) {
        if (j == i || operands_[j].kind == Operand::Kind::value) continue;
        if (byte_range_of(operands_[i]).overlaps(byte_range_of(operands_[j])))
          return base::invalid(base::text(
              "{} overlaps in memory with slot {}, and the kernel on '{}' writes it.", argument(i), j, id_));
      }
    }
    return {};
  }

  const Command& command_;
  std::span<const Operand> operands_;
  const DeviceBase& device_;
  const Artefact& artefact_;
  const std::string& id_;
};

Result<void> check_stamps(const StampsBase& stamps, const DeviceBase& device) {
  if (stamps.device().get() == &device) return {};
  return base::invalid(base::text("Stamps in a recording are of another device ('{}'); the lane is on '{}'.",
                                  stamps.device()->info().id, device.info().id));
}

Result<void> check_command(const Recording& recording, const Command& command, const DeviceBase& device) {
  const std::span<const Operand> operands = recording.operands(command);
  switch (command.kind) {
    case Command::Kind::upload:
      if (auto memory = check_memory(operands[0], "Target of an upload", device); !memory) return memory;
      return check_host_side(command, operands[0], command.source, "Source of an upload", device);
    case Command::Kind::download:
      if (auto memory = check_memory(operands[0], "Source of a download", device); !memory) return memory;
      return check_host_side(command, operands[0], command.target, "Target of a download", device);
    case Command::Kind::copy:
      if (auto memory = check_memory(operands[0], "Source of a copy", source_device(operands[0], device));
          !memory)
        return memory;
      if (auto memory = check_memory(operands[1], "Target of a copy", device); !memory) return memory;
      return check_copy(operands[0], operands[1], device);
    case Command::Kind::fill:
      if (auto memory = check_memory(operands[0], "Target of a fill", device); !memory) return memory;
      return check_fill(operands[0], device);
    case Command::Kind::release:
    case Command::Kind::acquire: return check_memory(operands[0], "Memory of a release or acquire", device);
    case Command::Kind::stamp_begin:
    case Command::Kind::stamp_end: return check_stamps(recording.stamps_of(command), device);
    case Command::Kind::dispatch:
      if (!command.executable)
        return base::invalid(base::text("A dispatch on '{}' has no executable.", device.info().id));
      return DispatchCheck(command, operands, device).run();
  }
  return {};
}

class CheckedLane final : public LaneBase {
 public:
  explicit CheckedLane(std::unique_ptr<LaneBase> lane) : LaneBase(lane->device()), lane_(std::move(lane)) {}

  Result<std::uint64_t> submit(const Submission& submission) override {
    if (!submission.recording)
      return base::invalid(base::text("A submission to '{}' has no recording.", device()->info().id));
    if (auto right = check_recording(submission); !right) return std::move(right).error();
    for (const TimelinePoint& point : submission.waits)
      if (auto right = check_wait(point); !right) return std::move(right).error();
    for (const TimelinePoint& point : submission.signals)
      if (auto right = check_signal(point); !right) return std::move(right).error();
    auto value = lane_->submit(submission);
    if (value) last_ = *value;
    return value;
  }

  Result<void> wait(std::uint64_t value, Instant until) override {
    if (value > last_)
      return base::invalid(
          base::text("The value waited for ({}) was not submitted to this lane of '{}' (last: {}).", value,
                     device()->info().id, last_));
    return lane_->wait(value, until);
  }

  void abandon() noexcept override { lane_->abandon(); }
  const std::shared_ptr<Timeline>& timeline() const noexcept override { return lane_->timeline(); }

 private:
  /// Skips a recording that was checked before and has not changed.
  Result<void> check_recording(const Submission& submission) const {
    const Recording& recording = *submission.recording;
    ReplayBase* const replay = submission.replay.get();
    if (replay && replay->device() == device() && recording.closed() &&
        replay->checked == recording.revision())
      return {};
    if (auto right = check(recording, *device()); !right) return right;
    if (replay && replay->device() == device()) replay->checked = recording.revision();
    return {};
  }

  Result<void> check_wait(const TimelinePoint& point) const {
    const std::string& id = device()->info().id;
    if (!point.timeline)
      return base::invalid(base::text("A submission to '{}' waits for a null timeline.", id));
    if (point.timeline->owner() != device().get())
      return base::invalid(base::text("A submission to '{}' waits for a timeline of another device.", id));
    if (point.timeline == lane_->timeline() && point.value > last_)
      return base::invalid(base::text(
          "A submission to '{}' waits for a value of its own lane ({}) that the lane has not submitted "
          "(last: {}).",
          id, point.value, last_));
    return {};
  }

  Result<void> check_signal(const TimelinePoint& point) const {
    if (point.timeline && point.timeline->owner() == device().get() && point.timeline->is_foreign())
      return {};
    return base::invalid(
        base::text("A submission to '{}' signals a timeline that is not a foreign timeline of this device.",
                   device()->info().id));
  }

  std::unique_ptr<LaneBase> lane_;
  std::uint64_t last_ = 0;
};

}  // namespace

Result<void> check(const Recording& recording, const DeviceBase& device) {
  if (recording.misused())
    return base::invalid(
        base::text("A recording for '{}' was changed after it was closed.", device.info().id));
  if (!recording.closed())
    return base::invalid(
        base::text("A recording for '{}' is still open: close it before it is submitted.", device.info().id));
  if (!recording.has_stamps_in_pairs())
    return base::invalid(
        base::text("A recording for '{}' takes a stamp out of order: each begin has one end after it.",
                   device.info().id));
  for (const Command& command : recording.commands())
    if (auto right = check_command(recording, command, device); !right) return right;
  return {};
}

std::unique_ptr<LaneBase> checked(std::unique_ptr<LaneBase> lane) {
  return std::make_unique<CheckedLane>(std::move(lane));
}

}  // namespace wye::device
