#pragma once
/// A serial queue whose submissions run on the team, or on the thread that waits for them.
#include <memory>

#include "backend/cpu/cpu_device.hpp"

namespace wye {
inline namespace v0 {
namespace cpu {

class Queue;

/// A submission starts on the team when those before it and the values it waits for are done; nothing waits on a team
/// thread. A `wait` takes a submission that has not started and runs it on the calling thread: one that was given with
/// `caller_waits`, and any where the wait has no deadline that it could miss, or is inside a host function, where the
/// team may have no thread left.
class CpuLane final : public device::LaneBase {
 public:
  explicit CpuLane(std::shared_ptr<CpuDevice> device);
  ~CpuLane() override;
  Result<std::uint64_t> submit(const device::Submission& submission) override;
  Result<void> wait(std::uint64_t value, Instant until) override;
  void abandon() noexcept override;
  const std::shared_ptr<device::Timeline>& timeline() const noexcept override { return timeline_; }

 private:
  std::shared_ptr<Queue> queue_;  // shared with what the team and timelines have been asked to call later
  std::shared_ptr<device::Timeline> timeline_;
};

}  // namespace cpu
}  // namespace v0
}  // namespace wye
