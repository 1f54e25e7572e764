// The errors of requests, the report of leases that have not ended, and the lists of a pool.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "pool/pool.hpp"

namespace wye::inline v0::pool {
namespace {

/// Returns "main.cpp:42", or nothing if there is no place.
std::string text_of(const std::optional<SourceLocation>& where) {
  if (!where) return {};
  const std::string_view path = where->file;
  return base::text("{}:{}", path.substr(path.find_last_of('/') + 1), where->line);
}

/// Returns " for workload 'matrix'", or nothing if it has no name.
std::string for_workload(std::string_view name) {
  return name.empty() ? std::string() : base::text(" for workload '{}'", name);
}

MemoryShare share_of(const silicon::MemoryAccount::Entry& entry) {
  MemoryShare share{.owner = entry.owner,
                    .level = std::string(silicon::name(entry.level)),
                    .held = entry.held,
                    .limit = std::nullopt};
  if (entry.limit != silicon::MemoryAccount::no_limit) share.limit = entry.limit;
  return share;
}

}  // namespace

Error Pool::no_candidate(const Wanted& wanted) const {
  const Device* named = nullptr;
  for (std::size_t d = 0; d < device_count(); ++d) {
    const Error* lost = is_able(d, wanted) ? base::state_of(devices_[d])->lost() : nullptr;
    if (lost) return lost->with_context("while leasing a context");
    if (!named && is_named(d, wanted)) named = &devices_[d];
  }
  if (named)
    return Error(Errc::unsupported, base::text("No device has the needed features{} ({}): '{}' lacks {}.",
                                               for_workload(wanted.workload.name), to_string(wanted.needs),
                                               named->id(), device::lacking(named->info(), wanted.needs)));
  std::vector<const AdapterInfo*> there;
  for (const Device& device : std::span(devices_).first(device_count())) there.push_back(&device.info());
  return device::not_found(wanted.on, there);
}

std::string Pool::able_devices(const Wanted& wanted) const {
  std::string names;
  for (std::size_t d = 0; d < device_count(); ++d)
    if (is_able(d, wanted)) names += (names.empty() ? "'" : ", '") + infos_[d].id + "'";
  return names + for_workload(wanted.workload.name);
}

Error Pool::no_context_free(const Wanted& wanted, Duration waited, Errc code) const {
  std::size_t all = 0, leased = 0;
  Instant oldest = Instant::max();
  for (std::size_t d = 0; d < device_count(); ++d) {
    if (!is_able(d, wanted)) continue;
    all += contexts_[d].size();
    for (const auto& context : contexts_[d]) {
      if (!context->leased) continue;
      ++leased;
      oldest = std::min(oldest, context->slot.use.since);
    }
  }
  const Instant now = clock_->now();
  const std::string names = able_devices(wanted);
  const std::string age =
      leased == 0 ? std::string() : base::text("; oldest for {:.1f} s", seconds(now - oldest));
  const std::string held =
      base::text("{} of {} leased{}{}{}", leased, all, used_slots(wanted), age, tagged_holders(wanted, now));
  const double rounded = std::round(seconds(waited) * 1e3) / 1e3;
  if (code == Errc::unavailable)
    return Error(code, base::text("No context of {} is free ({}).", names, held));
  if (code == Errc::cancelled)
    return Error(code, base::text("The wait for a context of {} was stopped after {:.6g} s ({}).", names,
                                  rounded, held));
  return Error(code, base::text("No context of {} became free within {:.6g} s ({}).", names, rounded, held));
}

Error Pool::never_free(const Wanted& wanted) const {
  std::string held;
  const auto add = [&](std::string_view context, const silicon::SlotUse& use) {
    if (!use.where) return;
    held += base::text("{}'{}' was leased at {}{}", held.empty() ? "" : ", ", context, text_of(use.where),
                       use.thread == wanted.use.thread ? " by this thread" : "");
  };
  bool are_slots = false;
  for (std::size_t s = 0; s < processors().size(); ++s) {
    if (any_on(s, [&](std::size_t d) { return is_candidate(d, wanted) && has_idle(d); })) {
      are_slots = true;
      for (const auto& holder : silicon_[s].silicon->slots().holders(*silicon_[s].slots))
        add(holder.context, holder.use);
      continue;
    }
    for (std::size_t d = 0; d < device_count(); ++d)
      if (silicon_of_[d] == s && is_candidate(d, wanted))
        for (const auto& context : contexts_[d]) add(context->id, context->slot.use);
  }
  return Error(Errc::unavailable,
               base::text("A lease of {} without a deadline would wait for ever: all {} belong to this "
                          "thread or to threads that wait for it ({}).",
                          able_devices(wanted), are_slots ? "slots" : "contexts", held));
}

std::string Pool::used_slots(const Wanted& wanted) const {
  std::string text;
  for (std::size_t s = 0; s < processors().size(); ++s) {
    if (!any_on(s, [&](std::size_t d) { return is_able(d, wanted); })) continue;
    const silicon::Slots& slots = silicon_[s].silicon->slots();
    const std::uint32_t elsewhere = slots.used_elsewhere(), used = slots.used() + elsewhere,
                        limit = slots.limit();
    if (used >= limit)
      text += base::text(", {} of {} slots of '{}' in use{}", used, limit, silicon_[s].silicon->name(),
                         elsewhere == 0 ? "" : base::text(" ({} by other processes)", elsewhere));
  }
  return text;
}

std::string Pool::tagged_holders(const Wanted& wanted, Instant now) const {
  std::string holders;
  for (std::size_t d = 0; d < device_count(); ++d) {
    if (!is_able(d, wanted)) continue;
    for (const auto& context : contexts_[d])
      if (const silicon::SlotUse& use = context->slot.use; context->leased && use.tag[0] != '\0')
        holders += base::text("{}'{}' for {:.1f} s", holders.empty() ? "; held by " : ", ", use.tag.data(),
                              seconds(now - use.since));
  }
  return holders;
}

void Pool::report_leases() const {
  if (!log_.wants(LogLevel::warning, "pool")) return;
  std::vector<std::string> reports;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    const Instant now = clock_->now();
    for (const auto& of_device : std::span(contexts_).first(device_count()))
      for (const auto& context : of_device)
        if (const silicon::SlotUse& use = context->slot.use; context->leased && use.where)
          reports.push_back(base::text(
              "The pool closes, and context '{}'{} is still leased: for {:.3g} s, since the call at {}.",
              context->id, use.tag[0] == '\0' ? "" : base::text(" (tag '{}')", use.tag.data()),
              seconds(now - use.since), text_of(use.where)));
  }
  for (const std::string& report : reports) log_.write(LogLevel::warning, "pool", report);
}

