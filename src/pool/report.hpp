#pragma once
/// Describes the leases of a pool: in errors, in the log and in lists.
#include <wye/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pool/leases.hpp"

namespace wye::inline v0::pool {

/// Threads: its functions are called under the mutex of the leases, but for `log_leases`,
///          `waiting_on` and `slots_used_on`.
class Report {
 public:
  explicit Report(const Leases& leases) noexcept : leases_(leases) {}

  /// Returns the error of a request that got no context: unavailable (it did not wait), timed_out
  /// or cancelled.
  Error no_context_free(const Leases::Wanted& wanted, Duration waited, Errc code) const;
  /// Returns the error of a request that waits for ever.
  Error never_free(const Leases::Wanted& wanted) const;
  std::vector<ContextInfo> contexts() const;
  /// Returns the number of requests that wait for a device of a processor.
  std::uint32_t waiting_on(std::size_t processor) const;
  std::vector<SlotInfo> slots_used_on(std::size_t processor) const;
  /// Logs the leases of the application that have not ended.
  void log_leases() const;

 private:
  /// Returns the ids of the devices that a request may use, and its workload.
  std::string able_devices(const DeviceFilter& filter) const;
  /// Returns ", 2 of 2 slots of 'H100' in use" for each processor without a free slot that a
  /// request may use.
  std::string used_slots(const Leases::Wanted& wanted) const;
  /// Returns "; held by 'preview' for 2.0 s", with the tags of leases that a request waits for;
  /// empty without tags.
  std::string tagged_holders(const Leases::Wanted& wanted, Instant now) const;

  const Leases& leases_;
};

}  // namespace wye::pool
