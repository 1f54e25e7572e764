#pragma once
/// One ordered lane: a non-blocking stream, a timeline, and the submissions in flight.
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

/// All of a lane that the driver may be at work with. The device keeps it when a lane ends and the driver does not say that it
/// is done.
/// Threads: one thread at a time.
struct LaneWork {
  explicit LaneWork(CudaDevice& device) : stream(std::make_unique<CudaStream>(device)), staging(device) {}
  LaneWork(const LaneWork&) = delete;
  /// It has ended, or the device is lost.
  ~LaneWork();
  /// Lets go of what a flight holds.
  void retire(Flight& flight) noexcept;
  /// Whether the device has finished all of it. Never blocks.
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
  /// A flight for the next submission. The context is current.
  Result<Flight*> next_flight();
  /// Takes pinned memory for a step, and fills it for an upload.
  Result<void> stage(Flight& flight, Step& step);
  /// Gives the plan to the stream, in parts where it uploads much.
  Result<void> launch(Flight* flight, std::span<const device::TimelinePoint> signals);
  /// Ends a flight that has been given as far as it goes.
  Result<void> finish(Flight& flight);
  /// Ends a part of a submission, and gives the flight to go on with when there is pinned memory for it.
  Result<Flight*> next_part(Flight& flight);
  /// Takes back a flight that could not be given. If the stream has begun it, that fails the lane.
  Error fall_back(Flight& flight, Error error);
  /// Keeps a flight pending until the values that it waits for are submitted.
  Result<void> keep_pending(Flight& flight);
  void discard(Flight& flight) noexcept;
  void collect(std::uint64_t reached) noexcept;
  CudaDevice& cuda() const noexcept { return static_cast<CudaDevice&>(*device()); }

  std::unique_ptr<LaneWork> work_;
  CudaStream* const stream_ = work_->stream.get();
  Staging& staging_ = work_->staging;
  device::Flights<Flight>& flights_ = work_->flights;
  std::shared_ptr<device::Timeline> timeline_base_;
  std::uint64_t last_ = 0;  // value of the last flight that was given or is pending
  Plan plan_;               // of the submission that is made
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
