#pragma once
/// Turns the operands of a job into what one device can take, and back.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "data/array_state.hpp"
#include "device/lane.hpp"
#include "pool/pool.hpp"

namespace wye {
inline namespace v0 {
namespace scheduler {

/// The memory of one job on one device. Host memory is used in place where the device can, and else gets a
/// buffer: one per run of overlapping operands, so that steps which share memory share it on the device
/// too. Nothing of the caller's is changed before `downloads` have arrived, so a job that fails before that
/// can be run elsewhere.
/// Threads: one thread at a time.
class Binding {
 public:
  Binding(const Job& job, const Device& device);
  Binding(const Binding&) = delete;  // what it has begun it ends, once
  ~Binding();

  /// Brings the arrays that the job reads to where `bind` can take them from: no lane is held yet, because
  /// this may need one of another device.
  Result<void> fetch(Instant until);
  /// Allocates, against `account`, and records the uploads.
  /// Errors: out_of_memory, over_budget, invalid_argument (a buffer of another device), device_lost.
  Result<void> bind(device::Lane& lane, std::shared_ptr<device::MemoryAccount> account, Instant until);
  /// The arguments of one step.
  const Arguments& arguments(std::size_t call) const { return bound_[call]; }
  /// Records the downloads of what the job writes.
  void downloads(device::Lane& lane);
  /// After success: the arrays that the job wrote are where it wrote them.
  void publish();
  /// After a failure: arrays whose only copy the job was changing (`began`) are lost.
  void spoil(const Error& error, bool began);

  Bytes moved() const { return moved_; }
  /// What `downloads` will move.
  Bytes returning() const;

 private:
  struct Region {  // host memory that has one buffer
    std::byte* first = nullptr;
    std::byte* last = nullptr;
    bool upload = false;
    bool download = false;
    std::shared_ptr<device::BufferBase> buffer;
  };
  struct Use {  // of an array
    data::ArrayState* array = nullptr;
    Access access = Access::none;                          ///< of all its operands together
    bool needed = false;                                   ///< what is in it matters
    std::shared_ptr<device::BufferBase> source = nullptr;  ///< on another device, where it is copied from
    bool filling = false;                                  ///< this job copies it to the device
  };
  void find_regions();
  void find_arrays();
  Result<void> fill(device::Lane& lane, Instant until);
  void end_fills(bool valid) noexcept;
  Result<void> bind_operand(Operand& operand);
  Result<std::shared_ptr<device::BufferBase>> allocate(Bytes bytes);

  const Job& job_;
  const Device& device_;
  std::shared_ptr<device::MemoryAccount> account_;
  bool in_place_;
  std::vector<Arguments> bound_;
  std::vector<Region> regions_;
  std::vector<Use> arrays_;
  std::vector<std::pair<std::uint64_t, std::shared_ptr<device::BufferBase>>> scratch_;
  Bytes moved_;
};

/// Checks what callers may have filled in themselves: no number of an operand wraps, and none reaches past its memory.
/// Errors: invalid_argument.
Result<void> check_operands(const Job& job);

/// Bytes of all operands of a job, each counted once; scratch is not.
Bytes size_of(const Job& job);

}  // namespace scheduler
}  // namespace v0
}  // namespace wye
