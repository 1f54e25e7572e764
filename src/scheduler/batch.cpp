// Batches: jobs that share one submission, and those of them that share one launch.
#include <atomic>
#include <utility>

#include "base/internals.hpp"
#include "scheduler/core.hpp"

namespace wye::inline v0::scheduler {

/// Returns whether a job may share its submission: it waits for a device other than the host, has
/// no limits of its own, is one call with one possible variant, calls no function of the
/// application, whose failure would be that of all jobs, and has no large copies, which are
/// submitted alone.
/// Throws: std::bad_alloc.
bool Core::may_share(const Record& record) const {
  if (options_.batch_limit == 1 || record.line == on_threads || record.has_own_limits || record.plan_run)
    return false;
  const Job& job = record.job;
  if (job.size() != 1) return false;
  const detail::Programs& programs = base::programs_of(job[0]);
  Device copy;
  const device::DeviceBase& device =
      *base::state_of(pool_->fleet().device(record.decisions.back().device, copy));
  const auto only = only_variant_on(device, programs);
  if (!only || programs[*only]->current().is_native(device)) return false;
  Bytes copied;
  for (const Operand& operand : job[0].arguments())
    if (operand.kind == Operand::Kind::host) copied += operand.bytes();
  return copied < flight::least_measured;
}

/// Has the other jobs of a batch join `attempt`, which is that of the job that leads it.
Result<void> Core::begin_batch(Record& leader, flight::Flight& attempt) {
  for (Record* member = leader.batch; member; member = member->next_in_batch()) {
    member->started = leader.started;
    if (auto ok = begin_attempt(*member, attempt.device(), &attempt); !ok) return ok;
  }
  return {};
}

/// Takes the other jobs of a batch from their leader and calls `f` for each.
template <class F>
void Core::each_member(Record& leader, F f) noexcept {
  for (Record* member = std::exchange(leader.batch, nullptr); member;) {
    const auto keep = std::static_pointer_cast<Record>(std::move(member->self_listed));
    member = member->next_in_batch();
    keep->next_listed = nullptr;
    keep->run_by = &jobs_on_this_thread;
    f(*keep);
  }
}

/// Runs a job that was part of a batch alone, on this thread. Only from now on it counts as
/// committed.
void Core::run_alone(Record& member) noexcept {
  const std::uint16_t place = member.place;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    ready_.places().commit(place);
  }
  Instant now;
  const Progress progress = run(member, true, now);
  const base::Lock lock = base::lock_soon(mutex_);
  end_run_locked(place, progress);
}

/// Completes the other jobs of a batch, whose submission has returned with `result`. If it failed,
/// each goes on alone.
void Core::complete_batch(Record& leader, const Result<Progress>& result) noexcept {
  const auto ended = result ? Result<std::optional<Instant>>(leader.ended) : result.error();
  leader.launch_size = leader.attempt->launch_size();
  leader.attempt->end_lead(ended);
  each_member(leader, [&](Record& member) {
    member.times.lane = leader.times.lane;
    member.launch_size = member.attempt->launch_size();
    if (!result) return run_alone(member);
    Instant now;
    run(member, true, now);
  });
}

/// Has each of the other jobs of a batch run alone, because nothing of the batch could be
/// submitted.
void Core::dissolve_batch(Record& leader) noexcept {
  if (leader.attempt) leader.attempt->lane().discard();
  for (Record* member = leader.batch; member; member = member->next_in_batch()) member->attempt.reset();
  leader.attempt.reset();
  leader.leads_batch = false;
  leader.batch_size = leader.launch_size = 1;
  each_member(leader, [&](Record& member) {
    if (!requeue(member)) run_alone(member);
  });
}

}  // namespace wye::scheduler