std::vector<ContextInfo> Pool::contexts_locked() const {
  std::vector<ContextInfo> list;
  const Instant now = clock_->now();
  for (const auto& of_device : std::span(contexts_).first(device_count())) {
    for (const auto& context : of_device) {
      if (context->last_used == 0) continue;
      const AdapterInfo& info = infos_[context->device];
      const silicon::SlotUse& use = context->slot.use;
      list.push_back({.id = context->id,
                      .device = info.id,
                      .backend = info.backend,
                      .active = context->leased,
                      .tag = use.tag.data(),
                      .taken_at = text_of(use.where),
                      .last_used = now - use.since,
                      .bytes = context->account->held(),
                      .kernels = context->dispatches.load(std::memory_order_relaxed)});
    }
  }
  return list;
}

void Pool::add_reserved(std::vector<ContextInfo>& contexts) const {
  for (std::size_t d = 0; d < device_count(); ++d) {
    const auto is_here = [&](const ContextInfo& context) { return context.device == infos_[d].id; };
    if (std::none_of(contexts.begin(), contexts.end(), is_here)) continue;
    const Bytes reserved = base::state_of(device(d))->reserved_memory();
    for (ContextInfo& context : contexts)
      if (is_here(context)) context.reserved = reserved;
  }
}

DeviceState Pool::state_of(std::size_t device) const {
  const base::Lock lock = base::lock_soon(mutex_);
  const Health& health = health_[device];
  return {.id = infos_[device].id,
          .health = health.state == DeviceHealth::healthy && suspicion_locked(device) != Suspicion::none
                        ? DeviceHealth::suspect
                        : health.state,
          .generation = health.generation,
          .last_fault = health.last_fault};
}

std::vector<SiliconInfo> Pool::silicon() const {
  std::vector<SiliconInfo> list;
  for (std::size_t s = 0; s < processors().size(); ++s) {
    silicon::Silicon& silicon = *silicon_[s].silicon;
    SiliconInfo& info = list.emplace_back();
    info.name = silicon.name();
    for (std::size_t d = 0; d < device_count(); ++d)
      if (silicon_of_[d] == s) info.devices.push_back(state_of(d));
    info.slots = silicon.slots().limit();
    info.used = silicon.slots().used();
    for (const silicon::Slots::Holder& holder : silicon.slots().holders(*silicon_[s].slots))
      info.leases.push_back({.context = holder.context,
                             .tag = holder.use.tag.data(),
                             .taken_at = text_of(holder.use.where),
                             .age = holder.age,
                             .is_own = holder.is_own});
    {
      const base::Lock lock = base::lock_soon(mutex_);
      info.waiting = static_cast<std::uint32_t>(
          std::count_if(waiters_.begin(), waiters_.end(), [&](const Waiter* waiter) {
            return any_on(s, [&](std::size_t d) { return is_candidate(d, waiter->wanted); });
          }));
    }
    for (const silicon::MemoryAccount::Entry& entry : silicon.account()->entries())
      info.memory.push_back(share_of(entry));
    for (const auto& tag : silicon_[s].tags)
      info.memory.push_back(share_of({tag->owner(), tag->level(), tag->held(), tag->limit()}));
    info.pressure = pressure_of(silicon_[s]).level;
    for (const silicon::MachineShare::Process& one : silicon.processes()) {
      info.processes.push_back(
          {.pid = one.number, .used = one.used, .held = one.held, .waits = one.waits, .is_own = one.is_own});
      if (one.is_own) continue;
      info.used_elsewhere += one.used;
      info.held_elsewhere += one.held;
    }
  }
  return list;
}

PoolMetrics Pool::metrics_locked() const {
  PoolMetrics metrics;
  for (const auto& of_device : std::span(contexts_).first(device_count())) {
    for (const auto& context : of_device) {
      if (context->last_used == 0) continue;
      ++metrics.contexts;
      metrics.active += context->leased;
    }
  }
  for (const SharedSilicon& one : processors()) metrics.bytes += one.account->held();
  metrics.leases = leases_;
  metrics.switches = switches_.load(std::memory_order_relaxed);
  metrics.timeouts = timeouts_;
  metrics.evictions = evictions_.load(std::memory_order_relaxed);
  metrics.recoveries = recoveries_;
  metrics.shortages = shortages_.load(std::memory_order_relaxed);
  return metrics;
}

}  // namespace wye::pool
