#pragma once
/// Events of a runtime.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/detail/id.hpp>
#include <wye/base/error.hpp>
#include <wye/base/log.hpp>
#include <wye/device/executable.hpp>
#include <wye/pool/context_pool.hpp>
#include <wye/scheduler/ticket.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace wye::inline v0 {

namespace runtime {
struct Subscribed;
}

enum class EventKind : std::uint8_t {
  job_completed,
  kernel_built,
  context_switched,
  device_opened,
  context_created,
  fell_back,
  device_lost,
  device_recovered,
  slot_waited,
  memory_pressure,
  evicted,
  queue_full,
  reloaded,
};

/// Returns "job_completed".
WYE_API std::string_view name(EventKind kind) noexcept;

/// One event. Each kind sets some of the members, beside `at`, `time` and `thread`:
///
/// | kind             | members                                                              |
/// |------------------|----------------------------------------------------------------------|
/// | job_completed    | id, number, name, type, device, context, times, bytes, attempts, error: a job has ended |
/// | kernel_built     | id, name, device, tier, took, bytes, hit_rate, error                 |
/// | context_switched | from, context, device, backend, took                                 |
/// | device_opened    | device, name                                                         |
/// | context_created  | id, context, device, bytes: the limit of its memory                  |
/// | fell_back        | id, number, name, type, device, error: a job has failed there, and is tried elsewhere |
/// | device_lost      | device, name, error                                                  |
/// | device_recovered | device, name                                                         |
/// | slot_waited      | context, device, took: a request has waited for a slot               |
/// | memory_pressure  | pressure                                                             |
/// | evicted          | name, device, bytes: a kernel, or the copy of an array ("array")     |
/// | queue_full       | number: `SchedulerOptions::max_queued`, which a submission has met   |
/// | reloaded         | name, took, error                                                    |
///
/// Views are valid during the call of the listener. Names of more than 127 bytes are cut, those of jobs
/// at 63 and those of types at 23.
struct Event {
  EventKind kind{};
  Instant at{};              ///< of the steady clock
  CalendarTime time{};       ///< the same
  std::uint64_t thread = 0;  ///< number of the thread in the process, from 1
  Id id = {};                ///< of the job, build or context
  std::uint64_t number = 0;  ///< of the job, in the order of submission
  std::string_view name = {};
  std::string_view type = {};     ///< of the workload
  std::string_view device = {};   ///< "vulkan:0"
  std::string_view context = {};  ///< "vulkan:0#1"
  std::string_view backend = {};
  std::string_view from = {};  ///< the context before
  JobTimes times = {};
  Duration took{};
  Bytes bytes = {};
  std::uint32_t attempts = 0;  ///< devices that the job was tried on
  double hit_rate = 0;         ///< `CacheMetrics::hit_rate` then
  CacheTier tier = CacheTier::none;
  std::optional<MemoryPressure> pressure = std::nullopt;
  const Error* error = nullptr;  ///< null: none

  /// Returns one line: "context switch cpu:0#1 -> vulkan:0#0 (0.8 ms)".
  WYE_API std::string text() const;
  /// Returns one JSON object on one line, with the members that the kind sets and the names of the
  /// members. Times are in milliseconds; `time` is UTC, "2026-11-30T21:04:05.123456Z".
  WYE_API std::string json() const;
};

/// Receives events. See `Runtime::listen`.
using EventListener = std::function<void(const Event&)>;

/// Returns a sink that writes each message as a JSON object on a line of the standard error of the
/// process: {"time":"2026-11-30T21:04:05.123456Z","level":"warning","room":"scheduler","text":"..."}.
/// Bytes that are not UTF-8 are replaced.
WYE_API LogSink log_json();

/// Has a listener receive the events of a runtime, until it is destroyed. When `end`, `finish` or the
/// destructor has returned, no call of the listener is running and none follows. The listener itself may
/// end it.
/// Threads: one thread at a time.
class WYE_API EventSubscription {
 public:
  EventSubscription(EventSubscription&&) noexcept;
  EventSubscription& operator=(EventSubscription&&) noexcept;
  ~EventSubscription();

  /// Ends it. Events that wait are dropped.
  void end() noexcept;
  /// Ends it after the listener has received the events until now, unless a listener calls this.
  void finish() noexcept;
  /// Returns the number of events of the runtime that were dropped while there was a listener, because
  /// listeners were slower than events.
  std::uint64_t dropped() const noexcept;

 private:
  friend class Runtime;
  explicit EventSubscription(std::unique_ptr<runtime::Subscribed> state) noexcept;
  std::unique_ptr<runtime::Subscribed> state_;
};

}  // namespace wye
