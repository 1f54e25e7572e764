#pragma once
/// The state of an array: the order of its users, and the validity of its copies.
#include <wye/data/array.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/gate.hpp"
#include "data/completion.hpp"
#include "data/intervals.hpp"
#include "device/buffer.hpp"
#include "device/device.hpp"
#include "device/reclaimable.hpp"
#include "device/timeline.hpp"
#include "pool/pool.hpp"

namespace wye::inline v0::data {

/// The contents of one array: the host's copy and at most one replica per device. Each element is
/// valid in at least one of them unless it has failed. Users follow each other by `follow`: while a
/// user has elements of the array, no other user changes those that it reads.
/// Threads: thread-safe.
class ArrayState final : public device::Retained,
                         public device::Reclaimable,
                         public std::enable_shared_from_this<ArrayState> {
 public:
  /// Creates an array of `count` elements in memory of its own: a copy of `values`, or zeros if it
  /// is empty.
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

  /// Sets the function that the destructor calls after the last use of the memory, and whether the
  /// array is read-only. Called before the array is used.
  void set_release(std::function<void()> release, bool read_only);
  bool is_read_only() const noexcept { return read_only_; }
  /// Returns the error of writing a read-only array.
  static Error read_only_error();
  /// Returns the error of a slice with `AnyArray::beyond` elements.
  Error beyond_error() const;

  std::uint64_t count() const noexcept { return count_; }
  ElementType element() const noexcept { return element_; }
  std::uint32_t element_size() const noexcept { return size_; }
  Bytes bytes() const noexcept { return Bytes{count_ * size_}; }
  Interval all() const noexcept { return {0, count_}; }
  /// Returns where elements are in each copy, in bytes.
  Bytes offset_of(Interval elements) const noexcept { return Bytes{elements.first * size_}; }
  Bytes bytes_of(Interval elements) const noexcept { return Bytes{(elements.last - elements.first) * size_}; }
  const std::shared_ptr<pool::Pool>& pool() const noexcept { return pool_; }

  /// Makes `user` of `elements` follow the users before it and adds those to `before`: a reader
  /// follows the writers of its elements; a writer follows their writers and readers. A user
  /// follows itself never. Changes nothing if it throws.
  /// `pieces`: the number of parts of `elements` that the user may change one after the other.
  void follow(Access access, Interval elements, const std::shared_ptr<Completion>& user, Predecessors& before,
              std::size_t pieces = 1);
  /// Returns whether there is memory for the array on a device. That of a device which uses memory
  /// of the host is the host's copy, once it is charged.
  bool has_replica_on(const device::DeviceBase& device) const noexcept;
  /// Charges the host's copy to the pool's account on the processor of the host, before its first
  /// use. Has no effect if it is charged, is memory of the application, or the pool does not use the
  /// host as a device. No lock may be held.
  /// `reserved`: a charge of that account for it; null: none.
  /// Errors: over_budget, out_of_memory.
  Result<void> charge_host(device::MemoryCharge* reserved = nullptr);

  /// Returns the failure of a user that should have written some of `elements`, if it was the last
  /// one of these and failed.
  std::optional<Error> failure(const IntervalSet& elements) const;
  std::optional<Error> failure() const { return failure(IntervalSet(all())); }
  /// The contents of `elements` are not valid anywhere: reading them returns `error`.
  void fail(const Error& error, const IntervalSet& elements) noexcept;
  /// Abandons a user that may never complete. The array cannot be written any more, because that
  /// user or its device may still use the memory. If the user writes the array, the failure of the
  /// whole array is permanent.
  void abandon(const Error& error, Access access) noexcept;
  /// Returns the error of the abandoned user, if there is one.
  std::optional<Error> abandoned() const;

  // The functions below are for the user that has the elements.

  /// Transfers elements to the host and returns the host's copy of the array.
  /// Errors: device_lost, out_of_memory, timed_out, closed; the failure of the elements.
  Result<std::byte*> on_host(const IntervalSet& elements, Instant until);
  Result<std::byte*> on_host(Instant until) { return on_host(IntervalSet(all()), until); }
  /// Returns the host's copy of the array, valid or not. For users that overwrite it.
  std::byte* host_memory() noexcept { return host_; }
  /// Returns those of `elements` that are not valid on the host.
  IntervalSet missing_on_host(const IntervalSet& elements) const;
  /// Elements on a device.
  struct Placed {
    std::shared_ptr<device::BufferBase> buffer;  ///< the replica of the whole array
    IntervalSet missing = {};                    ///< the elements that are not valid there
    std::vector<device::TimelinePoint> fills =
        {};  ///< reached by the work in flight that writes `elements`; their users wait for it, also those that overwrite
  };
  /// Selects where the memory of a new replica comes from.
  enum class Room : std::uint8_t {
    make,  ///< have the device reclaim idle memory
    free,  ///< fail if no memory is free
  };
  /// Returns where `elements` are on `device`; creates its replica if there is none.
  /// `reserved`: a charge of the pool's account for it; null: none.
  Result<Placed> on_device(device::DeviceBase& device, const IntervalSet& elements, Room room = Room::make,
                           device::MemoryCharge* reserved = nullptr);
  /// Returns whether `elements` are valid on `device`. Allocates nothing.
  bool is_valid_on(device::DeviceBase& device, Interval elements) noexcept;
  /// Returns the replica on `device`, which is not reclaimed while the caller holds it; null if
  /// there is none.
  std::shared_ptr<device::BufferBase> replica_on(device::DeviceBase& device) noexcept;
  /// While a job writes the contents of one copy, the contents of the others are the last valid
  /// ones if it fails: none is reclaimed until as many `end_write`.
  void begin_write() noexcept;
  void end_write() noexcept;
  /// Returns a replica on another device that `device` can access and that has all of `elements`;
  /// null if there is none.
  std::shared_ptr<device::BufferBase> source_for(device::DeviceBase& device,
                                                 const IntervalSet& elements) const;
  /// Transfers elements to the replica on `device` and returns it.
  /// Errors: those of `on_host` and `on_device`.
  Result<std::shared_ptr<device::BufferBase>> transfer_to(device::DeviceBase& device,
                                                          const IntervalSet& elements, Instant until);
  Result<std::shared_ptr<device::BufferBase>> transfer_to(device::DeviceBase& device, Instant until) {
    return transfer_to(device, IntervalSet(all()), until);
  }
  /// Returns those of `elements` that the caller has to copy to the replica on `device`. One of
  /// several readers copies; the others wait for its `end_fill`. A caller that fills several arrays
  /// fills them in the order of their addresses. `ready`: the elements that the caller has a source
  /// of.
  /// Errors: timed_out; unavailable (others are missing, because a copy in flight has failed).
  Result<IntervalSet> begin_fill(const device::DeviceBase& device, const IntervalSet& elements,
                                 const IntervalSet& ready, Instant until);
  /// Ends a fill of `elements`. If the copies are in flight, the contents are valid for lanes that
  /// wait for `filled`; the caller calls `settle_fill` when they have completed or failed.
  void end_fill(const device::DeviceBase& device, const IntervalSet& elements, bool valid,
                device::TimelinePoint filled = {}) noexcept;
  /// Follows an `end_fill` with copies in flight up to `filled`, once they are `valid` or have
  /// failed.
  void settle_fill(const device::DeviceBase& device, const IntervalSet& elements, bool valid,
                   const device::TimelinePoint& filled) noexcept;
  /// Has later users of `elements` on `device` wait until `end`: work in flight of a user that has
  /// failed may write them until then.
  void note_in_flight(const device::DeviceBase& device, IntervalSet elements,
                      device::TimelinePoint end) noexcept;
  /// Marks the copy of `elements` on `device`, or the host's if it is null, as the only valid one.
  void mark_written_on(const device::DeviceBase* device, const IntervalSet& elements) noexcept;
  void mark_written_on(const device::DeviceBase* device) noexcept {
    mark_written_on(device, IntervalSet(all()));
  }
  /// Marks the copy of `elements` on `device`, or the host's if it is null, as not valid.
  void invalidate_on(const device::DeviceBase* device, const IntervalSet& elements) noexcept;
  /// Returns whether each of `elements` is valid in a copy other than that on `device`; other than
  /// the host's if it is null.
  bool valid_elsewhere(const device::DeviceBase* device, const IntervalSet& elements) const;
  /// Frees the replica on `device` if nothing uses its buffer, no job writes the array, and all
  /// that is valid there is valid elsewhere. Users that wait get it back when they use the array on
  /// `device`.
  Bytes reclaim(const device::DeviceBase& device, Bytes wanted) override;
  IdleMemory kind() const noexcept override { return IdleMemory::replicas; }
  std::uint64_t last_use(const device::DeviceBase& device) const noexcept override;
  /// Moves the replica on `device` on the same conditions without the last, and copies its valid
  /// elements.
  void move_buffers(device::DeviceBase& device) noexcept override;

 private:
  ArrayState() = default;
  struct User {
    Interval elements;
    bool writes = false;
    std::shared_ptr<Completion> completion;
    std::size_t pieces = 1;  // that it may change one after the other
  };
  struct Failure {
    Interval elements;
    Error error;
  };
  struct Fill {  // copies in flight, or a kernel of a job that has failed
    IntervalSet elements;
    device::TimelinePoint point;
  };
  struct Replica {
    std::shared_ptr<device::BufferBase> buffer;  // null once it is reclaimed
    IntervalSet valid;
    std::vector<Fill> fills;     // that may be in flight, also of elements that are not valid any more
    bool filling = false;        // a user is about to submit copies to it
    std::uint64_t last_use = 0;  // of the device
  };
  Result<void> fetch(const std::shared_ptr<device::BufferBase>& from, const IntervalSet& elements,
                     const std::vector<device::TimelinePoint>& fills, Instant until);
  // The functions below require the mutex.
  bool is_idle(Replica& replica, std::vector<Fill>& ended) const;
  static std::vector<device::TimelinePoint> fills_of(const Replica& replica, const IntervalSet& elements);
  const Error* failure_of(const IntervalSet& elements) const noexcept;
  void clear_failures(const IntervalSet& elements) noexcept;
  /// Moves the fills that have completed to `ended`, which the caller destroys without the mutex: a
  /// driver frees them.
  static void drop_reached(Replica& replica, std::vector<Fill>& ended);
  /// Returns those of `elements` that are valid in no copy but that on `device`, or the host's if
  /// it is unset.
  IntervalSet only_on(std::optional<device::DeviceRef> device, const IntervalSet& elements) const;
  /// Reserves memory for all changes that users with the array may still make: nothing throws then.
  void reserve(std::span<const User> users);

  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };

