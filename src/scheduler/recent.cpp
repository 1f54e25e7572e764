#include "scheduler/recent.hpp"

#include <algorithm>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "scheduler/core.hpp"

namespace wye::inline v0 {
namespace scheduler {
namespace {

/// Copies the beginning of a text, and ends it with a zero.
template <std::size_t N>
void assign(std::array<char, N>& to, std::string_view from) noexcept {
  const std::size_t length = std::min(from.size(), N - 1);
  std::copy_n(from.data(), length, to.data());
  to[length] = '\0';
}

}  // namespace

void RecentJobs::add(const Settled& job) noexcept {
  if (most_ == 0) return;
  const std::lock_guard lock(lock_);
  const bool is_full = ring_.size() == most_;
  Entry& entry =
      is_full ? ring_[added_ % most_] : ring_.emplace_back();  // within the memory that is reserved
  ++added_;
  entry.number = job.number;
  entry.type = job.type;
  entry.order = job.order;
  entry.size = job.size;
  entry.bytes_transferred = job.bytes_transferred;
  entry.times = job.times;
  entry.jobs_in_submission = job.batch_size;
  entry.jobs_in_launch = job.launch_size;
  entry.tried_count = 0;
  for (const Decision& decision : job.decisions) {
    if (decision.is_open() || entry.tried_count == entry.tried.size()) continue;
    entry.tried[entry.tried_count++] = {static_cast<std::uint16_t>(decision.device), decision.verdict,
                                        decision.code};
  }
  entry.error = job.error;
  assign(entry.job, job.job);
  assign(entry.tag, job.tag);
}

Placement RecentJobs::placement_of(const Entry& entry, const pool::Fleet& devices) {
  Placement placement;
  placement.number = entry.number;
  placement.job = entry.job.data();
  placement.tag = entry.tag.data();
  placement.type = entry.type;
  placement.size = entry.size;
  placement.bytes_transferred = entry.bytes_transferred;
  placement.queue_time = entry.times.queue;
  placement.build_time = entry.times.build;
  placement.transfer_time = entry.times.transfer;
  placement.run_time = entry.times.run;
  placement.jobs_in_submission = entry.jobs_in_submission;
  placement.jobs_in_launch = entry.jobs_in_launch;
  if (entry.error != Errc{}) placement.error = entry.error;
  const std::span tried = std::span(entry.tried).first(entry.tried_count);
  for (const Tried& one : tried)
    placement.decisions.push_back({devices.info(one.device).id, one.verdict, one.code});
  const auto has = [&](std::size_t device) {
    return std::any_of(tried.begin(), tried.end(), [&](const Tried& one) { return one.device == device; });
  };
  const auto ran = std::find_if(tried.begin(), tried.end(),
                                [](const Tried& one) { return one.verdict == Candidate::Verdict::ran; });
  if (!entry.order || ran == tried.end()) return placement;
  for (const std::size_t device : entry.order->devices)
    if (placement.decisions.size() < entry.tried.size() && !has(device))
      placement.decisions.push_back({devices.info(device).id, Candidate::Verdict::passed,
                                     passed_code(*entry.order, device, ran->device)});
  return placement;
}

std::vector<Placement> RecentJobs::list(const pool::Fleet& devices) const {
  std::vector<Placement> placements;
  {
    const std::lock_guard lock(lock_);
    placements.reserve(ring_.size());
  }
  for (std::uint64_t next = 0;; ++next) {
    Entry entry;
    {
      const std::lock_guard lock(lock_);
      next = std::max(next, added_ - ring_.size());
      if (next == added_ || placements.size() == most_) return placements;
      entry = ring_[next % most_];
    }
    placements.push_back(placement_of(entry, devices));
  }
}

std::vector<Placement> Core::recent() const {
  if (origin_.is_inherited()) return {};
  return parts_.recent.list(parts_.pool->fleet());
}

}  // namespace scheduler

std::string_view Placement::device() const noexcept {
  for (const Decision& decision : decisions)
    if (decision.verdict == Candidate::Verdict::ran) return decision.device;
  return {};
}

}  // namespace wye
