#include "scheduler/placer.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/gate.hpp"
#include "base/internals.hpp"
#include "base/text.hpp"
#include "device/backend.hpp"

namespace wye::inline v0::scheduler {
namespace {

/// Returns whether no program of `programs` can be used on `device`.
bool is_refused(const detail::Programs& programs, const device::DeviceBase& device) {
  for (std::size_t i = 0; i < programs.size(); ++i)
    if (programs[i]->current().runs_on(device)) return false;
  return true;
}

/// Returns whether an operand of a job is memory of one device.
bool uses_device_memory(const Job& work) noexcept {
  for (std::size_t c = 0; c < work.size(); ++c)
    for (const Operand& operand : work[c].arguments())
      if (operand.kind == Operand::Kind::buffer || operand.kind == Operand::Kind::address) return true;
  return false;
}

}  // namespace

Placer::Placer(pool::Pool& pool, const Clock& clock, const SchedulerOptions& options,
               std::function<void(const Table&)> add_places)
    : pool_(pool),
      clock_(clock),
      preferences_(options.preferences),
      mode_(options.placement),
      add_places_(std::move(add_places)) {
  add_table();
}

/// Adds a table with the devices that the pool has now. Throws: std::bad_alloc.
void Placer::add_table() {
  std::vector<Choice> choices;
  for (std::size_t d = 0; d < pool_.fleet().size(); ++d) {
    const AdapterInfo& info = pool_.fleet().info(d);
    choices.push_back({.backend = info.backend,
                       .emulated = device::is_emulated(info),
                       .is_host = info.features.has(Feature::host_memory),
                       .type = info.type,
                       .name = info.name,
                       .id = info.id,
                       .silicon = &pool_.fleet().silicon(pool_.fleet().processor_of(d))});
  }
  auto made = std::make_unique<const Table>(preferences_, std::move(choices), mode_);
  const base::Lock lock = base::lock_soon(mutex_);
  const Table* const last = table_.load(std::memory_order_relaxed);
  if (last && last->choices.size() >= made->choices.size()) return;  // another thread has added it
  tables_.push_back(std::move(made));
  if (last) add_places_(*tables_.back());
  table_.store(tables_.back().get(), std::memory_order_release);
}

const Table& Placer::add_devices() noexcept {
  try {
    add_table();
  } catch (const std::bad_alloc&) {  // the next job tries it again
  }
  return *table_.load(std::memory_order_acquire);
}

std::optional<Home> Placer::find_home(Candidates& job) const {
  const Decision* const first = find_next(job);
  if (!first) return std::nullopt;
  Home home{.device = first->device};
  // A job that requests its device, has failed on another one, or uses memory of it runs there only.
  if (!job.has_failed && job.on() != pool_.fleet().info(first->device).id && !uses_device_memory(job.job))
    home = home_at(*job.row, first->device, [&](std::size_t device) {
      const Decision considered = consider(job, device);
      return considered.is_open() || considered.code == RefusalCode::device_lost;  // it may return
    });
  if (job.row->choices[home.device].is_host && !home.is_shared) return std::nullopt;
  return home;
}

void Placer::take_over(Candidates& job, std::size_t device, RefusalCode why) const {
  auto& decisions = job.decisions;
  if (!decisions.empty() && decisions.back().is_open()) {
    if (decisions.back().device == device) return;
    decisions.back().code = why;
  }
  const auto known =
      std::find_if(decisions.begin(), decisions.end(), [&](const Decision& d) { return d.device == device; });
  if (known == decisions.end())
    decisions.emplace_back();
  else
    std::rotate(known, known + 1, decisions.end());
  decisions.back() = consider(job, device);
}

/// Considers the first device again that was passed over for one of `codes`. Returns its decision,
/// which is the last one then; null if there is none.
Decision* Placer::consider_again(Candidates& job, std::initializer_list<RefusalCode> codes) const {
  const auto passed = std::find_if(job.decisions.begin(), job.decisions.end(), [&](const Decision& one) {
    return std::find(codes.begin(), codes.end(), one.code) != codes.end();
  });
  if (passed == job.decisions.end()) return nullptr;
  std::rotate(passed, passed + 1, job.decisions.end());
  Decision& last = job.decisions.back();
  return &(last = consider(job, last.device));
}

Decision* Placer::find_next(Candidates& job) const {
  if (!job.decisions.empty() && job.decisions.back().is_open()) {  // chosen when the job was submitted
    Decision& chosen = job.decisions.back();
    if (!is_lost(chosen) && !is_blamed(job, chosen) && !is_suspect(chosen)) return &chosen;
  }
  while (Decision* const passed =
             consider_again(job, {RefusalCode::busy, RefusalCode::slower, RefusalCode::trial}))
    if (passed->is_open() && !is_suspect(*passed)) return passed;
  const std::vector<std::size_t>& devices = job.row->devices;
  while (job.next_candidate < devices.size()) {
    if (job.has_decision(devices[job.next_candidate])) {
      ++job.next_candidate;
      continue;
    }
    Decision& decision = job.decisions.emplace_back(consider(job, devices[job.next_candidate]));
    ++job.next_candidate;
    if (decision.is_open() && job.has_failed && job.fallback == Fallback::forbid)
      decision.code = RefusalCode::fallback_forbidden;
    if (decision.is_open() && !is_suspect(decision)) return &decision;
  }
  // No other device can run it: it tries the first of those that were passed over.
  while (Decision* const suspect =
             consider_again(job, {RefusalCode::device_suspect, RefusalCode::memory_errors}))
    if (suspect->is_open()) return suspect;
  return nullptr;
}

/// Refuses a suspect device. Returns whether it did.
bool Placer::is_suspect(Decision& decision) const noexcept {
  const pool::Suspicion found = pool_.suspicion(decision.device);
  if (found == pool::Suspicion::none) return false;
  decision.refuse(found == pool::Suspicion::memory_errors ? RefusalCode::memory_errors
                                                          : RefusalCode::device_suspect);
  return true;
}

/// Refuses a device if a kernel of the job is blamed for losses of it. Returns whether it did.
bool Placer::is_blamed(const Candidates& job, Decision& decision) const {
  auto program = blame_.find(job.job, decision.device, clock_);
  if (!program) return false;
  decision.detail = std::make_shared<Decision::Detail>(Decision::Detail{.program = std::move(program)});
  decision.refuse(RefusalCode::kernel_blamed);
  return true;
}

bool Placer::reconsider(Candidates& job) const {
  if (job.has_failed) return false;
  for (const Decision& decision : job.decisions) {
    if (decision.code != RefusalCode::device_lost ||
        base::state_of(pool_.fleet().device(decision.device))->lost())
      continue;
    job.decisions.clear();
    job.next_candidate = 0;
    return true;
  }
  return false;
}

std::optional<Error> Placer::find_preference_error(std::string_view prefer) const {
  if (prefer.empty() || prefer == "gpu") return std::nullopt;
  std::vector<const AdapterInfo*> there;
  for (const AdapterInfo& info : pool_.adapters()) {
    if (info.id == prefer || info.backend == prefer) return std::nullopt;
    if (info.usable) there.push_back(&info);
  }
  return device::not_found(prefer, there).with_context("in JobOptions::prefer");
}

const Row& Placer::preferring(const Row& row, std::string_view prefer) {
  const base::Lock lock = base::lock_soon(mutex_);
  const std::pair key(&row, std::string(prefer));
  const auto known = preferring_.find(key);
  return known != preferring_.end()
             ? known->second
             : preferring_.emplace(key, scheduler::preferring(row, prefer)).first->second;
}

std::optional<Error> Placer::find_target_error(std::string_view on) const {
  if (on.empty()) return std::nullopt;
  const auto is_named = [&](const AdapterInfo& info) { return info.id == on || info.backend == on; };
  const auto& adapters = pool_.adapters();
  std::vector<const AdapterInfo*> there;
  for (const AdapterInfo& info : adapters) {
    if (!info.usable) continue;
    if (is_named(info)) return std::nullopt;
    there.push_back(&info);
  }
  if (const auto unusable = std::find_if(adapters.begin(), adapters.end(), is_named);
      unusable != adapters.end())
    return Error(Errc::unavailable, base::text("'{}' cannot be used: {}", on, unusable->reason));
  return device::not_found(on, there);
}

/// Refuses a device that is lost. Returns whether it did.
bool Placer::is_lost(Decision& decision) const noexcept {
  Device copy;
  const Device& device = pool_.fleet().device(decision.device, copy);
  const Error* lost = base::state_of(device)->lost();
  if (!lost) return false;
  pool_.note_loss(decision.device);
  decision.refuse(RefusalCode::device_lost);
  try {
    decision.set_error(*lost);
  } catch (const std::bad_alloc&) {  // `Explainer` asks the device
  }
  return true;
}

Decision Placer::consider(const Candidates& job, std::size_t index) const {
  Decision decision{.device = static_cast<std::uint32_t>(index)};
  Device copy;
  const Device& device = pool_.fleet().device(index, copy);
  const std::string_view on = job.on();
  if (!on.empty() && on != device.info().id && on != device.info().backend) {
    decision.refuse(RefusalCode::not_requested);
    return decision;
  }
  if (is_lost(decision) || is_blamed(job, decision)) return decision;
  const std::shared_ptr<device::DeviceBase>& state = base::state_of(device);
  const Job& work = job.job;
  for (std::size_t c = 0; c < work.size(); ++c) {
    const auto& programs = base::programs_of(work[c]);
    if (is_refused(programs, *state)) {
      decision.detail = std::make_shared<Decision::Detail>(Decision::Detail{.program = programs[0]});
      decision.refuse(RefusalCode::kernel_unsupported);
      return decision;
    }
    const Arguments& arguments = work[c].arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].kind != Operand::Kind::buffer && arguments[i].kind != Operand::Kind::address) continue;
      const auto* buffer = device::buffer_of(arguments[i]);
      if (!buffer || buffer->device() == state) continue;
      decision.detail = std::make_shared<Decision::Detail>(
          Decision::Detail{.program = programs[0], .owner = buffer->device()});
      decision.argument = static_cast<std::uint16_t>(i + 1);
      decision.refuse(RefusalCode::foreign_buffer);
      return decision;
    }
  }
  return decision;
}

