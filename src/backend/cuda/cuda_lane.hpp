#pragma once
/// An ordered lane: a non-blocking stream, a timeline, and the submissions in flight.
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

namespace wye::inline v0::cuda {

/// The objects of a lane that the driver may use. The device keeps them if the lane ends and the
/// driver does not confirm that its work has completed.
/// Threads: one thread at a time.
struct LaneWork {
  explicit LaneWork(CudaDevice& device) : stream(std::make_unique<CudaStream>(device)) {}
  LaneWork(const LaneWork&) = delete;
  /// Requires `has_ended()`.
  ~LaneWork();
  /// Releases the objects that a batch holds.
  void retire(Batch& batch) noexcept;
  /// Returns whether all of the work has completed, or the device is lost. Does not block.
  bool has_ended() noexcept;

  const std::unique_ptr<CudaStream> stream;
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
  /// Returns a batch for the next submission. The context is current.
  Result<Batch*> next_batch();
  /// Takes pinned memory for a step that transfers, and fills it for an upload.
  Result<void> stage(Batch& batch, Step& step);
  /// Enqueues the plan on the stream, in parts if its transfers are large.
  Result<void> launch(Batch* batch, std::span<const device::TimelinePoint> signals);
  /// Enqueues the end of a batch, and puts it in flight.
  Result<void> finish(Batch& batch);
  /// Ends one part of a submission, and returns the batch of the next part. Waits for pinned
  /// memory.
  Result<Batch*> next_part(Batch& batch);
  /// Waits for earlier transfers of this lane while the pinned memory of the device is used up to
  /// its limit.
  Result<void> wait_for_staging();
  /// Counts a batch that waits for a signal of the application or of another driver.
  void note_foreign(Batch& batch) noexcept;
  /// Copies the downloads up to `value`, which is reached, to their targets, and retires the
  /// batches.
  void deliver(std::uint64_t value) noexcept;
  /// Discards a batch after an error. Fails the lane if the stream has begun the batch.
  Error fail_batch(Batch& batch, Error error);
  /// Makes a batch pending until the values that it waits for are submitted.
  Result<void> keep_pending(Batch& batch);
  void discard(Batch& batch) noexcept;
  void collect(std::uint64_t reached) noexcept;
  CudaDevice& cuda() const noexcept { return static_cast<CudaDevice&>(*device()); }

  std::unique_ptr<LaneWork> work_;
  CudaStream* const stream_ = work_->stream.get();
  Staging& staging_ = cuda().staging();
  device::Batches<Batch>& batches_ = work_->batches;
  std::shared_ptr<device::Timeline> timeline_base_;
  std::uint64_t last_ = 0;  // value of the last batch, submitted or pending
  Plan plan_;               // of the current submission
};

}  // namespace wye::cuda
