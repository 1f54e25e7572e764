#pragma once
/// The implementation of Prewarm.
#include <wye/cache/shader_cache.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/gate.hpp"
#include "base/worker.hpp"
#include "cache/cache.hpp"

namespace wye::inline v0::cache {

/// A list of kernels and the thread that builds them. It stops before a build would evict an
/// executable.
/// Threads: thread-safe.
class Prewarming {
 public:
  struct Item {
    std::shared_ptr<const device::Program> program;
    std::shared_ptr<device::DeviceBase> device;
  };
  /// Errors: unavailable (no thread).
  static Result<std::unique_ptr<Prewarming>> start(std::shared_ptr<Cache> cache, std::vector<Item> items,
                                                   std::size_t unmatched = 0);

  Prewarm::Progress progress() const;
  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  bool wait(Deadline deadline);
  ~Prewarming() { cancel(); }

 private:
  Prewarming(std::shared_ptr<Cache> cache, std::vector<Item> items, std::size_t unmatched);
  void run() noexcept;

  const std::shared_ptr<Cache> cache_;
  const std::vector<Item> items_;
  std::atomic<bool> cancelled_{false};
  mutable std::mutex mutex_;
  base::Gate gate_;
  Prewarm::Progress progress_;          ///< under `mutex_`
  std::optional<base::Worker> worker_;  ///< last: it is joined before the rest ends
};

}  // namespace wye::cache
