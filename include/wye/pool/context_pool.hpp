#pragma once
/// The ContextPool: execution lanes on shared devices, leased one user at a time.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/log.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/device.hpp>
#include <wye/device/isolation.hpp>
#include <wye/device/native.hpp>
#include <wye/pool/lease.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wye {
inline namespace v0 {

namespace pool {
class Pool;
}

struct PoolOptions {
  /// Backends to look for devices in, preferred first. Empty: cuda, vulkan, cpu, as far as this build has
  /// them.
  std::vector<std::string> backends = {};
  std::uint32_t lanes_per_device = 2;                ///< contexts per device, made when first needed
  Bytes lane_memory = Bytes{512ull << 20};           ///< that one context may allocate
  Duration lease_timeout = std::chrono::seconds(5);  ///< for requests without a deadline
  std::uint32_t cpu_threads = 0;  ///< of the CPU team, the caller included; 0: one per processor
  bool validate_driver = false;   ///< have the driver's validation layers report to `log`
  LogSink log = {};
  const Clock* clock = nullptr;          ///< null: the steady clock
  std::string cuda_driver = {};          ///< the library to open as CUDA's driver; empty: the system's
  std::vector<NativeDevice> adopt = {};  ///< devices that the host has opened: used instead of wye's own
  /// Devices that cannot be divided are not opened with `partition`, and have that for a reason. The CPU's part is
  /// `cpu_threads`; devices of the host's are what the host has made them.
  Isolation isolation = Isolation::shared;
  Partition partition = {};  ///< of `Isolation::partition`; by default half of the device
  Bytes kept_memory =
      Bytes{512ull << 20};  ///< of CUDA's devices, that a context holds on to, `lane_memory` at most
  /// How long the destruction of the pool waits for work in flight; what is in flight then is abandoned, as by
  /// `close(deadline)`. Unset: 10 s for work of a GPU, no limit for host functions.
  std::optional<Duration> close_timeout = std::nullopt;
};

/// Selects the context to lease.
struct LeaseRequest {
  std::string_view on = {};  ///< an adapter id ("vulkan:0") or a backend ("vulkan"); empty: any
  Features needs = {};
  std::optional<Deadline> deadline = std::nullopt;  ///< unset: the pool's `lease_timeout`
};

/// One context, for display.
struct ContextInfo {
  std::string id;             ///< "vulkan:0#1"
  std::string device;         ///< "vulkan:0"
  std::string backend;        ///< "vulkan"
  bool active = false;        ///< leased
  Duration last_used{};       ///< how long ago its last lease began
  Bytes bytes;                ///< held by its buffers
  std::uint64_t kernels = 0;  ///< dispatches so far
};

struct PoolMetrics {
  std::uint32_t contexts = 0;  ///< made so far
  std::uint32_t active = 0;    ///< of these, leased now
  std::uint64_t leases = 0;
  std::uint64_t switches = 0;  ///< leases that began on another context than the one leased before
  std::uint64_t timeouts = 0;  ///< requests whose deadline passed
  Bytes bytes;                 ///< allocated by contexts, and for replicas of arrays
};

/// Owns the devices and their contexts. Copies share one pool; devices close with the last of it, its
/// leases and their buffers.
/// Threads: thread-safe; waiters are served first come, first served.
class WYE_API ContextPool {
 public:
  /// Opens every usable device of the backends asked for.
  /// Errors: invalid_argument (an option out of range), not_found (a backend this build does not have, with
  /// those it
  ///         has), unavailable (no usable device, with the reason for each).
  static Result<ContextPool> open(PoolOptions options = {}, Version header = header_version);

  /// Returns all adapters of the backends. One that is not usable has the reason.
  const std::vector<AdapterInfo>& adapters() const;
  /// Returns the open devices, preferred first.
  const std::vector<Device>& devices() const;

  /// Leases one context that meets `request`; waits until one is idle or the deadline passes. Takes the first device with
  /// idle contexts, and of these the least recently used; an open context before a new one. If the driver
  /// opens no further context, waits for an open one.
  /// Errors: not_found (no device `on`), unsupported (none has what it needs), timed_out, device_lost, closed; the
  ///          driver's, if it opens none and none is open.
  /// Cost: one lock and no allocation if a context with a lane is idle.
  Result<Lease> lease(const LeaseRequest& request = {});
  /// Does the same without waiting.
  /// Errors: those of `lease`; unavailable (no context is free) instead of timed_out.
  Result<Lease> try_lease(const LeaseRequest& request = {});

  std::vector<ContextInfo> contexts() const;
  PoolMetrics metrics() const;

  /// Refuses new leases and wakes all waiters. Outstanding leases stay valid until they end.
  void close();
  /// Does the same, and waits until devices have completed the work of ended leases. If `deadline` passes first, abandons what
  /// is in flight: its lanes, their memory and their devices are kept until the process ends, because a device may still use
  /// them.
  /// Errors: timed_out, naming each context and the job that failed on it.
  [[nodiscard]] Result<void> close(Deadline deadline);

  const std::shared_ptr<pool::Pool>& state() const noexcept { return state_; }

 private:
  friend class pool::Pool;
  explicit ContextPool(std::shared_ptr<pool::Pool> state) : state_(std::move(state)) {}
  std::shared_ptr<pool::Pool> state_;
};

}  // namespace v0
}  // namespace wye