void Placer::note_run(Candidates& job, Decision& decision) const noexcept {
  const std::size_t ran = decision.device;
  decision.verdict = Candidate::Verdict::ran;
  decision.code = RefusalCode::none;
  if (job.on().empty() && !uses_device_memory(job.job)) return;
  try {
    for (; job.next_candidate < job.row->devices.size(); ++job.next_candidate)
      if (const std::size_t next = job.row->devices[job.next_candidate]; !job.has_decision(next))
        job.decisions.push_back(pass(job, next, ran));
  } catch (const std::bad_alloc&) {  // they have no decisions
  }
}

Decision Placer::pass(const Candidates& job, std::size_t device, std::size_t ran) const {
  Decision considered = consider(job, device);
  if (considered.is_open()) considered.code = passed_code(*job.row, device, ran);
  return considered;
}

RefusalCode passed_code(Chosen chosen) noexcept {
  switch (chosen) {
    case Chosen::by_time: return RefusalCode::slower;
    case Chosen::trial: return RefusalCode::trial;
    case Chosen::by_order:  // an equal device
    case Chosen::idle: break;
  }
  return RefusalCode::busy;
}

RefusalCode passed_code(const Row& row, std::size_t device, std::size_t ran) noexcept {
  return row.choices[device].emulated && !row.choices[ran].emulated ? RefusalCode::emulated
                                                                    : RefusalCode::lower_preference;
}

}  // namespace wye::scheduler
