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

namespace wye {
inline namespace v0 {
namespace interop {

/// What stands behind a SharedBuffer: for each of the two devices what it uses.
struct SharedState {
  struct Side {
    Device device;
    Buffer buffer;
    std::shared_ptr<device::Timeline> timeline;  // null where the host waits
  };
  Side sides[2];
  std::uint64_t last_value = 0;  // of the timelines
  std::string why_copied;
  std::string why_waited;
  std::vector<std::byte> copy;  // on its way through the host
};

namespace {

using device::BufferBase;
using device::NativeInterop;

constexpr std::size_t maker_first[][2] = {{0, 1}, {1, 0}};

/// Notes why something cannot be shared; what ends a device is no reason but an error.
Result<void> note(std::string& reason, const Error& why) {
  if (why == Errc::device_lost) return why;
  if (reason.find(why.sentence()) == std::string::npos)
    reason += (reason.empty() ? "" : " ") + why.sentence();
  return {};
}

/// Why the two cannot have anything in common, whatever their drivers can; empty where they may.
std::string why_apart(const Device& a, const Device& b) {
  for (const Device* device : {&a, &b})
    if (!base::state_of(*device)->native_interop())
      return base::text("Device '{}' has no driver that shares memory.", device->id());
  const Uuid none{};
  if (a.info().device_uuid == none || a.info().device_uuid != b.info().device_uuid)
    return base::text("Devices '{}' ({}) and '{}' ({}) are not the same processor.", a.id(),
                      to_string(a.info().device_uuid), b.id(), to_string(b.info().device_uuid));
  return {};
}

/// One memory for both sides, or `why_copied`.
Result<void> share_memory(SharedState& state, Bytes bytes, ElementType element, std::uint32_t size) {
  std::string reason = why_apart(state.sides[0].device, state.sides[1].device);
  for (const auto& [maker, opener] : maker_first) {
    if (state.sides[0].buffer || (!reason.empty() && maker == 0)) break;
    NativeInterop& from = *base::state_of(state.sides[maker].device)->native_interop();
    NativeInterop& to = *base::state_of(state.sides[opener].device)->native_interop();
    auto made = from.create_shared(bytes);
    if (!made) {
      if (auto noted = note(reason, made.error()); !noted) return noted;
      continue;
    }
    auto opened = to.open_shared(made->memory, bytes);
    if (!opened) {
      if (auto noted = note(reason, opened.error()); !noted) return noted;
      continue;
    }
    state.sides[maker].buffer = Buffer(std::move(made->buffer), element, size);
    state.sides[opener].buffer = Buffer(*std::move(opened), element, size);
    return {};
  }
  state.why_copied = std::move(reason);
  return {};
}

/// One timeline for both sides, or `why_waited`.
Result<void> share_timeline(SharedState& state) {
  for (const auto& [maker, opener] : maker_first) {
    NativeInterop& from = *base::state_of(state.sides[maker].device)->native_interop();
    NativeInterop& to = *base::state_of(state.sides[opener].device)->native_interop();
    auto made = from.create_shared_timeline();
    if (!made) {
      if (auto noted = note(state.why_waited, made.error()); !noted) return noted;
      continue;
    }
    auto opened = to.open_shared_timeline(*made);
    if (!opened) {
      if (auto noted = note(state.why_waited, opened.error()); !noted) return noted;
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
    return Error(
        Errc::invalid_argument,
        base::text("Buffer size ({} elements of {} bytes) exceeds what 64 bits can count.", count, size));
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

/// Copies from one side's memory to the other's. What wrote the first is over.
Result<void> copy(SharedState& state, Lease& from, Lease& to, const Buffer& source, const Buffer& target,
                  Deadline deadline) {
  const device::BufferRange whole_source{base::state_of(source), Bytes{0}, source.bytes()};
  const device::BufferRange whole_target{base::state_of(target), Bytes{0}, target.bytes()};
  device::Lane& lane = base::state_of(to)->lane();
  if (device::reaches(*base::state_of(to.device()), *base::state_of(from.device()))) {
    lane.copy(whole_source, whole_target);
    // The other may write its memory again when it pleases.
    return to.wait(deadline);
  }
  state.copy.resize(source.bytes().count);
  base::state_of(from)->lane().download(whole_source, state.copy);
  if (auto done = from.wait(deadline); !done) {
    base::state_of(from)->lane().abandon();  // no command writes there from now on
    return done;
  }
  lane.upload(state.copy, whole_target);
  lane.submit();  // it has been read when this returns
  return failure_of(to);
}

}  // namespace

Result<SharedBuffer> share(const Device& a, const Device& b, std::uint64_t count, ElementType element,
                           std::uint32_t element_size) {
  try {
    return make(a, b, count, element, element_size);
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory to describe memory that is shared.");
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
    return Error(Errc::invalid_argument,
                 base::text("Shared memory cannot be handed from a lane of '{}' to one of '{}': it is {}.",
                            from.device().id(), to.device().id(),
                            state_ ? base::text("for '{}' and '{}'", state_->sides[0].device.id(),
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
      // Nobody would ever signal it.
      if (auto failed = failure_of(from); !failed) return failed;
      if (device::PendingSignals* const signals = timeline->pending_signals())
        signals->add(value, giver.submit());
      taker.wait_for({state.sides[first ? 1 : 0].timeline, value});
    } else {
      const auto end = [&]() -> Result<void> {
        if (auto over = from.point().wait(deadline); !over) return over;
        return failure_of(from);
      };
      if (auto ended = end(); !ended) return ended;
      if (!state.why_copied.empty()) return copy(state, from, to, source, target, deadline);
      release();  // only now: a hand-over continues after its deadline
      if (auto ended = end(); !ended) return ended;
    }
    taker.acquire({base::state_of(target), Bytes{0}, target.bytes()});
    return failure_of(to);
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory to hand shared memory over.");
  }
}

}  // namespace interop
}  // namespace v0
}  // namespace wye
