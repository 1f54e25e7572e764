#include <wye/interop/shared.hpp>

#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "device/buffer.hpp"
#include "device/device.hpp"
#include "device/native.hpp"
#include "device/pending_signals.hpp"
#include "device/timeline.hpp"
#include "pool/pool.hpp"

namespace wye::inline v0::interop {

/// The state of a SharedBuffer: the objects of each of the two devices.
struct SharedState {
  struct Side {
    Device device;
    Buffer buffer;
    std::shared_ptr<device::Timeline> timeline;  // null if the host waits
  };
  Side sides[2];
  std::uint64_t last_value = 0;  // last value of the timelines
  std::string why_copied;
  std::string why_waited;
  std::vector<std::byte> copy;  // the contents on their way through the host
};

namespace {

using device::BufferBase;
using device::NativeInterop;

constexpr std::size_t creation_orders[][2] = {{0, 1}, {1, 0}};

/// Adds the reason why something cannot be shared. The loss of a device is returned as an error.
Result<void> add_reason(std::string& reason, const Error& why) {
  if (why == Errc::device_lost) return why;
  if (reason.find(why.sentence()) == std::string::npos)
    reason += (reason.empty() ? "" : " ") + why.sentence();
  return {};
}

/// Returns why two devices cannot share anything, with any drivers. Empty if they may.
std::string reason_not_shared(const Device& a, const Device& b) {
  for (const Device* device : {&a, &b})
    if (!base::state_of(*device)->native_interop())
      return base::text("The driver of device '{}' cannot share memory.", device->id());
  const Uuid none{};
  if (a.info().device_uuid == none || a.info().device_uuid != b.info().device_uuid)
    return base::text("Devices '{}' ({}) and '{}' ({}) are not the same processor.", a.id(),
                      to_string(a.info().device_uuid), b.id(), to_string(b.info().device_uuid));
  return {};
}

/// Creates one allocation for both devices, or sets `why_copied`.
Result<void> share_memory(SharedState& state, Bytes bytes, ElementType element, std::uint32_t size) {
  std::string reason = reason_not_shared(state.sides[0].device, state.sides[1].device);
  for (const auto& [maker, opener] : creation_orders) {
    if (state.sides[0].buffer || (!reason.empty() && maker == 0)) break;
    NativeInterop& from = *base::state_of(state.sides[maker].device)->native_interop();
    NativeInterop& to = *base::state_of(state.sides[opener].device)->native_interop();
    auto made = from.create_shared(bytes);
    if (!made) {
      if (auto added = add_reason(reason, made.error()); !added) return added;
      continue;
    }
    auto opened = to.open_shared(made->memory, bytes);
    if (!opened) {
      if (auto added = add_reason(reason, opened.error()); !added) return added;
      continue;
    }
    state.sides[maker].buffer = Buffer(std::move(made->buffer), element, size);
    state.sides[opener].buffer = Buffer(*std::move(opened), element, size);
    return {};
  }
  state.why_copied = std::move(reason);
  return {};
}

/// Creates one timeline for both devices, or sets `why_waited`.
Result<void> share_timeline(SharedState& state) {
  for (const auto& [maker, opener] : creation_orders) {
    NativeInterop& from = *base::state_of(state.sides[maker].device)->native_interop();
    NativeInterop& to = *base::state_of(state.sides[opener].device)->native_interop();
    auto made = from.create_shared_timeline();
    if (!made) {
      if (auto added = add_reason(state.why_waited, made.error()); !added) return added;
      continue;
    }
    auto opened = to.open_shared_timeline(*made);
    if (!opened) {
      if (auto added = add_reason(state.why_waited, opened.error()); !added) return added;
      continue;
    }
    state.sides[maker].timeline = std::move(made->timeline);
    state.sides[opener].timeline = *std::move(opened);
    for (const SharedState::Side& side : state.sides) base::state_of(side.device)->note_shared(side.timeline);
    state.why_waited.clear();
    return {};
  }
  return {};
}

Result<SharedBuffer> make(const Device& a, const Device& b, std::uint64_t count, ElementType element,
                          std::uint32_t size) {
  if (!a || !b) return Error(Errc::invalid_argument, "A device handle for shared memory is empty.");
  if (a == b)
    return Error(Errc::invalid_argument,
                 base::text("Memory cannot be shared between device '{}' and itself; use a buffer.", a.id()));
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, std::uint64_t{size}, &bytes))
    return Error(Errc::invalid_argument,
                 base::text("Buffer size ({} elements of {} bytes) overflows 64 bits.", count, size));
  for (const Device* device : {&a, &b})
    if (const Error* lost = base::state_of(*device)->lost()) return *lost;
  auto state = std::make_shared<SharedState>();
  state->sides[0].device = a;
  state->sides[1].device = b;
  if (auto shared = share_memory(*state, Bytes{bytes}, element, size); !shared)
    return std::move(shared).error();
  if (state->why_copied.empty()) {
    if (auto shared = share_timeline(*state); !shared) return std::move(shared).error();
    return SharedBuffer(std::move(state));
  }
  state->why_waited = state->why_copied;
  for (SharedState::Side& side : state->sides) {
    auto buffer = base::allocate(side.device, count, element, size, nullptr);
    if (!buffer) return std::move(buffer).error();
    side.buffer = *std::move(buffer);
  }
  return SharedBuffer(std::move(state));
}

