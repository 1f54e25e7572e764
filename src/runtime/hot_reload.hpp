#pragma once
/// Kernels that follow their files.
#include <wye/base/result.hpp>
#include <wye/runtime/reload.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/file_watch.hpp"
#include "base/logger.hpp"
#include "device/provider.hpp"
#include "kernel/program.hpp"

namespace wye {
inline namespace v0 {
namespace runtime {

/// Stands before the cache, sees which kernels jobs use and on which devices, and replaces those whose files have changed.
/// Whether they have is told by what they contain.
/// Threads: thread-safe. Everything but noting a kernel is done on the watch's thread, under no lock.
class HotReload final : public device::ExecutableProvider, public std::enable_shared_from_this<HotReload> {
 public:
  /// Errors: unavailable (no thread can be started), io.
  static Result<std::shared_ptr<HotReload>> start(std::shared_ptr<device::ExecutableProvider> cache,
                                                  base::Logger log, ReloadSink told, const Clock& clock);
  /// Nothing is reloaded after it, and nothing is being reloaded (but by whom it is called).
  void stop();

  std::optional<Duration> build_cost(const device::Program& program,
                                     const device::DeviceBase& device) const override;
  Result<device::Provided> provide(const std::shared_ptr<const device::Program>& program,
                                   const std::shared_ptr<device::DeviceBase>& device, Instant until) override;
  Result<device::Provided> make_ready(const std::shared_ptr<const device::Program>& program,
                                      const std::shared_ptr<device::DeviceBase>& device,
                                      Instant until) override;
  const Clock& clock() const noexcept override { return cache_->clock(); }

 private:
  using Devices = std::vector<std::weak_ptr<device::DeviceBase>>;
  struct Watched {
    std::weak_ptr<const device::Program> program;
    Devices devices;
    // Of the watch's thread.
    std::string made;  ///< what was made last of its files, or what was wrong with them
    std::vector<std::string> files;
  };
  struct Used {
    Watched* watched;
    std::shared_ptr<const device::Program> program;
    Devices devices;
  };

  HotReload(std::shared_ptr<device::ExecutableProvider> cache, base::Logger log, ReloadSink told,
            const Clock& clock)
      : cache_(std::move(cache)), log_(std::move(log)), told_(std::move(told)), clock_(clock) {}
  void note(const std::shared_ptr<const device::Program>& program,
            const std::shared_ptr<device::DeviceBase>& device);
  std::shared_ptr<base::FileWatch> watch();
  std::vector<Used> used();
  void look();
  void look_at(Watched& watched, const kernel::KernelProgram& program, const Devices& devices);
  std::optional<Error> compile(const std::shared_ptr<const kernel::KernelProgram>& program,
                               const Devices& devices);
  void tell(const Reload& reload);

  const std::shared_ptr<device::ExecutableProvider> cache_;
  const base::Logger log_;
  const ReloadSink told_;
  const Clock& clock_;
  std::mutex mutex_;
  std::map<std::uint64_t, Watched>
      watched_;                             ///< by the program's number; only the watch's thread removes any
  std::shared_ptr<base::FileWatch> watch_;  ///< null when it has stopped
  std::vector<std::string> files_;          ///< that are watched; of the watch's thread
};

}  // namespace runtime
}  // namespace v0
}  // namespace wye
