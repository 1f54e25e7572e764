#pragma once
/// The devices of a pool, their health, and their processors.
#include <wye/pool/context_pool.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/gate.hpp"
#include "base/internals.hpp"
#include "base/logger.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "device/backend.hpp"
#include "device/device_ref.hpp"
#include "device/provider.hpp"
#include "silicon/silicon.hpp"

namespace wye::inline v0::pool {

inline constexpr std::size_t no_device = ~std::size_t{0};

using base::seconds;

/// The devices that a request may use.
struct DeviceFilter {
  std::string_view on = {};  ///< an id or a backend; empty: any
  Features needs = {};
  std::size_t only = no_device;    ///< an index; replaces `on` and `needs`
  std::string_view workload = {};  ///< named in errors

  bool names(std::size_t device, const AdapterInfo& info) const noexcept {
    if (only != no_device) return device == only;
    return on.empty() || on == info.id || on == info.backend;
  }
};

/// Notes memory errors and heat of one processor, as its monitor reports them.
/// Threads: under the mutex of its owner, but for `is_due`, `begin` and `is_doubted`.
class ProcessorWatch {
 public:
  bool is_due(Instant now) const noexcept { return now >= next_.load(std::memory_order_relaxed); }
  /// Returns whether the calling thread reads the monitor now. The next reading is due at `next`.
  bool begin(Instant now, Instant next) noexcept;
  /// Returns the new faults of the processor `name`. A monitor that lacks all values at first has
  /// none later, and is not read again.
  std::vector<Error> note(const Monitoring& read, const std::string& name, Instant now);
  /// Returns whether the memory has had an error within the last minute that ECC did not correct.
  bool is_doubted(const Clock& clock) const noexcept {
    const Instant until = doubted_until_.load(std::memory_order_relaxed);
    return until != Instant::min() && clock.now() < until;
  }

 private:
  std::atomic<Instant> next_{Instant::min()};
  std::atomic<Instant> doubted_until_{Instant::min()};
  bool was_read_ = false;
  std::optional<std::uint64_t> memory_errors_;  ///< that ECC did not correct, at the last reading
  bool is_hot_ = false;                         ///< at the last reading
};

/// Why a device is suspect.
enum class Suspicion : std::uint8_t {
  none,
  unfinished_work,  ///< work of a job that failed, ran out of time for example, is in flight there
  memory_errors,    ///< its memory has had an error lately that ECC could not correct
};

/// Devices have indices in the order in which they were added, and so have processors. The number
/// of devices never falls, and the index of a device never changes. A device that is lost is
/// replaced when it is opened again.
/// Threads: thread-safe. No driver is called under its mutex, and no other lock is taken but that of
///          the qualifier. `prepare`, `discard` and `publish` are called by one thread at a time.
class Fleet {
 public:
  /// Room for `limit` devices. `qualifier` checks devices that are opened again; null: they are
  /// trusted.
  Fleet(std::shared_ptr<const PoolOptions> options, std::size_t limit,
        std::shared_ptr<device::Qualifier> qualifier, std::shared_ptr<base::Journal> journal);

  const Clock& clock() const noexcept { return *clock_; }
  /// Returns the process that opened it. A child of `fork` takes no lock of it.
  const base::Origin& origin() const noexcept { return origin_; }
  device::Qualifier* qualifier() const noexcept { return qualifier_.get(); }

  std::size_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  /// Returns the number that `size` never exceeds.
  std::size_t limit() const noexcept { return members_.size(); }
  /// Describes a device. A device that was lost and opened again has the same description.
  const AdapterInfo& info(std::size_t device) const noexcept { return members_[device].info; }
  /// Returns a device as it is now.
  Device device(std::size_t index) const {
    const base::Lock lock = lock_here();
    return members_[index].device;
  }
  /// Returns the same without a copy if the device is never replaced; otherwise in `copy`, which
  /// outlives the result.
  const Device& device(std::size_t index, Device& copy) const {
    return members_[index].is_replaceable ? copy = device(index) : members_[index].device;
  }
  std::vector<Device> devices() const;
  std::optional<std::size_t> find(device::DeviceRef device) const noexcept;
  /// Errors: device_lost, invalid_argument (of another pool).
  Result<std::size_t> find(const device::DeviceBase& device) const;

  std::size_t processor_count() const noexcept { return processor_count_.load(std::memory_order_acquire); }
  std::size_t processor_of(std::size_t device) const noexcept { return members_[device].processor; }
  silicon::Silicon& silicon(std::size_t processor) const noexcept { return *processors_[processor].silicon; }
  /// Returns whether `is_meant(device)` for a device on a processor. Both are indices.
  template <class F>
  bool any_on(std::size_t processor, F is_meant) const {
    for (std::size_t d = 0; d < size(); ++d)
      if (members_[d].processor == processor && is_meant(d)) return true;
    return false;
  }

  bool is_able(std::size_t device, const DeviceFilter& filter) const noexcept {
    const AdapterInfo& info = members_[device].info;
    return filter.names(device, info) && info.features.contains(filter.needs);
  }
  /// Returns whether a lease may use `device`: named, able and not lost.
  bool is_candidate(std::size_t device, const DeviceFilter& filter) const noexcept {
    return is_able(device, filter) && !is_lost(device);
  }
  bool has_candidate(const DeviceFilter& filter) const noexcept;
  /// Returns why no device is a candidate.
  Error no_candidate(const DeviceFilter& filter) const;

