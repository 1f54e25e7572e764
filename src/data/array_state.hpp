#pragma once
/// The state of an array: the order of its users, and the validity of its copies.
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
#include "device/timeline.hpp"
#include "pool/pool.hpp"

namespace wye {
inline namespace v0 {
namespace data {

/// The contents of one array: the host's copy and at most one replica per device, each valid or not. At least one is valid
/// unless the array has failed. Users follow each other by `follow`: while a user has the array, no other user changes
/// the contents that it reads.
/// Threads: thread-safe.
class ArrayState final : public device::Retained,
                         public device::Reclaimable,
                         public std::enable_shared_from_this<ArrayState> {
 public:
  /// Creates an array of `count` elements in memory of its own: a copy of `values`, or undefined contents if it is empty.
  static std::shared_ptr<ArrayState> make(std::shared_ptr<pool::Pool> pool, std::span<const std::byte> values,
                                          std::uint64_t count, ElementType element, std::uint32_t size);
  /// Creates an array over memory of the caller.
  static std::shared_ptr<ArrayState> borrow(std::shared_ptr<pool::Pool> pool, std::span<std::byte> memory,
                                            std::uint64_t count, ElementType element, std::uint32_t size);
  /// Creates an array whose contents are in `buffer`.
  static std::shared_ptr<ArrayState> over(std::shared_ptr<pool::Pool> pool,
                                          std::shared_ptr<device::BufferBase> buffer, std::uint64_t count,
                                          ElementType element, std::uint32_t size);
  ~ArrayState() override;
  ArrayState(const ArrayState&) = delete;

  /// Sets the function that the destructor calls after the last use of the memory, and whether the array is
  /// read-only. Called before the array is used.
  void set_release(std::function<void()> release, bool read_only);
  bool is_read_only() const noexcept { return read_only_; }
  /// Returns the error of writing a read-only array.
  static Error read_only_error();

  std::uint64_t count() const noexcept { return count_; }
  ElementType element() const noexcept { return element_; }
  std::uint32_t element_size() const noexcept { return size_; }
  Bytes bytes() const noexcept { return Bytes{count_ * size_}; }
  const std::shared_ptr<pool::Pool>& pool() const noexcept { return pool_; }

  /// Makes `user` follow the users before it and adds those to `before`: a reader follows the last writer; a writer
  /// follows the last writer and its readers. Changes nothing if it throws.
  void follow(Access access, const std::shared_ptr<Completion>& user, Predecessors& before);

  /// Returns the failure of the last user that should have written the array, if it failed.
  std::optional<Error> failure() const;
  void fail(Error error);
  /// Abandons a user that may never complete. The array cannot be written any more, because that user or its
  /// device may still use the memory. If the user writes the array, the failure is permanent.
  void abandon(const Error& error, Access access) noexcept;
  /// Returns the error of the abandoned user, if there is one.
  std::optional<Error> abandoned() const;

  // The functions below are for the user that has the array.

  /// Transfers the contents to the host and returns them.
  /// Errors: device_lost, out_of_memory, timed_out, closed; the failure of the array.
  Result<std::byte*> on_host(Instant until);
  /// Returns the host's memory, valid or not. For users that overwrite it.
  std::byte* host_memory() noexcept { return host_; }
  bool valid_on_host() const;
  struct Replica {
    std::shared_ptr<device::BufferBase> buffer;
    bool valid = false;
    bool filling = false;               ///< a user is about to submit a copy of the contents to it
    device::TimelinePoint filled = {};  ///< reached by a copy in flight to it; empty: there is none

    bool is_filled() const noexcept { return !filled.timeline || filled.timeline->reached() >= filled.value; }
  };
  /// Returns the replica on `device`; creates it if there is none.
  Result<Replica> on_device(device::DeviceBase& device);
  /// Returns a valid replica on another device that `device` can access; null if there is none.
  std::shared_ptr<device::BufferBase> source_for(device::DeviceBase& device) const;
  /// Transfers the contents to the replica on `device` and returns it.
  /// Errors: those of `on_host` and `on_device`.
  Result<std::shared_ptr<device::BufferBase>> transfer_to(device::DeviceBase& device, Instant until);
  /// Returns whether the caller has to copy the contents to the replica on `device`. One of several readers
  /// copies; the others wait for its `end_fill`. A caller that fills several arrays fills them in the order
  /// of their addresses.
  /// Errors: timed_out.
  Result<bool> begin_fill(const device::DeviceBase& device, Instant until);
  /// Ends a fill. If its copy is in flight, the contents are valid for lanes that wait for `filled`; the caller calls this
  /// again when the copy has completed or failed.
  void end_fill(const device::DeviceBase& device, bool valid, device::TimelinePoint filled = {}) noexcept;
  /// Marks the copy on `device`, or the host's if it is null, as the only valid one.
  void mark_written_on(const device::DeviceBase* device);
  /// Marks the copy on `device`, or the host's if it is null, as not valid.
  void invalidate_on(const device::DeviceBase* device);
  /// Returns whether a copy other than that on `device` is valid; other than the host's if it is null.
  bool valid_elsewhere(const device::DeviceBase* device) const;
  /// Frees the replica on `device` if no user has the array or waits for it, and another copy is valid.
  Bytes reclaim(const device::DeviceBase& device, Bytes wanted) override;

 private:
  ArrayState() = default;
  Result<void> fetch(const Replica& from, Instant until);
  /// Waits for the copy in flight to `replica`.
  static Result<std::shared_ptr<device::BufferBase>> await(const Replica& replica, Instant until);
  /// Returns whether a user has the array or waits for it. Requires the mutex.
  bool is_in_use() const;
  /// Implements `valid_elsewhere`. Requires the mutex.
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
  base::Gate copied_;  // a copy to the host or to a device has ended
  bool fetching_ = false;
  bool host_valid_ = true;
  std::map<device::DeviceRef, Replica> replicas_;  // a reclaimed replica has no buffer
  std::optional<Error> failure_;
  std::optional<Error> abandoned_;
  std::shared_ptr<Completion> writer_;
  std::vector<std::shared_ptr<Completion>> readers_;
};

/// The host as a user of an array, from `read` or `write` until the view is destroyed. The array holds the completion
/// and not this object: otherwise neither would be destroyed.
class HostAccess {
 public:
  HostAccess(const std::shared_ptr<ArrayState>& array, Access access) : state_(std::make_unique<State>()) {
    array->follow(access, state_->completion, state_->before);
  }
  /// Completes when the predecessors are complete, because the followers of an access that timed out still
  /// follow them.
  ~HostAccess() {
    Predecessors& before = state_->before;
    before.when_all_complete(&State::complete, state_.release());
  }
  HostAccess(const HostAccess&) = delete;

  /// Waits until all predecessors are complete.
  /// Errors: timed_out.
  Result<void> wait(Instant until);

 private:
  struct State {
    std::shared_ptr<Completion> completion = std::make_shared<Completion>();
    Predecessors before;
    static void complete(void* object) noexcept {
      const std::unique_ptr<State> state(static_cast<State*>(object));
      state->completion->complete();
    }
  };
  std::unique_ptr<State> state_;
};

}  // namespace data
}  // namespace v0
}  // namespace wye
