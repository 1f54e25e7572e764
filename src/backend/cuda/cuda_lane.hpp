#pragma once
/// One ordered lane: a non-blocking stream, a timeline, and the submissions in flight.
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cuda/cuda_device.hpp"
#include "backend/cuda/cuda_staging.hpp"
#include "backend/cuda/cuda_stream.hpp"
#include "backend/cuda/cuda_timeline.hpp"
#include "device/batches.hpp"
#include "device/lane_base.hpp"
#include "device/timeline.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

/// All of a lane that the driver may be at work with. The device keeps it when a lane ends and the driver does not say that it
/// is done.
/// Threads: one thread at a time.
struct LaneWork {
  explicit LaneWork(CudaDevice& device) : stream(std::make_unique<CudaStream>(device)), staging(device) {}
  LaneWork(const LaneWork&) = delete;
  /// It has ended, or the device is lost.
  ~LaneWork();
  /// Lets go of what a batch holds.
  void retire(Batch& batch) noexcept;
  /// Whether the device has finished all of it. Never blocks.
  bool has_ended() noexcept;

  const std::unique_ptr<CudaStream> stream;
  Staging staging;
  device::Batches<Batch> batches;
  std::unique_ptr<LaneWork> next;
};

/// Threads: one thread at a time.
class CudaLane final : public device::LaneBase {
 public:
  static Result<std::unique_ptr<CudaLane>> create(std::shared_ptr<CudaDevice> device,
                                                  const device::LaneOptions& options);
  ~CudaLane() override;

  Result<std::uint64_t> submit(const device::Submission& submission) override;
  Result<void> wait(std::uint64_t value, Instant until) override;
  void abandon() noexcept override;
  const std::shared_ptr<device::Timeline>& timeline() const noexcept override { return timeline_base_; }

 private:
  explicit CudaLane(std::shared_ptr<CudaDevice> device);
  /// A batch for the next submission. The context is current.
  Result<Batch*> next_batch();
  /// Takes pinned memory for a step, and fills it for an upload.
  Result<void> stage(Batch& batch, Step& step);
  /// Gives the plan to the stream, in parts where it uploads much.
  Result<void> launch(Batch* batch, std::span<const device::TimelinePoint> signals);
  /// Ends a batch that has been given as far as it goes.
  Result<void> finish(Batch& batch);
  /// Ends a part of a submission, and gives the batch to go on with when there is pinned memory for it.
  Result<Batch*> next_part(Batch& batch);
  /// Takes back a batch that could not be given. If the stream has begun it, that fails the lane.
  Error fall_back(Batch& batch, Error error);
  /// Keeps a batch pending until the values that it waits for are submitted.
  Result<void> keep_pending(Batch& batch);
  void discard(Batch& batch) noexcept;
  void collect(std::uint64_t reached) noexcept;
  CudaDevice& cuda() const noexcept { return static_cast<CudaDevice&>(*device()); }

  std::unique_ptr<LaneWork> work_;
  CudaStream* const stream_ = work_->stream.get();
  Staging& staging_ = work_->staging;
  device::Batches<Batch>& batches_ = work_->batches;
  std::shared_ptr<device::Timeline> timeline_base_;
  std::uint64_t last_ = 0;  // value of the last batch that was given or is pending
  Plan plan_;               // of the submission that is made
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
