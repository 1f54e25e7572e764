// The errors of requests, the report of leases that have not ended, and the lists of a pool.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "pool/pool.hpp"

namespace wye {
inline namespace v0 {
namespace pool {
namespace {

/// Returns "main.cpp:42".
std::string text_of(const SourceLocation& where) {
  const std::string_view path = where.file;
  return base::text("{}:{}", path.substr(path.find_last_of('/') + 1), where.line);
}

/// Returns " for workload 'matrix'", or nothing if it has no name.
std::string for_workload(std::string_view name) {
  return name.empty() ? std::string() : base::text(" for workload '{}'", name);
}

}  // namespace

Error Pool::no_candidate(const Wanted& wanted) const {
  const Device* named = nullptr;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const Error* lost = is_able(d, wanted) ? base::state_of(devices_[d])->lost() : nullptr;
    if (lost) return lost->with_context("while leasing a context");
    if (!named && is_named(d, wanted)) named = &devices_[d];
  }
  if (named)
    return Error(Errc::unsupported,
                 base::text("No device has the needed features{} ({}): '{}' lacks {}.",
                            for_workload(wanted.workload.name), to_string(wanted.needs), named->id(),
                            to_string(wanted.needs.without(named->info().features))));
  std::string there;
  for (const Device& device : devices_) there += (there.empty() ? "'" : ", '") + device.id() + "'";
  return Error(Errc::not_found, base::text("There is no device '{}' (there is {}).", wanted.on, there));
}

std::string Pool::able_devices(const Wanted& wanted) const {
  std::string names;
  for (std::size_t d = 0; d < devices_.size(); ++d)
    if (is_able(d, wanted)) names += (names.empty() ? "'" : ", '") + devices_[d].id() + "'";
  return names + for_workload(wanted.workload.name);
}

Error Pool::no_context_free(const Wanted& wanted, Duration waited, Errc code) const {
  std::size_t all = 0, leased = 0;
  Instant oldest = Instant::max();
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (!is_able(d, wanted)) continue;
    all += contexts_[d].size();
    for (const auto& context : contexts_[d]) {
      if (!context->leased) continue;
      ++leased;
      oldest = std::min(oldest, context->since);
    }
  }
  const Instant now = clock_->now();
  const std::string names = able_devices(wanted);
  const std::string held = base::text("{} of {} leased; oldest for {:.1f} s{}", leased, all,
                                      seconds(now - oldest), tagged_holders(wanted, now));
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
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (!is_candidate(d, wanted)) continue;
    for (const auto& context : contexts_[d]) {
      held += base::text("{}'{}' was leased at {}", held.empty() ? "" : ", ", context->id,
                         text_of(*context->where));
      if (context->taken_by == wanted.taken_by) held += " by this thread";
    }
  }
  return Error(Errc::unavailable,
               base::text("A lease of {} without a deadline would wait for ever: all contexts belong to this "
                          "thread or to threads that wait for it ({}).",
                          able_devices(wanted), held));
}

std::string Pool::tagged_holders(const Wanted& wanted, Instant now) const {
  std::string holders;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (!is_able(d, wanted)) continue;
    for (const auto& context : contexts_[d])
      if (context->leased && context->tag[0] != '\0')
        holders += base::text("{}'{}' for {:.1f} s", holders.empty() ? "; held by " : ", ",
                              context->tag.data(), seconds(now - context->since));
  }
  return holders;
}

void Pool::report_leases() const {
  if (!log_.wants(LogLevel::warning, "pool")) return;
  std::vector<std::string> reports;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    const Instant now = clock_->now();
    for (const auto& of_device : contexts_)
      for (const auto& context : of_device)
        if (context->leased && context->where)
          reports.push_back(base::text(
              "The pool closes, and context '{}'{} is still leased: for {:.3g} s, since the call at {}.",
              context->id, context->tag[0] == '\0' ? "" : base::text(" (tag '{}')", context->tag.data()),
              seconds(now - context->since), text_of(*context->where)));
  }
  for (const std::string& report : reports) log_.write(LogLevel::warning, "pool", report);
}

std::vector<ContextInfo> Pool::contexts_locked() const {
  std::vector<ContextInfo> list;
  const Instant now = clock_->now();
  for (const auto& of_device : contexts_) {
    for (const auto& context : of_device) {
      if (context->last_used == 0) continue;
      const AdapterInfo& info = devices_[context->device].info();
      list.push_back({.id = context->id,
                      .device = info.id,
                      .backend = info.backend,
                      .active = context->leased,
                      .tag = context->tag.data(),
                      .taken_at = context->where ? text_of(*context->where) : "",
                      .last_used = now - context->since,
                      .bytes = context->account->held(),
                      .kernels = context->dispatches.load(std::memory_order_relaxed)});
    }
  }
  return list;
}

PoolMetrics Pool::metrics_locked() const {
  PoolMetrics metrics;
  for (const auto& of_device : contexts_) {
    for (const auto& context : of_device) {
      if (context->last_used == 0) continue;
      ++metrics.contexts;
      metrics.active += context->leased;
    }
  }
  for (const auto& account : accounts_) metrics.bytes += account->held();
  metrics.leases = leases_;
  metrics.switches = switches_;
  metrics.timeouts = timeouts_;
  metrics.evictions = evictions_.load(std::memory_order_relaxed);
  return metrics;
}

}  // namespace pool
}  // namespace v0
}  // namespace wye
