#pragma once
/// A serial queue whose submissions run on the team, or on the thread that waits for them.
#include <memory>

#include "backend/cpu/cpu_device.hpp"

namespace wye::inline v0::cpu {

class Queue;

/// A submission starts on the team when earlier submissions have completed and its waits are
/// reached. Nothing waits on a thread of the team. A `wait` runs a submission that has not started
/// on the calling thread if the submission has `caller_waits` or the wait has no deadline. Inside a
/// host function it always does, because the team may have no free thread.
class CpuLane final : public device::LaneBase {
 public:
  explicit CpuLane(std::shared_ptr<CpuDevice> device);
  ~CpuLane() override;
  Result<std::uint64_t> submit(const device::Submission& submission) override;
  Result<void> wait(std::uint64_t value, Instant until) override;
  void abandon() noexcept override;
  const std::shared_ptr<device::Timeline>& timeline() const noexcept override { return timeline_; }

 private:
  std::shared_ptr<Queue> queue_;  // shared with requests to the team and callbacks of timelines
  std::shared_ptr<device::Timeline> timeline_;
};

}  // namespace wye::cpu
