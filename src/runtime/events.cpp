#include "runtime/events.hpp"

#include <array>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/text.hpp"
#include "base/wall_time.hpp"

namespace wye::inline v0 {
namespace {

using base::text;

std::string ms(Duration time) { return text("{:.3g} ms", base::milliseconds(time)); }

std::string job_text(const Event& event) {
  const Duration whole = event.times.queue + event.times.build + event.times.transfer + event.times.run;
  const std::string on = event.device.empty()
                             ? std::string()
                             : text(" on {}", event.context.empty() ? event.device : event.context);
  if (event.error)
    return text("job '{}' failed{} after {}: {}", event.name, on, ms(whole), event.error->sentence());
  return text("job '{}' completed{} in {} (queue {}, build {}, transfer {}, run {})", event.name, on,
              ms(whole), ms(event.times.queue), ms(event.times.build), ms(event.times.transfer),
              ms(event.times.run));
}

std::string build_text(const Event& event) {
  if (event.error)
    return text("kernel '{}' not built for {}: {}", event.name, event.device, event.error->sentence());
  return text("kernel '{}' {} for {} in {} ({}, hit rate {:.0f} %)", event.name,
              event.tier == CacheTier::built ? "built" : text("loaded from {}", name(event.tier)),
              event.device, ms(event.took), to_string(event.bytes), 100 * event.hit_rate);
}

std::string pressure_text(const MemoryPressure& pressure) {
  return text("memory pressure of '{}': {} ({} of {} of the {})", pressure.silicon,
              runtime::name_of(pressure.level), to_string(pressure.held), to_string(pressure.limit),
              pressure.limited);
}

/// Sets the members of an event of each type. Views are of the data.
struct Show {
  Event& to;

  void operator()(const std::monostate&) const {}
  void operator()(const base::ContextSwitched& data) const {
    to.kind = EventKind::context_switched;
    to.from = data.from;
    to.context = data.to;
    to.device = data.device;
    to.backend = data.backend;
    to.took = data.duration;
  }
  void operator()(const base::PressureChanged& data) const {
    to.kind = EventKind::memory_pressure;
    to.pressure = {.silicon = data.silicon,
                   .limited = data.limited,
                   .held = data.held,
                   .limit = data.limit,
                   .level = static_cast<MemoryPressure::Level>(data.level)};
  }
  void operator()(const base::KernelBuilt& data) const {
    to.kind = EventKind::kernel_built;
    to.id = data.id;
    to.name = data.kernel;
    to.device = data.device;
    to.tier = data.tier;
    to.took = data.took;
    to.bytes = data.bytes;
    to.hit_rate = data.hit_rate;
    set_error(data.error);
  }
  void operator()(const base::KernelReloaded& data) const {
    to.kind = EventKind::reloaded;
    to.name = data.kernel;
    to.took = data.took;
    set_error(data.error);
  }
  void operator()(const base::JobEnded& data) const {
    to.kind = EventKind::job_completed;
    set_job(data);
    to.context = data.context;
    to.times = {data.queue_time, data.build_time, data.transfer_time, data.run_time};
    to.bytes = data.bytes;
    to.attempts = data.attempts;
  }
  void operator()(const base::JobFellBack& data) const {
    to.kind = EventKind::fell_back;
    set_job(data);
  }
  void operator()(const base::QueueFull& data) const {
    to.kind = EventKind::queue_full;
    to.number = data.limit;
  }
  void operator()(const base::DeviceChanged& data) const {
    using Change = base::DeviceChanged::Change;
    to.kind = data.change == Change::opened ? EventKind::device_opened
              : data.change == Change::lost ? EventKind::device_lost
                                            : EventKind::device_recovered;
    to.device = data.device;
    to.name = data.name;
    set_error(data.error);
  }
  void operator()(const base::ContextCreated& data) const {
    to.kind = EventKind::context_created;
    to.id = data.id;
    to.context = data.context;
    to.device = data.device;
    to.bytes = data.limit;
  }
  void operator()(const base::SlotWaited& data) const {
    to.kind = EventKind::slot_waited;
    to.context = data.context;
    to.device = data.device;
    to.took = data.took;
  }
  void operator()(const base::Evicted& data) const {
    to.kind = EventKind::evicted;
    to.name = data.name;
    to.device = data.device;
    to.bytes = data.bytes;
  }

 private:
  template <class Job>
  void set_job(const Job& data) const {
    to.id = data.id;
    to.number = data.number;
    to.name = data.name;
    to.type = data.type;
    to.device = data.device;
    set_error(data.error);
  }
  void set_error(const std::optional<Error>& error) const { to.error = error ? &*error : nullptr; }
};

}  // namespace

std::string_view name(EventKind kind) noexcept {
  constexpr std::array<std::string_view, 13> names{
      "job_completed", "kernel_built", "context_switched", "device_opened", "context_created",
      "fell_back",     "device_lost",  "device_recovered", "slot_waited",   "memory_pressure",
      "evicted",       "queue_full",   "reloaded"};
  const auto index = static_cast<std::size_t>(kind);
  return index < names.size() ? names[index] : "unknown";
}

std::string Event::text() const {
  using wye::base::text;
  switch (kind) {
    case EventKind::job_completed: return job_text(*this);
    case EventKind::kernel_built: return build_text(*this);
    case EventKind::context_switched: return text("context switch {} -> {} ({})", from, context, ms(took));
    case EventKind::device_opened: return text("device {} opened ({})", device, name);
    case EventKind::context_created:
      return text("context {} created (memory limit {})", context, to_string(bytes));
    case EventKind::fell_back:
      return text("job '{}' failed on {} and falls back: {}", name, device, error ? error->sentence() : "");
    case EventKind::device_lost:
      return text("device {} lost ({}): {}", device, name, error ? error->sentence() : "");
    case EventKind::device_recovered: return text("device {} recovered ({})", device, name);
    case EventKind::slot_waited:
      return text("context {} leased after {} of waiting for a slot", context, ms(took));
    case EventKind::memory_pressure: return pressure ? pressure_text(*pressure) : "memory pressure";
    case EventKind::evicted:
      return text("{} evicted from {} ({})", name == "array" ? "copy of an array" : text("kernel '{}'", name),
                  device, to_string(bytes));
    case EventKind::queue_full: return text("queue full: {} jobs wait (max_queued)", number);
    case EventKind::reloaded:
      return error ? text("kernel '{}' not reloaded: {}", name, error->sentence())
                   : text("kernel '{}' reloaded in {}", name, ms(took));
  }
  return "unknown event";
}

std::string_view runtime::name_of(MemoryPressure::Level level) noexcept {
  constexpr std::array<std::string_view, 3> names{"none", "some", "high"};
  return names[static_cast<std::size_t>(level)];
}

Event runtime::shown(const base::Event& event) noexcept {
  Event result;
  result.at = event.at;
  result.time = base::calendar_time(event.at);
  result.thread = event.thread;
  std::visit(Show{result}, event.data);
  return result;
}

EventSubscription::EventSubscription(std::unique_ptr<runtime::Subscribed> state) noexcept
    : state_(std::move(state)) {}
EventSubscription::EventSubscription(EventSubscription&&) noexcept = default;
EventSubscription& EventSubscription::operator=(EventSubscription&&) noexcept = default;
EventSubscription::~EventSubscription() = default;
void EventSubscription::end() noexcept {
  if (state_) state_->subscription.end();
}
void EventSubscription::finish() noexcept {
  if (state_) state_->subscription.finish();
}
std::uint64_t EventSubscription::dropped() const noexcept { return state_ ? state_->journal->dropped() : 0; }

}  // namespace wye
