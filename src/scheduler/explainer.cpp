// The sentences of decisions, made on request or when a job fails.
#include <algorithm>
#include <string_view>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "scheduler/comparison.hpp"
#include "scheduler/explainer.hpp"
#include "scheduler/plan.hpp"

namespace wye::inline v0 {
namespace scheduler {
namespace {

/// Appends `sentence` if `text` does not contain it.
void append_once(std::string& text, const std::string& sentence) {
  if (text.find(sentence) == std::string::npos) text += sentence;
}

/// Returns why a device comes before another one, as the end of a sentence.
std::string order_of(const Row& row, std::size_t first, std::size_t then) {
  if (row.is_preferred(first) && !row.is_preferred(then)) return "is preferred by the job.";
  if (row.choices[then].backend == row.choices[first].backend) return "has the same backend and comes first.";
  return base::text("comes first for {} work of {} and more.", row.type.name, to_string(row.at_least));
}

/// Returns whether a device has run a job, so that the devices without a decision were passed over.
bool has_passed(const Record& record) noexcept {
  if (record.extras && record.extras->plan) return false;
  return std::any_of(record.decisions.begin(), record.decisions.end(),
                     [](const Decision& one) { return one.verdict == Candidate::Verdict::ran; });
}

}  // namespace

/// Returns the error of an attempt on a device, or of the loss of the device, as a sentence.
std::string Explainer::failure(const Record& record, const Decision& decision) const {
  if (const Error* const own = decision.error()) return own->sentence();
  const Device device = pool_.fleet().device(decision.device);
  const Error* const lost =
      decision.code == RefusalCode::device_lost ? base::state_of(device)->lost() : nullptr;
  if (lost) return lost->sentence();
  return record.error ? record.error->sentence() : "The device was lost.";
}

std::string Explainer::describe(const Record& record, const Decision& decision) const {
  const AdapterInfo& info = pool_.fleet().info(decision.device);
  const std::string& ran_on = pool_.fleet().info(record.device).id;
  switch (decision.code) {
    case RefusalCode::none:
    case RefusalCode::unusable_adapter: return info.reason;
    case RefusalCode::not_requested: return base::text("the job requests '{}', not it.", record.on());
    case RefusalCode::device_lost:
    case RefusalCode::attempt_failed: return failure(record, decision);
    case RefusalCode::device_suspect: return "work of a job that ran out of time was in flight on it.";
    case RefusalCode::memory_errors: return "its memory has had errors lately that ECC could not correct.";
    case RefusalCode::kernel_blamed:
      return base::text(
          "Kernel '{}' was in flight there at {} losses of the device, and has not completed since.",
          decision.detail->program->name(), Blame::most_losses);
    case RefusalCode::kernel_unsupported: {
      const auto why =
          decision.detail->program->current().refusal(*base::state_of(pool_.fleet().device(decision.device)));
      if (why) return why->sentence();
      // The kernel was replaced after the decision (hot reload).
      return base::text("Kernel '{}' had no source for '{}'.", decision.detail->program->name(), info.id);
    }
    case RefusalCode::foreign_buffer:
      return base::text("Argument {} of '{}' is a buffer of device '{}'.", decision.argument,
                        decision.detail->program->name(), decision.detail->owner->info().id);
    case RefusalCode::other_silicon: return "it is not on the processor of the graph's other GPU steps.";
    case RefusalCode::busy: return base::text("'{}' had less to do.", ran_on);
    case RefusalCode::slower: return slowness(record, decision.device);
    case RefusalCode::trial: return base::text("the job was a trial of '{}'.", ran_on);
    case RefusalCode::fallback_forbidden: return base::text("fallback of {} is forbidden.", record.object());
    case RefusalCode::emulated:
      return base::text("it runs on the CPU, so '{}' and every other device come first.", ran_on);
    case RefusalCode::lower_preference:
      return base::text("'{}' {}", ran_on, order_of(*record.row, record.device, decision.device));
  }
  return {};
}

std::optional<Estimate> Explainer::estimate(const Record& record, std::size_t device) const {
  const Timing alone = times_.find(record.kind(record.row->group_of(device))).share;
  if (alone.count == 0) return std::nullopt;
  return Estimate{alone.mean, alone.spread, alone.count};
}

/// Returns how long jobs like one take on a device, and on the device that ran it, as a sentence.
std::string Explainer::slowness(const Record& record, std::size_t device) const {
  const auto time_on = [&](std::size_t on) {
    const auto known = estimate(record, on);
    return known ? base::text("{:.3g} ms ({} runs)", milliseconds(known->time), known->runs)
                 : std::string("a time that other sizes suggest");
  };
  return base::text("jobs like it take {} there, and {} on '{}'.", time_on(device), time_on(record.device),
                    pool_.fleet().info(record.device).id);
}

/// Returns the decision about a device that was not considered before the job ran.
Decision Explainer::pass(const Record& record, std::size_t device) const {
  Decision passed = placer_.pass(record, device, record.device);
  const bool is_of_table =
      passed.code == RefusalCode::lower_preference || passed.code == RefusalCode::emulated;
  if (!learns_ || !is_of_table) return passed;
  const auto there = estimate(record, device), here = estimate(record, record.device);
  if (there && here && there->time > here->time) passed.code = RefusalCode::slower;
  return passed;
}

/// Returns the expected time of a job that has run, and the time that it took.
std::string Explainer::times_taken(const Record& record) const {
  const std::string took = base::text("took {:.3g} ms. ", milliseconds(record.settled_at - record.started));
  if (record.runs.estimate == Duration::zero()) return took;
  const auto known = estimate(record, record.device);
  return base::text("expected {:.3g} ms ({} runs), {}", milliseconds(record.runs.estimate),
                    known ? known->runs : 0, took);
}

Explanation Explainer::explain(const Record& record) const {
  Explanation explanation;
  explanation.job = record.name();
  if (is_inherited()) return explanation;
  explanation.tag = record.tag();
  if (record.state == State::abandoned) return explanation;  // the thread that runs it may still decide
  if (!record.is_settled) return explanation;
  explanation.candidates = candidates(record);
  explanation.variants = variants(record);
  if (!record.error) explanation.code = code(record);
  return explanation;
}

Explanation Explainer::foresee(const Record& record) const {
  Explanation explanation{
      .job = std::string(record.name()), .candidates = candidates(record), .tag = std::string(record.tag())};
  explanation.candidates.front().verdict = Candidate::Verdict::chosen;
  return explanation;
}

/// Returns the decisions about all devices, that about the device of a job that has run, or would run,
/// first.
std::vector<Candidate> Explainer::candidates(const Record& record) const {
  std::vector<Candidate> all;
  const auto add = [&](const Decision& decision) {
    const AdapterInfo& info = pool_.fleet().info(decision.device);
    const bool is_its = decision.verdict == Candidate::Verdict::ran;
    const bool has_run = is_its && record.is_settled;
    Candidate& added = all.emplace_back(
        Candidate{info.id, info.name, decision.verdict,
                  is_its ? (has_run ? times_taken(record) : "") + reason(record) : describe(record, decision),
                  decision.code, to_optional(decision.error())});
    if (!has_run || record.runs.estimate != Duration::zero())
      added.estimate = estimate(record, decision.device);
    if (!has_run) return;
    added.took = record.settled_at - record.started;
    if (added.estimate) added.estimate->time = record.runs.estimate;
  };
  for (const Decision& decision : record.decisions)
    if (decision.verdict == Candidate::Verdict::ran) add(decision);
  for (const Decision& decision : record.decisions)
    if (decision.verdict != Candidate::Verdict::ran && !decision.is_open()) add(decision);
  if (has_passed(record))
    for (const std::size_t device : record.row->devices)
      if (!record.has_decision(device)) add(pass(record, device));
  for (const AdapterInfo& info : pool_.adapters())
    if (!info.usable)
      all.push_back(
          {info.id, info.name, Candidate::Verdict::refused, info.reason, RefusalCode::unusable_adapter});
  return all;
}

std::string Explainer::reason(const Record& record) const {
  if (const Error* inherited = pool_.origin().error()) return inherited->sentence();
  std::string text = placement_reason(record);
  for (std::size_t i = 0; record.extras && i < record.extras->passed_over.size(); ++i) {
    const device::Program& program = *record.extras->passed_over[i];
    if (const auto why = program.current().passed_over(*base::state_of(pool_.fleet().device(record.device))))
      append_once(text, " " + why->sentence());
  }
  for (std::size_t i = 0; record.extras && i < record.extras->early_loop_ends.size(); ++i)
    append_once(text, " " + device::early_loop_ends(record.extras->early_loop_ends[i]->name(),
                                                    pool_.fleet().info(record.device)));
  for (const VariantChoice& choice : variants(record)) append_once(text, scheduler::text(choice));
  if (record.batch_size > 1)
    text += base::text(" It was submitted together with {} other job{}{}.", record.batch_size - 1,
                       record.batch_size == 2 ? "" : "s",
                       record.launch_size == 1
                           ? ""
                           : base::text(", {} of them in one launch with it", record.launch_size - 1));
  return text;
}

std::vector<VariantChoice> Explainer::variants(const Record& record) const {
  std::vector<VariantChoice> choices;
  if (is_inherited()) return choices;  // a thread of the parent may hold a lock
  if (!record.extras) return choices;
  for (const auto& ran : record.extras->variants) choices.push_back(ran.comparison->choice(ran.program));
  return choices;
}

std::vector<KernelCode> Explainer::code(const Record& record) const {
  std::vector<KernelCode> code;
  if (is_inherited() || record.plan_run || record.job.size() == 0) return code;
  if (record.extras && record.extras->plan) return code;
  const Device device = pool_.fleet().device(record.device);
  const auto add = [&](const device::Program& program) {
    code.push_back(program.current().code(*base::state_of(device)));
  };
  if (!record.extras || record.extras->programs.empty())
    add(*base::program_of(record.job[0]));
  else
    for (const auto& program : record.extras->programs) add(*program);
  return code;
}

std::string Explainer::placement_reason(const Record& record) const {
  const AdapterInfo& info = pool_.fleet().info(record.device);
  std::string text;
  for (const Decision& decision : record.decisions) {
    if (decision.verdict != Candidate::Verdict::failed) continue;
    text += base::text("{} failed: {} ", pool_.fleet().info(decision.device).id, describe(record, decision));
  }
  if (!text.empty()) return text + base::text("'{}' was next.", info.id);
  if (record.extras && record.extras->plan) return reason_of(*record.extras->plan);
  if (!record.on().empty()) return base::text("The job requests '{}'.", record.on());
  if (record.row->devices.size() == 1) return base::text("'{}' is the only device.", info.id);
  const bool is_preferred = record.row->is_preferred(record.device);
  for (const Decision& decision : record.decisions) {
    if (decision.verdict == Candidate::Verdict::ran) break;
    if (decision.code == RefusalCode::busy) {
      text +=
          base::text("'{}' comes before it, but had more to do. ", pool_.fleet().info(decision.device).id);
      continue;
    }
    if (decision.code == RefusalCode::slower) {
      text += base::text("'{}' comes before it, but takes longer. ", pool_.fleet().info(decision.device).id);
      continue;
    }
    if (decision.code == RefusalCode::trial) {
      text += base::text("The job was a trial of '{}': how long it takes now is not known. ", info.id);
      continue;
    }
    text += base::text("{} refused: {} ", pool_.fleet().info(decision.device).id, describe(record, decision));
  }
  if (is_preferred) return text + base::text("The job prefers '{}'.", record.row->prefer);
  const std::string work = base::text("{} work of {}", record.job.type().name, to_string(record.size));
  const std::string absent = absent_backends(record);
  if (!absent.empty()) return text + base::text("'{}' is next for {}: {}.", info.backend, work, absent);
  return text + base::text("'{}' comes {} for {}.", info.backend, text.empty() ? "first" : "next", work);
}

/// Returns the backends that the row of a job names before that of its device, and why none of their
/// devices ran it.
std::string Explainer::absent_backends(const Record& record) const {
  const AdapterInfo& info = pool_.fleet().info(record.device);
  const Row& row = *record.row;
  std::string absent;
  for (const std::string& backend : row.backends) {
    if (backend == info.backend) break;
    bool any = false;
    for (std::size_t device = 0; device < row.choices.size(); ++device) {
      if (row.choices[device].backend != backend) continue;
      any = true;
      if (row.choices[device].emulated)
        absent += base::text("{}'{}' runs on the CPU and comes last", absent.empty() ? "" : ", ",
                             pool_.fleet().info(device).id);
    }
    if (!any) absent += base::text("{}'{}' has no usable device", absent.empty() ? "" : ", ", backend);
  }
  return absent;
}

Error Explainer::no_device_error(const Record& record) const {
  // The first failure is more informative than refusals.
  for (const Decision& decision : record.decisions) {
    if (decision.verdict != Candidate::Verdict::failed) continue;
    if (record.fallback == Fallback::forbid)
      return decision.error()->with_context(base::text("fallback of {} is forbidden", record.object()));
    return *decision.error();
  }
  std::string reasons;
  bool lost = false;
  for (const Decision& decision : record.decisions) {
    reasons += base::text(" {}: {}", pool_.fleet().info(decision.device).id, describe(record, decision));
    lost |= decision.code == RefusalCode::device_lost || decision.code == RefusalCode::kernel_blamed;
  }
  const RefusalCode only = record.decisions.size() == 1 ? record.decisions[0].code : RefusalCode::none;
  const Errc code = only == RefusalCode::foreign_buffer ? Errc::invalid_argument
                    : lost                              ? Errc::device_lost
                                                        : Errc::unsupported;
  return Error(code, base::text("No device can run {}.{}", record.object(), reasons));
}

}  // namespace scheduler

std::string_view name(Candidate::Verdict verdict) noexcept {
  switch (verdict) {
    case Candidate::Verdict::ran: return "ran";
    case Candidate::Verdict::refused: return "refused";
    case Candidate::Verdict::failed: return "failed";
    case Candidate::Verdict::passed: return "passed";
    case Candidate::Verdict::chosen: return "chosen";
  }
  return "unknown";
}

std::string_view name(RefusalCode code) noexcept {
  switch (code) {
    case RefusalCode::none: return "none";
    case RefusalCode::unusable_adapter: return "unusable_adapter";
    case RefusalCode::not_requested: return "not_requested";
    case RefusalCode::device_lost: return "device_lost";
    case RefusalCode::device_suspect: return "device_suspect";
    case RefusalCode::memory_errors: return "memory_errors";
    case RefusalCode::kernel_blamed: return "kernel_blamed";
    case RefusalCode::kernel_unsupported: return "kernel_unsupported";
    case RefusalCode::foreign_buffer: return "foreign_buffer";
    case RefusalCode::attempt_failed: return "attempt_failed";
    case RefusalCode::fallback_forbidden: return "fallback_forbidden";
    case RefusalCode::lower_preference: return "lower_preference";
    case RefusalCode::emulated: return "emulated";
    case RefusalCode::other_silicon: return "other_silicon";
    case RefusalCode::busy: return "busy";
    case RefusalCode::slower: return "slower";
    case RefusalCode::trial: return "trial";
  }
  return "unknown";
}

std::string Explanation::text() const {
  static constexpr std::string_view verdicts[] = {"ran on", "refused", "failed", "passed over",
                                                  "would run on"};
  std::string text;
  if (!tag.empty()) text = base::text("job '{}' (tag '{}')", job, tag);
  for (const Candidate& candidate : candidates) {
    if (!text.empty()) text += '\n';
    const std::string_view verdict = verdicts[static_cast<std::size_t>(candidate.verdict)];
    if (candidate.verdict == Candidate::Verdict::ran || candidate.verdict == Candidate::Verdict::chosen) {
      text += base::text("{} {} ({}): {}", verdict, candidate.device, candidate.name, candidate.reason);
    } else {
      text += base::text("{:<9} {}", candidate.device, verdict);
      if (!candidate.reason.empty()) text += ": " + candidate.reason;
    }
  }
  return text;
}

}  // namespace wye
