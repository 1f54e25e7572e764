// Batches: jobs that share one submission, and those of them that share one launch.
#include <atomic>
#include <utility>

#include "base/internals.hpp"
#include "scheduler/runner.hpp"
#include "scheduler/workers.hpp"

namespace wye::inline v0::scheduler {

namespace {

/// Returns the first device, in the order of the table, that may have a job in a submission.
std::size_t first_gpu(const Record& record) noexcept {
  const std::size_t first = record.decisions.back().device;
  if (!record.row->choices[first].is_host) return first;
  for (const std::size_t device : record.row->devices)
    if (record.may_move_to(static_cast<std::uint16_t>(1 + device))) return device;
  return first;
}

}  // namespace

bool Runner::may_share(const Record& record) const {
  if (parts_.options.batch_limit == 1 || record.line == on_threads || record.has_own_limits ||
      record.plan_run)
    return false;
  const Job& job = record.job;
  if (job.size() != 1) return false;
  const detail::Programs& programs = base::programs_of(job[0]);
  Device copy;
  const device::DeviceBase& device = *base::state_of(parts_.pool->fleet().device(first_gpu(record), copy));
  const auto only = only_variant_on(device, programs);
  if (!only || programs[*only]->current().is_native(device)) return false;
  Bytes copied;
  for (const Operand& operand : job[0].arguments())
    if (operand.kind == Operand::Kind::host) copied += operand.bytes();
  return copied < flight::least_measured;
}

/// Has the other jobs of a batch join `attempt`, which is that of the job that leads it.
Result<void> Runner::begin_batch(Record& leader, flight::Flight& attempt) {
  for (Record* member = leader.batch; member; member = member->next_in_batch()) {
    member->started = leader.started;
    parts_.placer.take_over(*member, attempt.device(), passed_code(member->runs.chosen));
    if (!member->decisions.back().is_open()) return parts_.spare.internal;  // it runs alone
    if (auto ok = begin_attempt(*member, attempt.device(), &attempt); !ok) return ok;
  }
  return {};
}

/// Takes the other jobs of a batch from their leader and calls `f` for each.
template <class F>
void Runner::each_member(Record& leader, F f) noexcept {
  for (Record* member = std::exchange(leader.batch, nullptr); member;) {
    const auto keep = std::static_pointer_cast<Record>(std::move(member->listed.self));
    member = member->next_in_batch();
    keep->listed.next = nullptr;
    keep->run_by = this_thread();
    f(*keep);
  }
}

/// Completes the other jobs of a batch, whose submission has returned with `result`. If it failed,
/// each goes on alone.
void Runner::complete_batch(Record& leader, const Result<Progress>& result) noexcept {
  const auto ended = result ? Result<std::optional<Instant>>(leader.ended) : result.error();
  leader.launch_size = leader.attempt->launch_size();
  leader.attempt->end_lead(ended);
  each_member(leader, [&](Record& member) {
    member.times.lane = leader.times.lane;
    member.launch_size = member.attempt->launch_size();
    if (!result) return workers_.run_member(member);
    Instant now;
    run(member, true, now);
  });
}

/// Has each of the other jobs of a batch run alone, because nothing of the batch could be
/// submitted.
void Runner::dissolve_batch(Record& leader) noexcept {
  if (leader.attempt) leader.attempt->lane().discard();
  for (Record* member = leader.batch; member; member = member->next_in_batch()) member->attempt.reset();
  leader.attempt.reset();
  leader.leads_batch = false;
  leader.batch_size = leader.launch_size = 1;
  each_member(leader, [&](Record& member) {
    if (!requeue(member)) workers_.run_member(member);
  });
}

}  // namespace wye::scheduler