Result<void> failure_of(const Lease& lease) {
  if (const auto& failure = base::state_of(lease)->lane().failure()) return *failure;
  return {};
}

/// Copies from the memory of one device to that of the other. The commands that wrote `source` have
/// completed.
Result<void> copy(SharedState& state, Lease& from, Lease& to, const Buffer& source, const Buffer& target,
                  Deadline deadline) {
  const device::BufferRange whole_source{base::state_of(source), Bytes{0}, source.bytes()};
  const device::BufferRange whole_target{base::state_of(target), Bytes{0}, target.bytes()};
  device::Lane& lane = base::state_of(to)->lane();
  if (device::reaches(*base::state_of(to.device()), *base::state_of(from.device()))) {
    lane.copy(whole_source, whole_target);
    // The other lane may overwrite the source after this returns.
    return to.wait(deadline);
  }
  state.copy.resize(source.bytes().count);
  base::state_of(from)->lane().download(whole_source, state.copy);
  if (auto done = from.wait(deadline); !done) {
    base::state_of(from)->lane().discard();  // later commands do not write to `copy`
    return done;
  }
  lane.upload(state.copy, whole_target);
  lane.submit();  // has read `copy` when it returns
  return failure_of(to);
}

}  // namespace

Result<SharedBuffer> share(const Device& a, const Device& b, std::uint64_t count, ElementType element,
                           std::uint32_t element_size) {
  try {
    return make(a, b, count, element, element_size);
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory for a SharedBuffer.");
  }
}

Buffer SharedBuffer::on(const Device& device) const {
  if (state_)
    for (const SharedState::Side& side : state_->sides)
      if (side.device == device) return side.buffer;
  return {};
}

const std::string& SharedBuffer::why_copied() const {
  static const std::string none;
  return state_ ? state_->why_copied : none;
}

const std::string& SharedBuffer::why_waited() const {
  static const std::string none;
  return state_ ? state_->why_waited : none;
}

Result<void> SharedBuffer::hand_over(Lease& from, Lease& to, Deadline deadline) {
  const Buffer source = on(from.device()), target = on(to.device());
  if (!source || !target || from.device() == to.device())
    return Error(
        Errc::invalid_argument,
        base::text("Shared memory cannot be handed over from a lane of '{}' to a lane of '{}': it is {}.",
                   from.device().id(), to.device().id(),
                   state_ ? base::text("shared by '{}' and '{}'", state_->sides[0].device.id(),
                                       state_->sides[1].device.id())
                          : "an empty handle"));
  try {
    SharedState& state = *state_;
    const bool first = from.device() == state.sides[0].device;
    device::Lane& giver = base::state_of(from)->lane();
    device::Lane& taker = base::state_of(to)->lane();
    const auto release = [&] { giver.release({base::state_of(source), Bytes{0}, source.bytes()}); };
    if (const auto& timeline = state.sides[first ? 0 : 1].timeline) {
      const std::uint64_t value = ++state.last_value;
      release();
      giver.signal({timeline, value});
      // A failed lane never signals the timeline.
      if (auto failed = failure_of(from); !failed) return failed;
      if (device::PendingSignals* const signals = timeline->pending_signals())
        signals->add(value, giver.submit());
      taker.wait_for({state.sides[first ? 1 : 0].timeline, value});
    } else {
      const auto complete = [&]() -> Result<void> {
        if (auto waited = from.point().wait(deadline); !waited) return waited;
        return failure_of(from);
      };
      if (auto completed = complete(); !completed) return completed;
      if (!state.why_copied.empty()) return copy(state, from, to, source, target, deadline);
      release();  // not before: after a timeout, the lane keeps the memory
      if (auto completed = complete(); !completed) return completed;
    }
    taker.acquire({base::state_of(target), Bytes{0}, target.bytes()});
    return failure_of(to);
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory to hand shared memory over.");
  }
}

}  // namespace wye::interop
