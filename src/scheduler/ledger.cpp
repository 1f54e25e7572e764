#include "scheduler/ledger.hpp"

#include <string>

namespace wye::inline v0::scheduler {

Ledger::Row& Ledger::row_of(WorkloadType type) {
  // Types are few, and most jobs name theirs by the same object.
  for (const auto& [name, row] : named_)
    if (name.data() == type.name.data() && name.size() == type.name.size()) return *row;
  auto row = counts_.by_type.find(type.name);
  if (row == counts_.by_type.end()) row = counts_.by_type.try_emplace(std::string(type.name)).first;
  if (named_.size() < most_named) named_.emplace_back(type.name, &row->second);
  return row->second;
}

void Ledger::note(const Settled& job) noexcept {
  counts_.batches += job.leads_batch ? 1 : 0;
  counts_.batched_jobs += job.batch_size > 1 ? 1 : 0;
  Row none;
  Row& row = job.row ? *job.row : none;
  row.build_time += job.has_run ? job.times.build : Duration::zero();
  row.run_time += job.times.run;
  if (job.error == Errc{}) {
    ++counts_.completed, ++row.completed;
    counts_.fallbacks += job.fell_back ? 1 : 0;
    ++completed_on_[job.device];
    counts_.moves += job.placed.has_moved ? 1 : 0;
    counts_.trials += job.placed.was_trial ? 1 : 0;
    if (job.placed.expected != Duration::zero()) {
      counts_.expected_time += job.placed.expected;
      counts_.taken_time += job.placed.taken;
    }
  } else if (job.error == Errc::timed_out) {
    ++counts_.timed_out, ++row.timed_out;
  } else if (job.error == Errc::cancelled) {
    ++counts_.cancelled, ++row.cancelled;
  } else {
    ++counts_.failed, ++row.failed;
  }
}

SchedulerMetrics Ledger::metrics(const pool::Fleet& devices) const {
  SchedulerMetrics metrics = counts_;
  for (std::size_t device = 0; device < completed_on_.size(); ++device)
    if (completed_on_[device] != 0)
      metrics.completed_by_backend[devices.info(device).backend] += completed_on_[device];
  return metrics;
}

}  // namespace wye::scheduler
