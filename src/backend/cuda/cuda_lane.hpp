#pragma once
/// An ordered lane: a non-blocking stream, a timeline, and the submissions in flight.
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cuda/cuda_device.hpp"
#include "backend/cuda/cuda_staging.hpp"
#include "backend/cuda/cuda_stream.hpp"
#include "backend/cuda/cuda_timeline.hpp"
#include "device/flights.hpp"
#include "device/lane_base.hpp"
#include "device/timeline.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

/// The objects of a lane that the driver may use. The device keeps them if the lane ends and the driver does
/// not confirm that its work has completed.
/// Threads: one thread at a time.
struct LaneWork {
  explicit LaneWork(CudaDevice& device) : stream(std::make_unique<CudaStream>(device)), staging(device) {}
  LaneWork(const LaneWork&) = delete;
  /// Requires `has_ended()`.
  ~LaneWork();
  /// Releases the objects that a flight holds.
  void retire(Flight& flight) noexcept;
  /// Returns whether all of the work has completed, or the device is lost. Does not block.
  bool has_ended() noexcept;

  const std::unique_ptr<CudaStream> stream;
  Staging staging;
  device::Flights<Flight> flights;
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
  /// Returns a flight for the next submission. The context is current.
  Result<Flight*> next_flight();
  /// Takes pinned memory for a step that transfers, and fills it for an upload.
  Result<void> stage(Flight& flight, Step& step);
  /// Enqueues the plan on the stream, in parts if its uploads are large.
  Result<void> launch(Flight* flight, std::span<const device::TimelinePoint> signals);
  /// Enqueues the end of a flight, and puts it in flight.
  Result<void> finish(Flight& flight);
  /// Ends one part of a submission, and returns the flight of the next part. Waits for pinned memory.
  Result<Flight*> next_part(Flight& flight);
  /// Discards a flight after an error. Fails the lane if the stream has begun the flight.
  Error fail_flight(Flight& flight, Error error);
  /// Makes a flight pending until the values that it waits for are submitted.
  Result<void> keep_pending(Flight& flight);
  void discard(Flight& flight) noexcept;
  void collect(std::uint64_t reached) noexcept;
  CudaDevice& cuda() const noexcept { return static_cast<CudaDevice&>(*device()); }

  std::unique_ptr<LaneWork> work_;
  CudaStream* const stream_ = work_->stream.get();
  Staging& staging_ = work_->staging;
  device::Flights<Flight>& flights_ = work_->flights;
  std::shared_ptr<device::Timeline> timeline_base_;
  std::uint64_t last_ = 0;  // value of the last flight, submitted or pending
  Plan plan_;               // of the current submission
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
