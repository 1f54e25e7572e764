#include "scheduler/active_jobs.hpp"

#include <algorithm>

namespace wye::inline v0::scheduler {

void ActiveJobs::add(Record& job) noexcept {
  ++count_;
  job.active_next = last_;
  if (last_) last_->active_previous = &job;
  last_ = &job;
}

void ActiveJobs::remove(Record& job) noexcept {
  --count_;
  if (job.active_next) job.active_next->active_previous = job.active_previous;
  (job.active_previous ? job.active_previous->active_next : last_) = job.active_next;
  job.active_previous = job.active_next = nullptr;
}

Instant ActiveJobs::first_expiry() const noexcept {
  Instant first = Instant::max();
  if (in_flight_ == 0) return first;
  for (const Record* job = last_; job; job = job->active_next)
    if (job->state == State::in_flight) first = std::min(first, job->attempt->park());
  return first;
}

bool ActiveJobs::has_expired(const Clock& clock) const noexcept {
  const Instant shown = clock.now();
  for (const Record* job = last_; job; job = job->active_next)
    if (job->state == State::in_flight && job->attempt->until() <= shown) return true;
  return false;
}

void ActiveJobs::return_expired(const Clock& clock, Ready& ready) noexcept {
  if (in_flight_ == 0) return;
  const Instant now = Clock::steady().now(), shown = &clock == &Clock::steady() ? now : clock.now();
  for (Record* job = last_; job; job = job->active_next)
    if (job->state == State::in_flight && (job->attempt->park() <= now || job->attempt->until() <= shown) &&
        job->advance(State::in_flight, State::returned)) {
      job->attempt->park_until(now);  // a clock that was advanced is ahead of it
      ready.push_returned(job->shared_from_this());
    }
}

}  // namespace wye::scheduler
