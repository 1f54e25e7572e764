#pragma once
/// The slots and the memory of a processor that several processes share.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.hpp"
#include "base/shared_memory.hpp"
#include "base/worker.hpp"

namespace wye::inline v0::silicon {

/// The entry of this process in a table of the processes of a user that share a processor. The
/// table is a file that they map: "silicon-<key>" in a directory of the user. An entry has numbers
/// that its process alone changes, and belongs to the process that has the lock of its place in the
/// file. The kernel releases that lock when the process ends in any way, and then any other process
/// clears the entry.
///
/// A request takes a slot under the mutex of the table, if fewer are used than the smallest
/// `Wish::limit`, and if no other process has a waiting request with an earlier rank. A process
/// that does not take a free slot for 250 ms, because it is stopped for example, is passed over
/// until it waits again. So a request waits only for requests with earlier ranks, and 250 ms for
/// each process that does not answer.
/// Threads: thread-safe. In a child of `fork` it changes nothing.
class MachineShare {
 public:
  /// The limit of the number of processes that share a processor.
  static constexpr std::uint32_t most_processes = 128;
  /// While a request waits, a process that has ended is noticed after this time at the latest.
  static constexpr Duration check_period = std::chrono::milliseconds(250);

  /// The number of slots that the pools of a process ask for.
  struct Wish {
    std::uint32_t limit = 0;      ///< 0: they have none
    std::uint32_t otherwise = 1;  ///< if no process has a limit
  };
  /// A process that shares the processor, for display.
  struct Process {
    std::int64_t number = 0;  ///< in its own namespace
    std::uint32_t used = 0;   ///< slots
    Bytes held;
    bool waits = false;  ///< a request waits for a slot
    bool is_own = false;
  };

  /// Adds this process to the table of processor `key` in `folder`, and creates both if they are
  /// missing. Empty: the default folder.
  /// Errors: io (the folder or file cannot be used, or belongs to another user), corrupt (it is no
  ///         such table, or a damaged one), unsupported (a table of another version), unavailable
  ///         (it has `most_processes`, or stays locked for 2 s).
  /// Units:  `clock` measures the time in which a process takes a slot; all processes have the same
  ///         clock.
  static Result<std::unique_ptr<MachineShare>> join(std::string folder, std::string_view key,
                                                    const Clock& clock = Clock::steady());
  MachineShare(const MachineShare&) = delete;
  /// Removes the entry, and the file if it was the last one.
  ~MachineShare();
  const std::string& folder() const noexcept { return folder_; }

  /// Starts the thread that calls `changed` while a request waits: when it may get a slot that
  /// other processes returned, and each `check_period`. The thread is parked otherwise.
  /// Errors: unavailable (no thread can be started).
  Result<void> watch(std::function<void()> changed);

  void set_wish(Wish wish) noexcept;
  /// Returns the number of slots of all processes together.
  std::uint32_t limit() const noexcept;
  /// Uses a slot. Returns false if none is free, or if a request of another process with an earlier
  /// rank waits.
  /// Cost:    0.1 us if no process has the mutex, and some ns for each process.
  bool take(Instant rank) noexcept { return serve(rank, true); }
  /// Returns whether `take` would succeed now.
  bool is_free(Instant rank) noexcept { return serve(rank, false); }
  /// Uses `count` slots more, even if they are not free: leases that began before this process
  /// joined.
  void adopt(std::uint32_t count) noexcept;
  void give_back() noexcept;
  /// Notes the rank of the first request of this process that waits for nothing but a slot of the
  /// machine; nothing: there is none.
  void wait(std::optional<Instant> rank) noexcept;
  /// Returns the slots that other processes use.
  std::uint32_t used_elsewhere() const noexcept;

  /// Sets the budget of this process. The smallest of all processes limits the sum of their memory.
  void set_budget(Bytes budget) noexcept;
  Bytes budget() const noexcept;
  /// Notes the memory that this process holds. The last call of several threads notes the newest
  /// value of `held`.
  void publish(const std::atomic<std::uint64_t>& held) noexcept;
  /// Returns whether `bytes` fit into the budget, beside `held` of this process and the memory of
  /// the others.
  bool has_room(std::uint64_t held, Bytes bytes) const noexcept;
  /// Returns the memory that other processes hold.
  Bytes held_elsewhere() const noexcept;
  /// Clears the entries of processes that have ended. Returns whether there was one. Does nothing
  /// if it was done in the last 10 ms, unless `now`.
  bool collect_dead(bool now = false) noexcept;

  std::vector<Process> processes() const;

 private:
  struct Entry;
  struct Table;

  MachineShare(base::SharedFile file, std::string folder, const Clock& clock) noexcept
      : folder_(std::move(folder)), clock_(clock), file_(std::move(file)) {}
  Result<void> map(std::string_view key);
  Result<void> claim();
  bool serve(Instant rank, bool takes) noexcept;
  bool serve_locked(Instant rank, bool takes) noexcept;
  void run(const std::function<void()>& changed) noexcept;
  /// Wakes the processes that wait.
  void wake_others() noexcept;
  std::span<Entry> entries() const noexcept;  // their number changes
  std::uint64_t place_of(const Entry& entry) const noexcept;

  const std::string folder_;
  const Clock& clock_;
  base::SharedFile file_;
  Table* table_ = nullptr;
  Entry* own_ = nullptr;
  bool is_joining_ = false;  // the place for that is locked
  const base::Origin origin_;
  std::mutex publishing_;
  std::mutex collecting_;
  std::atomic<Instant> next_collect_{Instant::min()};
  std::atomic<bool> is_parked_{false};  // the thread sleeps without a time limit
  std::atomic<bool> stops_{false};
  std::optional<base::Worker> watcher_;
};

}  // namespace wye::silicon
