#pragma once
/// Kernels that follow their files.
#include <wye/base/result.hpp>
#include <wye/runtime/options.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/file_watch.hpp"
#include "base/logger.hpp"
#include "cache/cache.hpp"
#include "device/provider.hpp"
#include "kernel/program.hpp"

namespace wye {
inline namespace v0 {
namespace runtime {

/// Is told by the cache which kernels are used and on which devices, and replaces those whose files have changed.
/// Whether they have is told by what they contain.
/// Threads: thread-safe. Everything but noting a kernel is done on the watch's thread, under no lock.
class HotReload final : public device::UseObserver {
 public:
  /// Errors: unavailable (no thread can be started), io.
  static Result<std::shared_ptr<HotReload>> start(std::shared_ptr<cache::Cache> cache, base::Logger log,
                                                  ReloadSink told, const Clock& clock);
  /// Nothing is reloaded after it, and nothing is being reloaded (but by whom it is called).
  void stop();

  void used(const std::shared_ptr<const device::Program>& program,
            const std::shared_ptr<device::DeviceBase>& device) override;

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

  HotReload(std::shared_ptr<cache::Cache> cache, base::Logger log, ReloadSink told, const Clock& clock)
      : cache_(std::move(cache)), log_(std::move(log)), told_(std::move(told)), clock_(clock) {}
  std::shared_ptr<base::FileWatch> watch();
  std::vector<Used> all_used();
  void look();
  void look_at(Watched& watched, const kernel::KernelProgram& program, const Devices& devices);
  std::optional<Error> compile(const std::shared_ptr<const kernel::KernelProgram>& program,
                               const Devices& devices);
  void tell(const Reload& reload);

  const std::shared_ptr<cache::Cache> cache_;
  const base::Logger log_;
  const ReloadSink told_;
  const Clock& clock_;
  std::atomic<std::uint64_t> making_{
      0};  ///< the number of what is compiled to replace another: nobody uses it yet
  std::mutex mutex_;
  std::map<std::uint64_t, Watched>
      watched_;                             ///< by the program's number; only the watch's thread removes any
  std::shared_ptr<base::FileWatch> watch_;  ///< null when it has stopped
  std::vector<std::string> files_;          ///< that are watched; of the watch's thread
};

}  // namespace runtime
}  // namespace v0
}  // namespace wye