  std::shared_ptr<pool::Pool> pool_;
  std::uint64_t count_ = 0;
  ElementType element_ = ElementType::opaque;
  std::uint32_t size_ = 1;
  std::unique_ptr<std::byte[], Free> owned_;
  std::byte* host_ = nullptr;
  device::MemoryCharge host_charge_;     // changed once, under the mutex
  std::atomic<bool> is_charged_{false};  // or needs no charge
  bool read_only_ = false;
  std::function<void()> release_;

  mutable std::mutex mutex_;
  base::Gate copied_;  // a copy to the host or to a device has ended
  bool fetching_ = false;
  std::uint32_t writing_ = 0;  // jobs
  IntervalSet host_valid_;
  std::map<device::DeviceRef, Replica> replicas_;
  wye::detail::InlineList<Failure, 1> failures_;
  std::optional<Error> abandoned_;
  std::vector<User> users_;  // those that others must follow
};

/// The host as a user of an array, from `read` or `write` until the view is destroyed. The array
/// holds the completion and not this object: otherwise neither would be destroyed.
class HostAccess {
 public:
  HostAccess(const std::shared_ptr<ArrayState>& array, Access access, Interval elements)
      : state_(std::make_unique<State>()) {
    array->follow(access, elements, state_->completion, state_->before);
  }
  /// Completes when the predecessors are complete, because the followers of an access that timed
  /// out still follow them.
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

}  // namespace wye::data
