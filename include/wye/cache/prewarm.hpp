#pragma once
/// Kernels built before their first use.
#include <wye/base/clock.hpp>
#include <wye/base/config.hpp>

#include <cstddef>
#include <memory>

namespace wye {
inline namespace v0 {

namespace cache {
class Prewarming;
}

/// Builds kernels in the background, one after the other, on one thread of low priority. The destructor starts no further
/// build and waits for the current one.
/// Threads: thread-safe.
class WYE_API Prewarm {
 public:
  /// Counts kernels times devices, except kernels without a source for the device.
  struct Progress {
    std::size_t total = 0;
    std::size_t ready = 0;      ///< built now or before
    std::size_t failed = 0;     ///< `ShaderCache::find_or_build` returns the error
    bool ended = false;         ///< completed, cancelled, or the cache is full
    std::size_t unmatched = 0;  ///< entries of the manifest that match none of the kernels and devices
  };

  Prewarm(Prewarm&&) noexcept;
  Prewarm& operator=(Prewarm&&) noexcept;
  ~Prewarm();

  Progress progress() const;
  /// Starts no further build. Does not wait.
  void cancel();
  /// Waits until it has ended; false if `deadline` passes first.
  bool wait(Deadline deadline = {});

  explicit Prewarm(std::unique_ptr<cache::Prewarming> state) noexcept;  ///< for `ShaderCache::prewarm`

 private:
  std::unique_ptr<cache::Prewarming> state_;
};

}  // namespace v0
}  // namespace wye
