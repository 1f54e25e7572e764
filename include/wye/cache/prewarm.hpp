#pragma once
/// Kernels made ready before anybody asks for them.
#include <wye/base/clock.hpp>
#include <wye/base/config.hpp>

#include <cstddef>
#include <memory>

namespace wye {
inline namespace v0 {

namespace cache {
class Prewarming;
}

/// Kernels being made ready in the background, one after the other, by one thread that gives way to others. Its
/// end begins no more and waits for the one that is being built.
/// Threads: thread-safe.
class WYE_API Prewarm {
 public:
  /// How far it is, in kernels times devices. Those that a device has no source for do not count.
  struct Progress {
    std::size_t total = 0;
    std::size_t ready = 0;   ///< built, or there already
    std::size_t failed = 0;  ///< asking for them tells why
    bool ended = false;  ///< nothing more will be built: all is done, it was cancelled, or the cache is full
    std::size_t unmatched = 0;  ///< entries of a manifest that none of the kernels and devices match any more
  };

  Prewarm(Prewarm&&) noexcept;
  Prewarm& operator=(Prewarm&&) noexcept;
  ~Prewarm();

  Progress progress() const;
  /// Begins no more builds. Does not wait.
  void cancel();
  /// Waits until nothing more will be built; false where `deadline` passes first.
  bool wait(Deadline deadline = {});

  explicit Prewarm(std::unique_ptr<cache::Prewarming> state) noexcept;  ///< for `ShaderCache::prewarm`

 private:
  std::unique_ptr<cache::Prewarming> state_;
};

}  // namespace v0
}  // namespace wye
