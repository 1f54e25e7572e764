#pragma once
/// The memory accounts of a pool: the memory that a job may reserve, and the pressure on memory.
#include <wye/pool/context_pool.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/journal.hpp"
#include "pool/fleet.hpp"
#include "silicon/memory_account.hpp"

namespace wye::inline v0::pool {

/// The memory that a job has yet to allocate on a device.
struct WorkingSet {
  Bytes own;       ///< for its host memory and its scratch memory, charged to its context in the end
  Bytes replicas;  ///< for arrays, charged to the pool
  Bytes all() const noexcept {
    return own.count <= ~replicas.count ? own + replicas : Bytes{~std::uint64_t{0}};
  }
};

/// Memory that a job has reserved, from which its buffers take their charges. Charged to the pool.
struct Reservation {
  silicon::MemoryCharge own, replicas;
};

/// A limit that a working set exceeds.
struct SizeLimit {
  Errc code = Errc::over_budget;
  Bytes needed, limit;
  std::string of;  ///< "budget of silicon 'H100'"
};

/// An account on each processor of a fleet, a child of the processor's, and one for each tag with a
/// budget.
/// Threads: thread-safe. It has no mutex. `prepare` and `discard` are called by one thread at a time.
class Accounts {
 public:
  /// `fleet` outlives it.
  Accounts(std::shared_ptr<const PoolOptions> options, const Fleet& fleet,
           std::shared_ptr<base::Journal> journal);
  Accounts(const Accounts&) = delete;
  ~Accounts();
  /// Has the functions of the options receive the events of the journal, until this ends: no other
  /// part of a pool lives longer.
  /// Errors: unavailable (no thread can be started). Throws: std::bad_alloc.
  Result<void> subscribe_sinks();
  const std::shared_ptr<base::Journal>& journal() const noexcept { return journal_; }

  /// Opens the accounts of the next processor, with the name `owner` of a device on it. Throws:
  /// std::bad_alloc; then they are not opened.
  void prepare(const std::string& owner);
  std::size_t prepared() const noexcept { return prepared_; }
  /// Closes the accounts of the processor `from` and all later ones.
  void discard(std::size_t from) noexcept;

  /// Returns the account of a device's processor.
  const std::shared_ptr<silicon::MemoryAccount>& of(std::size_t device) const noexcept {
    return here(device).account;
  }
  /// Returns the account on the processor of `device`, or null if no device of the pool is on it.
  std::shared_ptr<silicon::MemoryAccount> of(const device::DeviceBase& device) const noexcept;
  /// Returns the account of a tag with a budget on the processor of a device; null if the tag has
  /// none.
  std::shared_ptr<silicon::MemoryAccount> of_tag(std::size_t device, std::string_view tag) const noexcept;
  /// Returns the device that uses memory of the host in place, whose processor's account has the
  /// host's copies of arrays; nothing if there is none.
  std::optional<std::size_t> host_device() const noexcept;
  /// Returns the memory that the pool holds.
  Bytes held() const noexcept;
  /// Returns the accounts of a processor, and of the tags on it.
  std::vector<MemoryShare> shares(std::size_t processor) const;

  /// Returns the limit because of which a working set can never be reserved; nothing if there is
  /// none.
  std::optional<SizeLimit> limit_of(std::size_t device, const silicon::MemoryAccount* tag,
                                    const WorkingSet& set) const;
  /// Charges a whole working set at once to `reserved`, which is empty, or nothing. Idle memory
  /// makes room.
  /// Errors: over_budget, out_of_memory, with the holders of the memory as a line of context.
  Result<void> reserve(std::size_t device, const std::shared_ptr<silicon::MemoryAccount>& tag,
                       const WorkingSet& set, Instant now, Reservation& reserved);
  /// A job found no memory on a device. Returns whether memory may become free: leases for jobs are
  /// in use on its processor, which has one slot less then, or other processes that share it hold
  /// memory.
  bool note_shortage(std::size_t device) noexcept;
  std::uint64_t shortages() const noexcept { return shortages_.load(std::memory_order_relaxed); }
  /// Counts a replica of an array whose memory was freed for another allocation.
  void note_eviction(const device::DeviceBase& device, Bytes bytes) noexcept;
  std::uint64_t evictions() const noexcept { return evictions_.load(std::memory_order_relaxed); }

  /// Emits the pressure on the memory of a device's processor, if it has changed.
  void note_pressure(std::size_t device) noexcept {
    if (journal_->wants<base::PressureChanged>()) report_pressure(device);
  }
  void note_pressure(const device::DeviceBase& device) noexcept;
  MemoryPressure pressure_on(std::size_t processor) const noexcept;

 private:
  /// The state for one processor.
  struct Here {
    std::shared_ptr<silicon::MemoryAccount> account;
    std::vector<std::shared_ptr<silicon::MemoryAccount>> tags;  ///< as `PoolOptions::tag_memory`
    std::atomic<MemoryPressure::Level> level{MemoryPressure::Level::none};
    std::atomic<Instant> next_check{Instant::min()};  ///< when the driver is asked for free memory again
    std::atomic<bool> is_stalled{false};              ///< processes wait for memory
  };

  Here& here(std::size_t device) noexcept { return here_[fleet_.processor_of(device)]; }
  const Here& here(std::size_t device) const noexcept { return here_[fleet_.processor_of(device)]; }
  /// Charges `bytes` for a device to `charge`, after idle memory has made room.
  Result<void> make_room(std::size_t device, Bytes bytes, silicon::MemoryCharge& charge);
  /// Asks the driver, or the system, how much memory a processor has left.
  void check_memory(std::size_t device) noexcept;
  void report_pressure(std::size_t device) noexcept;

  const std::shared_ptr<const PoolOptions> options_;
  const std::shared_ptr<base::Journal> journal_;
  std::array<base::Subscription, 2> sinks_;
  const Fleet& fleet_;
  std::vector<Here> here_;  // per processor; as in `Fleet`
  std::size_t prepared_ = 0;
  std::atomic<std::uint64_t> evictions_{0}, shortages_{0};
};

}  // namespace wye::pool
