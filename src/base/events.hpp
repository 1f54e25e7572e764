#pragma once
/// The events of a runtime, as plain data.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/detail/id.hpp>
#include <wye/base/error.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

namespace wye::inline v0 {

enum class CacheTier : std::uint8_t;

namespace base {

/// A text within an event. A text of more than `most` bytes is cut, before the character that does
/// not fit. An event keeps its texts in itself: it allocates nothing, and it keeps no object alive
/// that an application could wait for the end of.
template <std::uint8_t most>
class ShortText {
 public:
  ShortText() = default;
  template <std::convertible_to<std::string_view> T>
  ShortText(const T& text) noexcept {  // NOLINT: implicit
    const std::string_view whole = text;
    std::size_t size = std::min<std::size_t>(whole.size(), most);
    if (size < whole.size())
      while (size > 0 && (static_cast<unsigned char>(whole[size]) & 0xc0) == 0x80) --size;
    size_ = static_cast<std::uint8_t>(size);
    std::memcpy(text_, whole.data(), size);
  }
  operator std::string_view() const noexcept { return {text_, size_}; }  // NOLINT: implicit

 private:
  std::uint8_t size_ = 0;
  char text_[most] = {};
};

/// The members of `wye::ContextSwitch`.
struct ContextSwitched {
  ShortText<39> from = {}, to = {}, device = {};
  ShortText<15> backend = {};
  bool changes_device = false, changes_backend = false;
  std::uint64_t thread = 0;
  Duration duration{};
};

/// The members of `wye::MemoryPressure`.
struct PressureChanged {
  ShortText<127> silicon = {};
  ShortText<15> limited = {};
  Bytes held = {}, limit = {};
  std::uint8_t level = 0;  ///< a `MemoryPressure::Level`
};

/// The members of `wye::BuildEvent`.
struct KernelBuilt {
  Id id = {};
  ShortText<127> kernel = {};
  ShortText<31> device = {};
  CacheTier tier{};
  Duration took{};
  Bytes bytes = {};
  double hit_rate = 0;
  std::optional<Error> error = std::nullopt;  ///< unset: it succeeded
};

/// The members of `wye::Reload`.
struct KernelReloaded {
  ShortText<127> kernel = {};
  std::optional<Error> error = std::nullopt;
  Duration took{};
};

/// A job has completed or failed.
struct JobEnded {
  Id id = {};                ///< `Ticket::id`
  std::uint64_t number = 0;  ///< its place in the order of acceptance by its scheduler
  ShortText<63> name = {};
  ShortText<23> type = {};     ///< of its workload
  ShortText<23> device = {};   ///< on which it was tried last; empty: on none
  ShortText<23> context = {};  ///< that ran it; empty: none
  std::uint32_t attempts = 0;  ///< devices that it was tried on
  Bytes bytes = {};            ///< copied between host and device
  Duration queue_time{}, build_time{}, transfer_time{}, run_time{};
  std::optional<Error> error = std::nullopt;  ///< unset: it has completed
};

/// A job has failed on a device, and is tried on another one.
struct JobFellBack {
  Id id = {};
  std::uint64_t number = 0;
  ShortText<47> name = {};
  ShortText<23> type = {};
  ShortText<23> device = {};  ///< on which it failed
  std::optional<Error> error = std::nullopt;
};

/// A job was submitted when the limit of waiting jobs was reached.
struct QueueFull {
  std::uint64_t limit = 0;
};

/// A device can be used, or cannot any more.
struct DeviceChanged {
  enum class Change : std::uint8_t { opened, lost, recovered };
  Change change{};
  ShortText<31> device = {};
  ShortText<95> name = {};                    ///< the driver's name of it
  std::optional<Error> error = std::nullopt;  ///< of a loss
};

/// The lane of a context was created.
struct ContextCreated {
  Id id = {};
  ShortText<39> context = {};
  ShortText<31> device = {};
  Bytes limit = {};  ///< of its allocations
};

/// A request for a lease has waited for a slot of a processor, and has a context.
struct SlotWaited {
  ShortText<39> context = {};
  ShortText<31> device = {};
  Duration took{};
};

/// A kernel or the copy of an array was removed to make room.
struct Evicted {
  ShortText<127> name = {};  ///< of the kernel; "array"
  ShortText<31> device = {};
  Bytes bytes = {};
};

using EventData =
    std::variant<std::monostate, ContextSwitched, PressureChanged, KernelBuilt, KernelReloaded, JobEnded,
                 JobFellBack, QueueFull, DeviceChanged, ContextCreated, SlotWaited, Evicted>;
static_assert(std::is_nothrow_copy_constructible_v<Error> && std::is_nothrow_move_assignable_v<EventData>);

/// One event with its origin.
struct Event {
  EventData data;
  Instant at{};              ///< of the steady clock
  std::uint64_t thread = 0;  ///< that emitted it; see `this_thread`
};
static_assert(sizeof(Event) <= 256);

}  // namespace base
}  // namespace wye
