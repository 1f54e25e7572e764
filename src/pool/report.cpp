#include "pool/report.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.hpp"

namespace wye::inline v0::pool {
namespace {

/// Returns "main.cpp:42", or nothing if there is no place.
std::string text_of(const std::optional<SourceLocation>& where) {
  if (!where) return {};
  const std::string_view path = where->file;
  return base::text("{}:{}", path.substr(path.find_last_of('/') + 1), where->line);
}

}  // namespace

std::string Report::able_devices(const DeviceFilter& filter) const {
  const Fleet& fleet = *leases_.fleet_;
  std::string names;
  for (std::size_t d = 0; d < fleet.size(); ++d)
    if (fleet.is_able(d, filter)) names += (names.empty() ? "'" : ", '") + fleet.info(d).id + "'";
  return filter.workload.empty() ? names : base::text("{} for workload '{}'", names, filter.workload);
}

Error Report::no_context_free(const Leases::Wanted& wanted, Duration waited, Errc code) const {
  const Fleet& fleet = *leases_.fleet_;
  std::size_t all = 0, leased = 0;
  Instant oldest = Instant::max();
  for (std::size_t d = 0; d < fleet.size(); ++d) {
    if (!fleet.is_able(d, wanted.which)) continue;
    all += leases_.devices_[d].all.size();
    for (const auto& context : leases_.devices_[d].all) {
      if (!context->leased) continue;
      ++leased;
      oldest = std::min(oldest, context->slot.use.since);
    }
  }
  const Instant now = leases_.clock().now();
  const std::string names = able_devices(wanted.which);
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

Error Report::never_free(const Leases::Wanted& wanted) const {
  const Fleet& fleet = *leases_.fleet_;
  std::string held;
  const auto add = [&](std::string_view context, const silicon::SlotUse& use) {
    if (!use.where) return;
    held += base::text("{}'{}' was leased at {}{}", held.empty() ? "" : ", ", context, text_of(use.where),
                       use.thread == wanted.use.thread ? " by this thread" : "");
  };
  bool are_slots = false;
  for (std::size_t p = 0; p < fleet.processor_count(); ++p) {
    if (fleet.any_on(p, [&](std::size_t d) {
          return fleet.is_candidate(d, wanted.which) && leases_.devices_[d].has_idle();
        })) {
      are_slots = true;
      for (const auto& holder : fleet.silicon(p).slots().holders(*leases_.processors_[p].slots))
        add(holder.context, holder.use);
      continue;
    }
    for (std::size_t d = 0; d < fleet.size(); ++d)
      if (fleet.processor_of(d) == p && fleet.is_candidate(d, wanted.which))
        for (const auto& context : leases_.devices_[d].all) add(context->id, context->slot.use);
  }
  return Error(Errc::unavailable,
               base::text("A lease of {} without a deadline would wait for ever: all {} belong to this "
                          "thread or to threads that wait for it ({}).",
                          able_devices(wanted.which), are_slots ? "slots" : "contexts", held));
}

std::string Report::used_slots(const Leases::Wanted& wanted) const {
  const Fleet& fleet = *leases_.fleet_;
  std::string text;
  for (std::size_t p = 0; p < fleet.processor_count(); ++p) {
    if (!fleet.any_on(p, [&](std::size_t d) { return fleet.is_able(d, wanted.which); })) continue;
    const silicon::Slots& slots = fleet.silicon(p).slots();
    const std::uint32_t elsewhere = slots.used_elsewhere(), used = slots.used() + elsewhere,
                        limit = slots.limit();
    if (used >= limit)
      text += base::text(", {} of {} slots of '{}' in use{}", used, limit, fleet.silicon(p).name(),
                         elsewhere == 0 ? "" : base::text(" ({} by other processes)", elsewhere));
  }
  return text;
}

std::string Report::tagged_holders(const Leases::Wanted& wanted, Instant now) const {
  const Fleet& fleet = *leases_.fleet_;
  std::string holders;
  for (std::size_t d = 0; d < fleet.size(); ++d) {
    if (!fleet.is_able(d, wanted.which)) continue;
    for (const auto& context : leases_.devices_[d].all)
      if (const silicon::SlotUse& use = context->slot.use; context->leased && use.tag[0] != '\0')
        holders += base::text("{}'{}' for {:.1f} s", holders.empty() ? "; held by " : ", ", use.tag.data(),
                              seconds(now - use.since));
  }
  return holders;
}

void Report::log_leases() const {
  const Fleet& fleet = *leases_.fleet_;
  if (!leases_.log_.wants(LogLevel::warning, "pool")) return;
  std::vector<std::string> reports;
  {
    const base::Lock lock = base::lock_soon(leases_.mutex_);
    const Instant now = leases_.clock().now();
    for (std::size_t d = 0; d < fleet.size(); ++d)
      for (const auto& context : leases_.devices_[d].all)
        if (const silicon::SlotUse& use = context->slot.use; context->leased && use.where)
          reports.push_back(base::text(
              "The pool closes, and context '{}'{} is still leased: for {:.3g} s, since the call at {}.",
              context->id, use.tag[0] == '\0' ? "" : base::text(" (tag '{}')", use.tag.data()),
              seconds(now - use.since), text_of(use.where)));
  }
  for (const std::string& report : reports) leases_.log_.write(LogLevel::warning, "pool", report);
}

std::vector<ContextInfo> Report::contexts() const {
  const Fleet& fleet = *leases_.fleet_;
  std::vector<ContextInfo> list;
  const Instant now = leases_.clock().now();
  for (std::size_t d = 0; d < fleet.size(); ++d) {
    for (const auto& context : leases_.devices_[d].all) {
      if (context->last_used == 0) continue;
      const AdapterInfo& info = fleet.info(d);
      const silicon::SlotUse& use = context->slot.use;
      list.push_back({.id = context->id,
                      .device = info.id,
                      .backend = info.backend,
                      .active = context->leased,
                      .tag = use.tag.data(),
                      .taken_at = text_of(use.where),
                      .last_used = now - use.since,
                      .bytes = context->account->held(),
                      .kernels = context->dispatches.load(std::memory_order_relaxed),
                      .reserved = {},
                      .context_id = context->context_id,
                      .lease_id = context->lease_id});
    }
  }
  return list;
}

std::uint32_t Report::waiting_on(std::size_t processor) const {
  const Fleet& fleet = *leases_.fleet_;
  const base::Lock lock = base::lock_soon(leases_.mutex_);
  return static_cast<std::uint32_t>(
      std::count_if(leases_.waiters_.begin(), leases_.waiters_.end(), [&](const Leases::Waiter* waiter) {
        return fleet.any_on(processor,
                            [&](std::size_t d) { return fleet.is_candidate(d, waiter->wanted.which); });
      }));
}

std::vector<SlotInfo> Report::slots_used_on(std::size_t processor) const {
  std::vector<SlotInfo> list;
  const silicon::Slots& slots = leases_.fleet_->silicon(processor).slots();
  for (const silicon::Slots::Holder& holder : slots.holders(*leases_.processors_[processor].slots))
    list.push_back({.context = holder.context,
                    .tag = holder.use.tag.data(),
                    .taken_at = text_of(holder.use.where),
                    .age = holder.age,
                    .is_own = holder.is_own});
  return list;
}

}  // namespace wye::pool