  /// Adds a device that other threads do not see before `publish`, and returns its index. `adapter`
  /// opens it again, if it can; `found_as` is the id that its backend gives it. Throws:
  /// std::bad_alloc; then it is not added.
  std::size_t prepare(std::shared_ptr<device::DeviceBase> device, std::shared_ptr<device::Adapter> adapter,
                      std::string found_as);
  std::size_t prepared() const noexcept { return prepared_; }
  /// Returns the number of processors of the first `devices`.
  std::size_t processors_of(std::size_t devices) const noexcept;
  /// Removes the device `from` and all later ones, which are not published.
  void discard(std::size_t from) noexcept;
  void publish() noexcept;
  /// Returns the id of a device's adapter in its backend.
  const std::string& found_as(std::size_t device) const noexcept { return members_[device].found_as; }

  // Health (health.cpp)
  bool is_lost(std::size_t device) const noexcept;
  /// Notes that a device was found to be lost.
  void note_loss(std::size_t device) noexcept;
  /// Notes the losses of devices that a request may use. Returns whether it can use none now.
  bool note_losses(const DeviceFilter& filter) noexcept;
  /// Returns whether a device was lost lately.
  bool has_lost() const noexcept { return has_lost_.load(std::memory_order_relaxed); }
  /// Begins to probe a lost device whose time has come. Returns false if there is none with this
  /// index. `waits`: waits first while another thread probes it. The caller then calls `open_again`,
  /// and `install` or `quarantine`.
  bool begin_probe(std::size_t device, bool waits) noexcept;
  /// Does the same for a lost device, whose adapter was found again, at any time. `adapter`, unless
  /// it is null, replaces its adapter, and a dead device returns with it.
  bool begin_probe_with(std::size_t device, std::shared_ptr<device::Adapter> adapter) noexcept;
  /// Opens and checks a device that is being probed. Throws: std::bad_alloc.
  Result<Device> open_again(std::size_t device) const;
  void install(std::size_t device, Device opened) noexcept;
  /// Notes why a device was not opened, if it is still being probed.
  void quarantine(std::size_t device, const Error& why) noexcept;
  /// Counts a completed job of a device. 16 of them end the doubt about a device that was lost.
  void note_completion(std::size_t device) noexcept;
  std::uint64_t recoveries() const noexcept { return recoveries_.load(std::memory_order_relaxed); }
  DeviceState state_of(std::size_t device) const;
  /// Returns why a device is suspect.
  Suspicion suspicion(std::size_t device) const noexcept;
  /// Counts a lane with unfinished work of a job, or one less.
  void count_unfinished(std::size_t device, int by) noexcept {
    members_[device].unfinished.fetch_add(static_cast<std::uint32_t>(by), std::memory_order_relaxed);
  }
  /// Reads the monitor of a device's processor if it is due, and notes new memory errors and heat.
  void note_monitor(std::size_t device, Instant now) noexcept {
    if (processors_[members_[device].processor].watch.is_due(now)) read_monitor(device, now);
  }

 private:
  struct Member {
    AdapterInfo info;
    std::string found_as;  ///< the id of its adapter in the backend
    std::size_t processor = 0;
    bool is_replaceable = false;               ///< it can be opened again
    std::atomic<std::uint64_t> opening{0};     ///< the generation of its `DeviceRef`
    std::atomic<std::uint32_t> unfinished{0};  ///< lanes
    // Under the mutex; the device of a member that is not replaceable never changes:
    Device device;
    std::shared_ptr<device::Adapter> adapter;  ///< null: it is not replaceable
    DeviceHealth health = DeviceHealth::healthy;
    std::uint64_t generation = 1;  ///< counts the devices that were opened in its place
    std::uint32_t failures = 0;    ///< losses and failed probes since jobs completed again
    std::uint32_t completed = 0;   ///< jobs since the last of these
    Instant probe_at{};            ///< quarantined: it is opened again then
    std::optional<Error> last_fault;

    base::DeviceChanged changed(base::DeviceChanged::Change change,
                                const std::optional<Error>& error = std::nullopt) const {
      return {.change = change, .device = info.id, .name = info.name, .error = error};
    }
  };
  struct Processor {
    std::shared_ptr<silicon::Silicon> silicon;
    ProcessorWatch watch;
  };

  /// Locks, but not in a child of `fork`: another thread may have had the mutex.
  base::Lock lock_here() const { return origin_.is_inherited() ? base::Lock() : base::lock_soon(mutex_); }
  void note_loss_locked(Member& member) noexcept;
  void quarantine_locked(Member& member, const Error& why) noexcept;
  void read_monitor(std::size_t device, Instant now) noexcept;

  const base::Origin origin_;
  const std::shared_ptr<const PoolOptions> options_;
  const Clock* const clock_;
  base::Logger log_;
  const std::shared_ptr<device::Qualifier> qualifier_;  // may be null
  const std::shared_ptr<base::Journal> journal_;
  // All places are there from the beginning. A thread that does not add devices reads below the
  // counts only.
  std::vector<Member> members_;
  std::vector<Processor> processors_;
  std::atomic<std::size_t> size_{0}, processor_count_{0};
  std::size_t prepared_ = 0;
  mutable std::mutex mutex_;
  base::Gate probed_;  // a probe has ended
  std::atomic<bool> has_lost_{false};
  std::atomic<std::uint64_t> recoveries_{0};
};

}  // namespace wye::pool
