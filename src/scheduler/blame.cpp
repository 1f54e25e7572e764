#include "scheduler/blame.hpp"

#include <algorithm>
#include <chrono>
#include <new>

#include "base/gate.hpp"
#include "base/internals.hpp"

namespace wye::inline v0::scheduler {

void Blame::note_loss(const Job& job, std::size_t device, device::DeviceRef lost, Instant now) noexcept {
  constexpr Duration shortest = std::chrono::minutes(1), longest = std::chrono::hours(1);
  const base::Lock lock = base::lock_soon(mutex_);
  try {
    for (std::size_t c = 0; c < job.size(); ++c) {
      Losses& losses = losses_[{base::program_of(job[c])->id(), device}];
      if (losses.count != 0 && losses.last == lost) continue;
      losses.last = lost;
      ++losses.count;
      if (losses.count < most_losses) continue;
      losses.until = now + std::min(longest, shortest * (1 << std::min(losses.count - most_losses, 6u)));
    }
    any_.store(true, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {  // this loss is not counted
  }
}

void Blame::forget(const Job& job, std::size_t device) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  for (std::size_t c = 0; c < job.size(); ++c) losses_.erase({base::program_of(job[c])->id(), device});
  if (losses_.empty()) any_.store(false, std::memory_order_relaxed);
}

std::shared_ptr<const device::Program> Blame::find_blamed(const Job& job, std::size_t device,
                                                          Instant now) const noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  for (std::size_t c = 0; c < job.size(); ++c) {
    const auto& program = base::program_of(job[c]);
    const auto found = losses_.find({program->id(), device});
    if (found != losses_.end() && now < found->second.until) return program;
  }
  return nullptr;
}

}  // namespace wye::scheduler
