#pragma once
/// A stream of the driver, and its work.
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

namespace wye::inline v0::cuda {

class CudaExecutable;
class CudaGraph;
class CudaTimeline;

/// One call of the driver that enqueues work on a stream.
struct Step {
  enum class Kind : std::uint8_t { copy, fill, launch, native, graph, stamp };
  Kind kind = Kind::copy;
  bool barrier = false;  ///< waits for the steps before; implied in a stream
  std::uint32_t pattern = 0;
  std::uint64_t to = 0;
  std::uint64_t from = 0;
  CUcontext peer = nullptr;           ///< the source's, for a copy from another device
  std::uint64_t bytes = 0;            ///< of a copy or a fill
  const std::byte* source = nullptr;  ///< of an upload
  std::byte* target = nullptr;        ///< of a download
  const CudaExecutable* executable = nullptr;
  CUgraphExec graph = nullptr;
  CUevent event = nullptr;          ///< of a stamp
  Extent3 grid = {};                ///< workgroups; of a native function: items
  std::size_t parameters = 0;       ///< first, in the plan's parameters or arguments
  std::size_t parameter_count = 0;  ///< bytes, or arguments
};

/// The parameters of a launch in the driver's form: one block. A cooperative launch has single
/// parameters, as cuda.h demands at cuGraphAddKernelNode. The pointers are valid as long as this
/// object.
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

/// The steps of a recording, with their parameters.
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

/// A submission, or a part of one, with all objects that it needs until it completes. Lanes reuse
/// batches.
/// Threads: one thread at a time: the thread of its lane, or the thread that submits it while it is
///          pending.
struct Batch : device::PendingSubmission {
  /// An outstanding copy to the application's memory.
  struct Download {
    const std::byte* from = nullptr;
    std::byte* target = nullptr;
    std::uint64_t bytes = 0;
  };
  EventHandle event;  ///< recorded after it; kept for its next use
  std::shared_ptr<const device::Recording> recording;
  std::vector<device::TimelinePoint> signals;  ///< timelines of other drivers
  Plan plan;                                   ///< of a pending batch
  std::shared_ptr<const CudaGraph> graph;
  std::vector<Download> downloads;
  StagingUse staging;
  bool begun = false;       ///< the stream has some of its steps
  bool is_foreign = false;  ///< waits for a signal of the application or of another driver
};

/// The state of a lane that other threads use. A thread that submits an awaited value also submits
/// the lane's pending work.
struct CudaStream final : device::SubmittingLane {
  explicit CudaStream(CudaDevice& d) : device(d) {}

  /// Enqueues a pending batch: its waits, its steps, its end.
  Result<void> submit_to_driver(device::PendingSubmission& submission) override;
  device::ScheduledTimeline& lane_timeline() const noexcept override;
  // The following functions require the context to be current.
  Result<void> enqueue_waits(const Batch& batch);
  Result<void> enqueue_step(Batch& batch, Plan& plan, const Step& step);
  /// Enqueues the signals, and records the event of the batch's value.
  Result<void> enqueue_end(Batch& batch);

  CudaDevice& device;
  CUstream handle = nullptr;
  NativeKeep keep;  ///< objects that native functions keep
  std::shared_ptr<CudaTimeline> timeline;
  std::uint64_t allocations_seen = 0;  ///< allocations that the stream has waited for
};

}  // namespace wye::cuda
