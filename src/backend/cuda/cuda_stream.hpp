#pragma once
/// A stream of the driver, and what is given to it.
#include <wye/base/extent.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/cuda/cuda_device.hpp"
#include "backend/cuda/cuda_staging.hpp"
#include "device/artefact.hpp"
#include "device/pending_submissions.hpp"
#include "device/recording.hpp"
#include "device/timeline.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

class CudaExecutable;
class CudaGraph;
class CudaTimeline;

/// One call of the driver that gives a stream work.
struct Step {
  enum class Kind : std::uint8_t { copy, fill, launch, native, graph };
  Kind kind = Kind::copy;
  bool barrier = false;  ///< what came before must have finished; a stream is in order anyway
  std::uint32_t pattern = 0;
  std::uint64_t to = 0;
  std::uint64_t from = 0;
  CUcontext peer = nullptr;           ///< of another device that a copy is from
  std::uint64_t bytes = 0;            ///< of a copy or a fill
  const std::byte* source = nullptr;  ///< of an upload: what is to be staged
  std::byte* target = nullptr;        ///< of a download: where what was staged is to go
  const CudaExecutable* executable = nullptr;
  CUgraphExec graph = nullptr;
  Extent3 grid = {};                ///< workgroups; of a native function: items
  std::size_t parameters = 0;       ///< where they begin in the batch's parameters, or its arguments
  std::size_t parameter_count = 0;  ///< bytes, or arguments
};

/// The block of parameters of a launch, as the driver takes it: in one piece, but for a cooperative launch, of which cuda.h says
/// at cuGraphAddKernelNode that it must have none, and one by one. Good as long as this is.
class LaunchBlock {
 public:
  LaunchBlock(const device::Artefact& artefact, std::byte* parameters)
      : parameters_(parameters), size_(artefact.launch.cooperative ? 0 : artefact.parameter_bytes) {
    if (!artefact.launch.cooperative) return;
    each_.reserve(artefact.passing.size());
    for (const device::Passing& passing : artefact.passing) each_.push_back(parameters + passing.offset);
  }
  LaunchBlock(const LaunchBlock&) = delete;
  void** extra() noexcept { return size_ == 0 ? nullptr : extra_; }
  void** each() noexcept { return each_.empty() ? nullptr : each_.data(); }

 private:
  std::byte* parameters_;
  std::size_t size_;
  std::vector<void*> each_;
  void* extra_[5] = {CU_LAUNCH_PARAM_BUFFER_POINTER, parameters_, CU_LAUNCH_PARAM_BUFFER_SIZE, &size_,
                     CU_LAUNCH_PARAM_END};
};

/// The steps of a recording, with what they pass.
struct Plan {
  std::vector<Step> steps;
  std::vector<std::byte> parameters;
  std::vector<wye::detail::NativeArgument> arguments;
  void clear() noexcept {
    steps.clear();
    parameters.clear();
    arguments.clear();
  }
};

/// A submission, or a part of one, on its way, with all it needs until the device is done with it. Lanes use batches again.
/// Threads: one thread at a time: that of its lane, or, while it is pending, the thread that gives it.
struct Batch : device::PendingSubmission {
  /// A copy to the host that is outstanding.
  struct Download {
    const std::byte* from = nullptr;
    std::byte* target = nullptr;
    std::uint64_t bytes = 0;
  };
  EventHandle event;  ///< recorded behind it; kept for the next time
  std::shared_ptr<const device::Recording> recording;
  std::vector<device::TimelinePoint> signals;  ///< of other drivers
  Plan plan;                                   ///< of a batch that was pending
  std::shared_ptr<const CudaGraph> graph;
  std::vector<Download> downloads;
  StagingUse staging;
  bool begun = false;  ///< the stream was given some of it
};

/// The state of a lane that others may have to do with: who brings what it waits for gives it its work.
struct CudaStream final : device::SubmittingLane {
  explicit CudaStream(CudaDevice& d) : device(d) {}

  /// Gives a batch that was pending: its waits, its steps, its end.
  Result<void> submit_to_driver(device::PendingSubmission& submission) override;
  device::ScheduledTimeline& lane_timeline() const noexcept override;
  // These are called with the context current.
  Result<void> give_waits(const Batch& batch);
  Result<void> give_step(Batch& batch, Plan& plan, const Step& step);
  /// What is signalled, and the event that its value is reached with.
  Result<void> give_end(Batch& batch);

  CudaDevice& device;
  CUstream handle = nullptr;
  NativeKeep keep;  ///< what native functions keep
  std::shared_ptr<CudaTimeline> timeline;
  std::uint64_t memory_seen = 0;  ///< of the device's memory, taken before what the stream was given last
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
