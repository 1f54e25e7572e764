// The device that would run a job, and the known times of jobs.
#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "scheduler/core.hpp"

namespace wye::inline v0::scheduler {
namespace {

/// Returns the expected time of a job on its device as a sentence.
std::string expectation(const Estimate& estimate) {
  if (estimate.time == Duration::zero()) return "Its time there is not known. ";
  const auto part = [](std::string_view verb, Duration time) {
    return time == Duration::zero() ? std::string() : base::text("{} {:.3g}, ", verb, milliseconds(time));
  };
  const std::string from =
      estimate.runs > 0 ? base::text("{} runs", estimate.runs) : std::string("from other sizes");
  return base::text("expected {:.3g} ms ({}{}runs {:.3g} +- {:.2g}; {}). ",
                    milliseconds(estimate.wait + estimate.build + estimate.time),
                    part("waits", estimate.wait), part("builds", estimate.build), milliseconds(estimate.time),
                    milliseconds(estimate.spread), from);
}

}  // namespace

Result<Explanation> Core::estimate(Job&& job, const JobOptions& options) try {
  if (const Error* inherited = origin_.error()) return *inherited;
  const std::shared_ptr<Record> record = make_record(std::move(job), options);
  if (const Error* wrong = record->job.error()) return *wrong;
  if (auto checked = flight::check_operands(record->job); !checked) return std::move(checked).error();
  if (auto nowhere = parts_.placer.find_target_error(record->on())) return *std::move(nowhere);
  record->line = runner_.line_of(*record);
  Foreseen there;
  {
    const base::Lock lock = queue_.hold();
    there = queue_.foresee_locked(*record);
  }
  if (there.room.place != on_threads)
    parts_.placer.take_over(*record, there.room.place - 1u, passed_code(there.room.chosen));
  Decision* const decision = parts_.placer.find_next(*record);
  if (!decision) return parts_.explainer.no_device_error(*record);
  record->device = decision->device;
  decision->verdict = Candidate::Verdict::ran;
  Explanation explanation = parts_.explainer.foresee(*record);
  for (Candidate& candidate : explanation.candidates) {
    if (candidate.verdict == Candidate::Verdict::refused) continue;
    const std::vector<std::size_t>& devices = record->row->devices;
    const std::size_t device = *std::find_if(devices.begin(), devices.end(), [&](std::size_t d) {
      return parts_.pool->fleet().info(d).id == candidate.device;
    });
    Estimate& estimate = candidate.estimate ? *candidate.estimate : candidate.estimate.emplace();
    if (estimate.runs == 0)
      if (const auto* row = parts_.times.row(record->kind(record->row->group_of(device)), record->named))
        estimate.time = parts_.times.estimate(*row);
    estimate.build = parts_.preparer.build_cost(*record, device);
    if (candidate.verdict != Candidate::Verdict::chosen) continue;
    estimate.wait = there.wait;
    candidate.reason = expectation(estimate) + candidate.reason;
  }
  return explanation;
} catch (const std::bad_alloc&) {
  return parts_.spare.out_of_memory;
}

std::vector<Cost> Core::costs() const {
  std::vector<Cost> costs;
  if (origin_.is_inherited()) return costs;
  for (TimeBook::Known& known : parts_.times.known())
    costs.push_back({.job = std::move(known.job),
                     .type = known.type,
                     .device = known.key.group == on_threads
                                   ? std::string()
                                   : parts_.pool->fleet().info(known.key.group - 1u).id,
                     .least = Bytes{least_of_class(known.key.size_class)},
                     .estimate = {known.time.mean, known.time.spread, known.time.count},
                     .last = known.last});
  return costs;
}

void Core::forget() noexcept {
  if (origin_.is_inherited()) return;
  parts_.times.forget();
  parts_.store.forget();
}

}  // namespace wye::scheduler
