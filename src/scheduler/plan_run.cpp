// Runs plans: each run is a record, which goes through the segments of its plan.
#include <new>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "scheduler/plan.hpp"
#include "scheduler/runner.hpp"

namespace wye::inline v0::scheduler {
namespace {

/// Returns the first lost device of a plan, or null.
const Device* lost_device(const Compiled& compiled) noexcept {
  for (const std::size_t device : compiled.devices)
    if (base::state_of(compiled.of_pool[device])->lost()) return &compiled.of_pool[device];
  return nullptr;
}

/// Notes that a segment has failed. Returns the error of its run.
Error note_failure(Record& record, const Segment& segment, const Error& why) {
  Decision& failed = record.add_decision(segment.device);
  failed.verdict = Candidate::Verdict::failed;
  failed.code = RefusalCode::attempt_failed;
  failed.set_error(why);
  const PlanState& plan = *record.plan_run->plan;
  const std::size_t first = segment.dispatches.front().step, last = segment.dispatches.back().step;
  return why.with_context(
      first == last
          ? base::text("in step {} '{}' of graph '{}'", first, plan.nodes[first].job.name(), plan.name)
          : base::text("in a step from {} '{}' to {} '{}' of graph '{}'", first, plan.nodes[first].job.name(),
                       last, plan.nodes[last].job.name(), plan.name));
}

/// Notes that a device has run a segment.
void note_completion(Record& record, std::size_t device) {
  for (const Decision& decision : record.decisions)
    if (decision.device == device && decision.verdict == Candidate::Verdict::ran) return;
  record.add_decision(device).verdict = Candidate::Verdict::ran;
}

}  // namespace

void PlanState::note_in_flight(device::Lane& lane) noexcept {
  if (lane.idle()) return;
  try {
    const base::Lock lock(mutex);
    in_flight.push_back(lane.last());
  } catch (const std::bad_alloc&) {
    (void)lane.idle(Instant::max());
  }
}

void PlanState::wait_for_work_in_flight(device::Lane& lane) {
  std::vector<device::TimelinePoint> ended;  // destroyed after the lock: a driver frees them
  std::vector<device::TimelinePoint> points;
  {
    const base::Lock lock(mutex);
    for (std::size_t i = in_flight.size(); i-- > 0;) {
      device::TimelinePoint& point = in_flight[i];
      if (point.timeline->is_known(point.value)) {
        ended.push_back(point);
        std::swap(point, in_flight.back());
        in_flight.pop_back();
      } else if (point.timeline->owner() == lane.device().get()) {
        points.push_back(point);
      }
    }
  }
  for (device::TimelinePoint& point : points) lane.wait_for(std::move(point));
}

/// Places the steps of a plan again, because a device was lost, for this run and later ones.
Result<void> Runner::place_again(Record& record) {
  PlanRun& run = *record.plan_run;
  PlanState& plan = *run.plan;
  const std::shared_ptr<const PlanSnapshot> old = run.snapshot;  // has the lost device
  const Device* const lost = lost_device(*old->compiled);
  if (!lost) return {};
  const auto index = static_cast<std::size_t>(lost - old->compiled->of_pool.data());
  parts_.pool->note_loss(index);
  (void)parts_.pool->recover_lost(true);
  const Error why = *base::state_of(*lost)->lost();
  Decision& decision = record.add_decision(index);
  decision.refuse(RefusalCode::device_lost);
  decision.set_error(why);
  if (plan.fallback == Fallback::forbid)
    return why.with_context(base::text("fallback of {} is forbidden", record.object()));
  std::shared_ptr<const PlanSnapshot> current = plan.current();
  if (current->memory && current->replacements == run.snapshot->replacements &&
      !lost_device(*current->compiled)) {  // another run has placed them
    run.snapshot = std::move(current);
    return {};
  }
  Compiler compiler(plan, parts_.preparer.ready_by(until_of(record)));
  auto placed = compiler.compile(run.snapshot->replacements, nullptr);
  if (!placed)
    return std::move(placed).error().with_context(base::text(
        "while placing the steps of {} again, because '{}' was lost", record.object(), lost->id()));
  run.snapshot = *std::move(placed);
  const std::string change =
      base::text("'{}' was lost ({}), and the steps were placed again.", lost->id(), why.sentence());
  parts_.log.write(LogLevel::warning, "scheduler", base::text("Graph '{}': {}", plan.name, change));
  // Later runs may have other arguments by now.
  for (;;) {
    const std::shared_ptr<const PlanSnapshot> before = plan.current();
    if (before->memory && !lost_device(*before->compiled)) return {};
    std::shared_ptr<const PlanSnapshot> after = run.snapshot;
    if (before->replacements != run.snapshot->replacements) {
      auto next = std::make_shared<PlanSnapshot>(*before);
      next->compiled = run.snapshot->compiled;
      auto memory =
          find_memory(plan, *next->compiled, Operands(plan.nodes, plan.numbers, *next->replacements),
                      run.snapshot->memory.get());
      if (!memory) return {};  // the next run tries again
      next->memory = *std::move(memory);
      after = std::move(next);
    }
    const base::Lock lock(plan.mutex);
    if (plan.snapshot != before) continue;
    plan.snapshot = std::move(after);
    plan.changes.push_back(change);
    return {};
  }
}

/// Runs the segments that have not completed.
Result<Progress> Runner::place_plan(Record& record, bool detaches) {
  PlanRun& run = *record.plan_run;
  if (!record.attempt && record.state == State::abandoned) return parts_.spare.abandoned;
  for (;;) {
    if (!record.attempt && run.segment == 0)
      if (auto ok = place_again(record); !ok) return std::move(ok).error();
    const Compiled& compiled = *run.snapshot->compiled;
    record.make_extras().plan = compiled.description;
    const Segment& segment = compiled.segments[run.segment];
    const Bytes transferred = record.bytes_transferred;
    auto attempted = attempt(record, segment.device, detaches);
    if (attempted && *attempted == Progress::in_flight) return Progress::in_flight;
    const auto& nodes = run.plan->nodes;
    for (const Segment::Dispatch& dispatch : segment.dispatches)
      note_end(record, nodes[dispatch.step].job, segment.device, attempted);
    note_attempt(record);
    record.attempt.reset();
    record.bytes_transferred += transferred;
    if (run.segment > 0) record.bytes_transferred -= record.bytes_prefetched();  // counted with the first one
    record.device = static_cast<std::uint32_t>(segment.device);
    if (!attempted) {
      Error why = std::move(attempted).error();
      const Error* const lost = base::state_of(compiled.of_pool[segment.device])->lost();
      if (lost && why == Errc::device_lost && run.segment == 0) {
        record.has_failed = true;
        emit_fallback(record, segment.device, why);
        continue;  // nothing of it has completed: it runs elsewhere, as a job does
      }
      return note_failure(record, segment, why);
    }
    note_completion(record, segment.device);
    if (record.state == State::abandoned) return parts_.spare.abandoned;
    if (++run.segment < compiled.segments.size()) {
      if (record.stop) return Progress::completed;  // `run` settles it as cancelled
      continue;
    }
    return Progress::completed;
  }
}

}  // namespace wye::scheduler
