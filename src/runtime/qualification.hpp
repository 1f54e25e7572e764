#pragma once
/// Qualifies the devices of a runtime, and keeps the results of each driver build in the store of
/// its cache.
#include <wye/runtime/options.hpp>
#include <wye/runtime/qualification.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "base/digest.hpp"
#include "base/logger.hpp"
#include "cache/cache.hpp"
#include "device/provider.hpp"

namespace wye::inline v0::runtime {

/// Makes the checks of `device` that `qualify` lists. Sets `lacks_compiler` if a check was skipped
/// for that reason. Calls `reach`, unless it is empty, with the number of each check, from 1, before
/// its begin. It is not called after this function returned.
/// Errors: those of `qualify`.
Result<QualificationReport> run_checks(const std::shared_ptr<device::DeviceBase>& device,
                                       Duration check_timeout, bool& lacks_compiler,
                                       base::ReachStep reach = {});

/// Encodes the checks of a report as text for storage, and decodes them. Decoding returns nothing
/// for all other text, and for a device that did not complete a check more than a day ago.
std::string encode(const QualificationReport& report);
std::optional<QualificationReport> decode(std::string_view text);

/// Threads: thread-safe. Different processes that share a store make the checks of one driver build
///          once.
class DeviceQualifier final : public device::Qualifier {
 public:
  /// If there are `settings`, which name the options that select a driver, the qualifiers of this
  /// process without a store share the reports of usable devices.
  DeviceQualifier(std::shared_ptr<cache::Cache> cache, Qualification rule, base::Logger log,
                  std::optional<std::string> settings = std::nullopt)
      : cache_(std::move(cache)), rule_(rule), log_(std::move(log)), settings_(std::move(settings)) {}

  Result<void> qualify(const std::shared_ptr<device::DeviceBase>& device) override;
  void note_loss(const device::DeviceBase& device) noexcept override;
  std::vector<QualificationReport> reports() const;

 private:
  struct Made {
    Digest key;
    QualificationReport report;
  };
  struct Trusted {
    std::uint64_t generation;  // of the device
    Digest shared_key;
  };
  Result<QualificationReport> find_or_make(const std::shared_ptr<device::DeviceBase>& device,
                                           const Digest& key);
  /// Returns whether reports are shared in this process.
  bool shares() const noexcept;
  Digest shared_key(const Digest& key) const;
  std::optional<QualificationReport> load(const Digest& key);
  void save(const device::DeviceBase& device, const Digest& key, const QualificationReport& report);

  const std::shared_ptr<cache::Cache> cache_;
  const Qualification rule_;
  const base::Logger log_;
  const std::optional<std::string> settings_;
  mutable std::mutex mutex_;
  std::vector<Made> made_;        // under `mutex_`
  std::vector<Trusted> trusted_;  // likewise
};

}  // namespace wye::runtime
