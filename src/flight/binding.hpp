#pragma once
/// Transfers the operands of a flight to its device, and its results back.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>
#include <wye/device/detail/inline_list.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "data/array_state.hpp"
#include "device/lane.hpp"
#include "flight/operands.hpp"
#include "pool/pool.hpp"

namespace wye::inline v0::flight {

/// The memory of one job on one device. A device with Feature::host_memory uses host memory in
/// place. Otherwise each run of overlapping operands gets one buffer, because steps that share
/// memory must share it on the device too. The caller's memory does not change before the
/// downloads: a job that fails before them can run on another device.
/// Threads: one thread at a time.
class Binding {
 public:
  struct Operands;
  /// `operands`: those of commands that are recorded already; null: those of `calls`. The buffers
  /// of their host memory exist already.
  Binding(Calls calls, const Device& device, const Operands* operands = nullptr);
  Binding(const Binding&) = delete;
  ~Binding();

  /// Returns whether `prefetch` may have something to copy: an array that a call reads is not valid
  /// on the device.
  static bool may_prefetch(const Calls& calls, const Device& device) noexcept;
  /// Submits copies to the device, on the pool's lane for copies, of the arrays that the job reads.
  /// Waits for nothing: skips arrays whose contents would have to be transferred to the host first,
  /// and those that memory is not free for. Returns the bytes copied. The copies belong to no job:
  /// they are replicas as any other, and may be reclaimed.
  Bytes prefetch(pool::Pool& pool);
  /// Returns the memory that `fetch` and `bind` have yet to allocate. From now on no replica of the
  /// job's arrays is reclaimed.
  pool::WorkingSet working_set();
  /// Returns the memory that is reserved for the job, which `fetch` and `bind` take their
  /// allocations from.
  pool::Reservation& reservation() noexcept { return reserved_; }
  /// Makes the arrays that the job reads available for the copies of `bind`. Holds no lane yet,
  /// because this may lease a lane of another device.
  /// `job`: its name, for errors.
  Result<void> fetch(Instant until, std::string_view job);
  /// Allocates buffers, charged to `account` and `tag`, records the uploads, and submits copies of
  /// arrays. `tag` may be null.
  /// Errors: out_of_memory, over_budget, invalid_argument (a buffer of another device),
  ///         device_lost.
  Result<void> bind(device::Lane& lane, std::shared_ptr<silicon::MemoryAccount> account,
                    std::shared_ptr<silicon::MemoryAccount> tag, Instant until);
  /// Returns whether the call of another job on the same device can be part of one launch with the
  /// call of this job.
  bool can_share_launch(const Binding& other) const noexcept;
  /// Has `bind` make memory for the batchable operands of several jobs, of which this one is the
  /// first.
  void begin_launch(std::uint32_t jobs);
  /// Uses the memory of the first job of a launch, which is bound. This is job `number` of it, from
  /// 1.
  void join_launch(const Binding& first, std::uint32_t number);
  /// Returns the grid of one step.
  Extent3 items(std::size_t call) const noexcept {
    Extent3 items = calls_[call].items();
    items.z *= launch_;
    return items;
  }
  /// Returns the arguments of one step.
  const Arguments& arguments(std::size_t call) const {
    return bound_.empty() ? calls_[call].arguments() : bound_[call];
  }
  /// Records the downloads of the host memory that the job writes.
  void downloads(device::Lane& lane);
  /// Called after success: marks the copies that the job wrote as the only valid copies.
  void publish();
  /// Called after a failure: if the job `began`, marks the copies that it wrote as not valid. Its
  /// work may be in flight until `end`: later users of these elements on the device wait for that.
  void invalidate(const Error& error, bool began, const device::TimelinePoint& end);

  const Device& device() const noexcept { return device_; }
  /// Returns whether the device uses memory of the host in place.
  bool is_in_place() const noexcept { return is_in_place_; }
  bool uses_arrays() const noexcept { return !arrays_.empty(); }
  /// Returns whether the launch of another job runs its call.
  bool has_joined() const noexcept { return launch_ == 0; }
  Bytes transferred() const { return transferred_; }
  /// Returns the bytes that `downloads` transfers.
  Bytes returning() const;
  /// Returns its operands.
  Operands operands() &&;

  /// Records commands that write zeros to a range, which need not begin or end at a word.
  static void clear(device::Lane& lane, const std::shared_ptr<device::BufferBase>& buffer,
                    std::uint64_t offset, std::uint64_t bytes);

  struct Use {  // of one array by the job
    data::ArrayState* array = nullptr;
    bool reads = false;                                     ///< contents from before the job
    data::IntervalSet needed = {};                          ///< the elements whose contents the job uses
    data::IntervalSet written = {};                         ///< the elements that it writes
    data::IntervalSet missing = {};                         ///< needed, not on the device when `fetch` looked
    bool is_writing = false;                                ///< see `ArrayState::begin_write`
    std::shared_ptr<device::BufferBase> replica = nullptr;  ///< on the device: it is not reclaimed meanwhile
    std::shared_ptr<device::BufferBase> source = nullptr;   ///< of the copies, on another device
    data::IntervalSet filling = {};     ///< the elements that this job copies to the device
    device::TimelinePoint filled = {};  ///< reached by these copies, once they are in flight
  };

 private:
  void find_regions();
  void find_arrays();
  std::uint64_t scratch_bytes(std::uint64_t id) const;
  Result<void> fill(device::Lane& lane, Instant until);
  Bytes copy(device::Lane& lane, const Use& use, const std::shared_ptr<device::BufferBase>& replica) const;
  void end_fills() noexcept;
  Result<void> upload(device::Lane& lane, device::BufferRequest& charges);
  bool binds() const noexcept;
  Result<void> bind_calls(device::Lane& lane, device::BufferRequest& charges);
  Result<void> bind_scratch(Operand& operand, device::Lane& lane, device::BufferRequest& charges);

  const Calls calls_;
  const Device device_;
  pool::Reservation reserved_;
  const bool is_in_place_;
  /// Jobs in the launch that this one begins; 0: it has joined the launch of another one.
  std::uint32_t launch_ = 1;
  detail::InlineList<Arguments, 1> bound_;  // empty if the arguments of the calls are used as they are
  detail::InlineList<Region, 4> regions_;   // in ascending order
  detail::InlineList<Use, 2> arrays_;
  std::vector<std::pair<std::uint64_t, std::shared_ptr<device::BufferBase>>> scratch_;
  Bytes transferred_;
};

struct Binding::Operands {
  detail::InlineList<Use, 2> arrays = {};
  detail::InlineList<Region, 4> regions = {};
};

}  // namespace wye::flight
