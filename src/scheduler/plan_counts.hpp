#pragma once
/// How many plans use each device.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace wye::inline v0::scheduler {

/// Counts the plans of a scheduler on its devices.
/// Threads: thread-safe.
class PlanCounts {
 public:
  /// A pool has at most `devices`. Throws: std::bad_alloc.
  explicit PlanCounts(std::size_t devices) : on_(devices) {}
  std::uint32_t on(std::size_t device) const noexcept { return on_[device].load(std::memory_order_relaxed); }

  /// One plan on its devices, while this exists.
  class Use {
   public:
    Use() = default;
    /// Each device counts once.
    Use(std::shared_ptr<PlanCounts> counts, std::vector<std::size_t> devices)
        : counts_(std::move(counts)), devices_(std::move(devices)) {
      std::sort(devices_.begin(), devices_.end());
      devices_.erase(std::unique(devices_.begin(), devices_.end()), devices_.end());
      for (const std::size_t device : devices_) counts_->on_[device].fetch_add(1, std::memory_order_relaxed);
    }
    Use(Use&&) = default;
    Use& operator=(Use&& other) noexcept {
      std::swap(counts_, other.counts_);
      std::swap(devices_, other.devices_);
      return *this;
    }
    ~Use() {
      for (const std::size_t device : devices_) counts_->on_[device].fetch_sub(1, std::memory_order_relaxed);
    }

   private:
    std::shared_ptr<PlanCounts> counts_;
    std::vector<std::size_t> devices_;
  };

 private:
  std::vector<std::atomic<std::uint32_t>> on_;
};

}  // namespace wye::scheduler
