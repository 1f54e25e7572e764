#include "scheduler/ledger.hpp"

#include <new>
#include <string>

namespace wye::inline v0::scheduler {

double Rate::per_second(Instant now) const noexcept {
  constexpr std::int64_t last = 5;
  const std::int64_t current = second_of(now);
  std::uint64_t events = 0;
  for (const Second& second : seconds_)
    if (second.number >= current - last && second.number < current) events += second.events;
  return static_cast<double>(events) / static_cast<double>(last);
}

TypeRow& Ledger::row_of(WorkloadType type) {
  // Types are few, and most jobs name theirs by the same object.
  for (const auto& [name, row] : named_)
    if (name.data() == type.name.data() && name.size() == type.name.size()) return *row;
  auto row = types_.find(type.name);
  if (row == types_.end()) {
    row = types_.try_emplace(types_.size() < most_types ? std::string(type.name) : "other types").first;
    row->second.on.resize(completed_on_.size());
  }
  if (named_.size() < most_named) named_.emplace_back(type.name, &row->second);
  return row->second;
}

void Ledger::note_times(TypeRow& row, const Settled& job) noexcept {
  row.rate.note(job.at);
  if (job.device >= row.on.size()) return;  // there was no memory for them
  std::unique_ptr<JobHistograms>& on = row.on[job.device];
  if (!on) on.reset(new (std::nothrow) JobHistograms);
  if (!on) return;
  on->queue.add(job.times.queue);
  on->build.add(job.times.build);
  on->transfer.add(job.times.transfer);
  on->run.add(job.times.run);
}

void Ledger::note(const Settled& job) noexcept {
  counts_.batches += job.leads_batch ? 1 : 0;
  counts_.batched_jobs += job.batch_size > 1 ? 1 : 0;
  TypeRow& of_type = job.row ? *job.row : untyped_;
  TypeMetrics& row = of_type.counts;
  row.build_time += job.has_run ? job.times.build : Duration::zero();
  row.run_time += job.times.run;
  if (job.error == Errc{}) {
    ++counts_.completed, ++row.completed;
    note_times(of_type, job);
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

SchedulerMetrics Ledger::metrics(const pool::Fleet& devices, Instant now) const {
  SchedulerMetrics metrics = counts_;
  for (std::size_t device = 0; device < completed_on_.size(); ++device)
    if (completed_on_[device] != 0)
      metrics.completed_by_backend[devices.info(device).backend] += completed_on_[device];
  for (const auto& [name, row] : types_) {
    TypeMetrics& type = metrics.by_type.emplace(name, row.counts).first->second;
    type.per_second = row.rate.per_second(now);
    for (std::size_t device = 0; device < row.on.size(); ++device) {
      if (!row.on[device]) continue;
      const JobHistograms& times = *row.on[device];
      type.by_backend[devices.info(device).backend].add(times);
      type.add(times);
    }
  }
  return metrics;
}

}  // namespace wye::scheduler
