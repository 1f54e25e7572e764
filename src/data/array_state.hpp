#pragma once
/// The state behind an array: who uses it in which order, and where its contents are.
#include <wye/data/array.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/gate.hpp"
#include "data/completion.hpp"
#include "device/buffer.hpp"
#include "device/device.hpp"
#include "pool/pool.hpp"

namespace wye {
inline namespace v0 {
namespace data {

/// Coherence: the host's copy and at most one replica per device; each is valid or not, and at least one is
/// valid unless the array has failed. Users take their turn by `follow`, so between one user's start and
/// its end nobody else changes what it reads.
/// Threads: thread-safe.
class ArrayState final : public device::Retained,
                         public device::Reclaimable,
                         public std::enable_shared_from_this<ArrayState> {
 public:
  /// An array of `count` elements of the host's: a copy of `values`, or unset where that is empty.
  static std::shared_ptr<ArrayState> make(std::shared_ptr<pool::Pool> pool, std::span<const std::byte> values,
                                          std::uint64_t count, ElementType element, std::uint32_t size);
  /// An array over memory that somebody else owns.
  static std::shared_ptr<ArrayState> borrow(std::shared_ptr<pool::Pool> pool, std::span<std::byte> memory,
                                            std::uint64_t count, ElementType element, std::uint32_t size);

  /// An array whose contents are in `buffer`, whoever's memory that is.
  static std::shared_ptr<ArrayState> over(std::shared_ptr<pool::Pool> pool,
                                          std::shared_ptr<device::BufferBase> buffer, std::uint64_t count,
                                          ElementType element, std::uint32_t size);
  ~ArrayState() override;
  ArrayState(const ArrayState&) = delete;

  /// Says, before anybody uses it, what is called at its end, when all that holds its memory has let go of it; and whether
  /// jobs may read it only.
  void when_over(std::function<void()> release, bool read_only);
  bool is_read_only() const noexcept { return read_only_; }
  /// What who wants to write it is told.
  static Error why_read_only();

  std::uint64_t count() const noexcept { return count_; }
  ElementType element() const noexcept { return element_; }
  std::uint32_t element_size() const noexcept { return size_; }
  Bytes bytes() const noexcept { return Bytes{count_ * size_}; }
  const std::shared_ptr<pool::Pool>& pool() const noexcept { return pool_; }

  /// Lines `user` up behind those it has to follow, and adds them to `before`: the last writer for a reader; the last
  /// writer and its readers for a writer. Changes nothing if it throws.
  void follow(Access access, const std::shared_ptr<Completion>& user, Predecessors& before);

  /// The failure of the last user that should have written this, if any.
  std::optional<Error> failure() const;
  void fail(Error error);
  /// Gives up on a user that may never end. The array cannot be written any more: that user or its device may still use the
  /// memory. If the user writes the array, its contents have failed for good.
  void abandon(const Error& error, Access access) noexcept;
  /// The error of the user that was given up, if any.
  std::optional<Error> abandoned() const;

  /// Brings the contents to the host. Only in one's turn.
  /// Errors: device_lost, out_of_memory, timed_out, closed; the failure of the array.
  Result<std::byte*> on_host(Instant until);
  /// The host's memory, whatever is in it: for who writes all of it.
  std::byte* host_memory() noexcept { return host_; }
  bool valid_on_host() const;
  /// The replica on `device`, made where there is none, and whether what is in it is valid.
  struct Replica {
    std::shared_ptr<device::BufferBase> buffer;
    bool valid = false;
    bool filling = false;  ///< somebody is copying the contents there
  };
  Result<Replica> on_device(device::DeviceBase& device);
  /// A valid replica on another device that `device` copies out of by itself; null where there is none.
  std::shared_ptr<device::BufferBase> source_for(device::DeviceBase& device) const;
  /// The replica on `device` with the contents in it. Only in one's turn.
  /// Errors: those of `on_host` and `on_device`.
  Result<std::shared_ptr<device::BufferBase>> bring_to(device::DeviceBase& device, Instant until);
  /// Whether the caller has to copy the contents to its replica on `device`: of several readers one does, and the
  /// others wait for its `end_fill`. Who fills several arrays begins with the one of the lowest address.
  /// Errors: timed_out.
  Result<bool> begin_fill(const device::DeviceBase& device, Instant until);
  void end_fill(const device::DeviceBase& device, bool valid) noexcept;
  /// Says that only `device` holds the contents, or only the host where it is null: they were written there.
  void written_on(const device::DeviceBase* device);
  /// Says that what `device` (the host where it is null) holds is not the contents any more.
  void lost_on(const device::DeviceBase* device);
  /// Whether somebody but `device` (the host where it is null) holds the contents too.
  bool valid_elsewhere(const device::DeviceBase* device) const;
  /// Frees the replica on `device` if no user of the array has its turn, and the contents are elsewhere too.
  Bytes reclaim(const device::DeviceBase& device, Bytes wanted) override;

 private:
  ArrayState() = default;
  Result<void> fetch(const Replica& from, Instant until);
  /// Whether a user of the array has its turn, or waits for it. Under the mutex.
  bool is_in_use() const;
  /// The same as `valid_elsewhere`, under the mutex.
  bool is_valid_elsewhere(std::optional<device::DeviceRef> device) const;

  std::shared_ptr<pool::Pool> pool_;
  std::uint64_t count_ = 0;
  ElementType element_ = ElementType::opaque;
  std::uint32_t size_ = 1;
  std::unique_ptr<std::byte[]> owned_;
  std::byte* host_ = nullptr;
  bool read_only_ = false;
  std::function<void()> release_;

  mutable std::mutex mutex_;
  base::Gate moved_;  // to the host, or to a device
  bool fetching_ = false;
  bool host_valid_ = true;
  std::map<device::DeviceRef, Replica> replicas_;  // without a buffer once it is reclaimed
  std::optional<Error> failure_;
  std::optional<Error> abandoned_;
  std::shared_ptr<Completion> writer_;
  std::vector<std::shared_ptr<Completion>> readers_;
};

/// The host's turn with an array, from `read` or `write` until its view ends. The array knows the turn, not this: else
/// neither would ever end.
class HostAccess {
 public:
  HostAccess(const std::shared_ptr<ArrayState>& array, Access access) : turn_(std::make_unique<Turn>()) {
    array->follow(access, turn_->over, turn_->before);
  }
  /// Ends the turn as soon as those before it are over: a turn that never came still keeps its followers behind them.
  ~HostAccess() {
    Predecessors& before = turn_->before;
    before.when_all_over(&Turn::end, turn_.release());
  }
  HostAccess(const HostAccess&) = delete;

  /// Waits until it is the host's turn.
  /// Errors: timed_out.
  Result<void> await(Instant until);

 private:
  struct Turn {
    std::shared_ptr<Completion> over = std::make_shared<Completion>();
    Predecessors before;
    static void end(void* of) noexcept {
      const std::unique_ptr<Turn> turn(static_cast<Turn*>(of));
      turn->over->finish();
    }
  };
  std::unique_ptr<Turn> turn_;
};

}  // namespace data
}  // namespace v0
}  // namespace wye
