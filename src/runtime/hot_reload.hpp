#pragma once
/// Hot reload: replaces kernels whose files have changed.
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
#include "base/journal.hpp"
#include "base/logger.hpp"
#include "cache/cache.hpp"
#include "device/provider.hpp"
#include "kernel/program.hpp"

namespace wye::inline v0::runtime {

/// Learns from the cache which kernels are used on which devices, and replaces kernels whose files
/// have changed. It compares the contents of files, not their times.
/// Threads: thread-safe. `used` only records the kernel; all other work is done on the watch's
///          thread, under no lock.
class HotReload final : public device::UseObserver {
 public:
  /// Errors: unavailable (no thread can be started), io.
  static Result<std::shared_ptr<HotReload>> start(std::shared_ptr<cache::Cache> cache, base::Logger log,
                                                  ReloadSink on_reload, const Clock& clock);
  HotReload(const HotReload&) = delete;
  ~HotReload() override { sink_.finish(); }
  /// Stops reloads, and waits for a reload in progress unless it is the caller.
  void stop();

  void used(const std::shared_ptr<const device::Program>& program,
            const std::shared_ptr<device::DeviceBase>& device) override;

 private:
  using Devices = std::vector<std::weak_ptr<device::DeviceBase>>;
  struct Watched {
    std::weak_ptr<const device::Program> program;
    Devices devices;
    // Used by the watch's thread only.
    std::string contents;  ///< digest of the last contents of its files, or their error
    std::vector<std::string> files;
  };
  struct Used {
    Watched* watched;
    std::shared_ptr<const device::Program> program;
    Devices devices;
  };

  HotReload(std::shared_ptr<cache::Cache> cache, base::Logger log, const Clock& clock)
      : cache_(std::move(cache)), log_(std::move(log)), clock_(clock) {}
  std::shared_ptr<base::FileWatch> watch();
  std::vector<Used> all_used();
  void check_all();
  void check(Watched& watched, const kernel::KernelProgram& program, const Devices& devices);
  std::optional<Error> compile(const std::shared_ptr<const kernel::KernelProgram>& program,
                               const Devices& devices);
  void report(const Reload& reload);

  const std::shared_ptr<cache::Cache> cache_;
  const base::Logger log_;
  base::Subscription sink_;
  const Clock& clock_;
  std::atomic<std::uint64_t> replacement_id_{
      0};  ///< id of the program that is being compiled as a replacement; no job uses it yet
  std::mutex mutex_;
  std::map<std::uint64_t, Watched> watched_;  ///< by program id; only the watch's thread removes entries
  std::shared_ptr<base::FileWatch> watch_;    ///< null after `stop`
  std::vector<std::string> files_;            ///< the watched files; used by the watch's thread only
};

}  // namespace wye::runtime
