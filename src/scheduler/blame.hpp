#pragma once
/// Kernels that are blamed for losses of a device.
#include <wye/base/clock.hpp>
#include <wye/scheduler/job.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "device/device_ref.hpp"
#include "device/provider.hpp"

namespace wye::inline v0::scheduler {

/// Counts the losses of each device during which a job was in flight there, by kernel. A kernel
/// that no job has completed there since `most_losses` of them is blamed for a minute, then for two
/// after one more loss, and so on to an hour. A driver does not tell which of several kernels in
/// flight was the cause: each of them counts until a job completes it there.
/// Source:  a circuit breaker (Nygard, "Release It!", 2007).
/// Threads: thread-safe.
class Blame {
 public:
  static constexpr std::uint32_t most_losses = 3;

  /// Notes that `lost` was lost while `job` was in flight there. `device` is its index in the pool,
  /// in all of its generations.
  void note_loss(const Job& job, std::size_t device, device::DeviceRef lost, Instant now) noexcept;
  /// Notes that `job` has completed on a device.
  void note_completion(const Job& job, std::size_t device) noexcept {
    if (any_.load(std::memory_order_relaxed)) forget(job, device);
  }
  /// Returns the blamed kernel of `job` on a device; null if there is none.
  std::shared_ptr<const device::Program> find(const Job& job, std::size_t device,
                                              const Clock& clock) const noexcept {
    return any_.load(std::memory_order_relaxed) ? find_blamed(job, device, clock.now()) : nullptr;
  }

 private:
  struct Losses {
    device::DeviceRef last;  // of several jobs in flight at one loss, one counts
    std::uint32_t count = 0;
    Instant until{};  // it is blamed
  };
  using Key = std::pair<std::uint64_t, std::size_t>;  // of the program, and the device
  void forget(const Job& job, std::size_t device) noexcept;
  std::shared_ptr<const device::Program> find_blamed(const Job& job, std::size_t device,
                                                     Instant now) const noexcept;

  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  std::map<Key, Losses> losses_;  // under `mutex_`
};

}  // namespace wye::scheduler
