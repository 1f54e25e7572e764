#include "backend/cuda/cuda_stream.hpp"

#include <exception>
#include <new>
#include <utility>

#include "backend/cuda/cuda_error.hpp"
#include "backend/cuda/cuda_executable.hpp"
#include "backend/cuda/cuda_timeline.hpp"
#include "base/text.hpp"

namespace wye::inline v0::cuda {
namespace {

/// Calls a native function of the application, which may throw.
Result<void> call_native(const CudaExecutable& executable, const NativeLane& lane, Extent3 items,
                         std::span<const wye::detail::NativeArgument> arguments) {
  std::string what;
  try {
    auto done = executable.artefact().native->enqueue(lane, items, arguments);
    if (done) return {};
    return done.error().with_context(
        base::text("in the native function of kernel '{}'", executable.artefact().kernel));
  } catch (const Exception& exception) {
    what = exception.error().sentence();
  } catch (const std::exception& exception) {
    what = exception.what();
  } catch (...) {
    what = "an exception that is not a std::exception";
  }
  return Error(Errc::kernel_failed,
               base::text("Kernel '{}' failed on '{}': {}", executable.artefact().kernel, lane.device, what));
}

}  // namespace

device::ScheduledTimeline& CudaStream::lane_timeline() const noexcept { return *timeline; }

Result<void> CudaStream::submit_to_driver(device::PendingSubmission& submission) {
  auto& batch = static_cast<Batch&>(submission);
  const CurrentContext current(device);
  if (!current) return current.error();
  if (auto waits = enqueue_waits(batch); !waits) return waits;
  for (const Step& step : batch.plan.steps)
    if (auto given = enqueue_step(batch, batch.plan, step); !given) return given;
  return enqueue_end(batch);
}

Result<void> CudaStream::enqueue_waits(const Batch& batch) {
  if (auto ready = device.order_behind_memory(*this); !ready) return ready;
  for (const device::TimelinePoint& point : batch.waits) {
    auto& other = static_cast<CudaTimeline&>(*point.timeline);
    if (other.semaphore()) {  // also if it is reached: the wait makes the other driver's writes visible
      CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS parameters{};
      parameters.params.fence.value = point.value;
      const CUexternalSemaphore semaphore = other.semaphore();
      if (const CUresult r = device.cu.WaitExternalSemaphoresAsync(&semaphore, &parameters, 1, handle);
          r != CUDA_SUCCESS)
        return device.failed(
            r, "cuWaitExternalSemaphoresAsync",
            base::text("A lane of device '{}' cannot wait for another driver.", device.info().id));
      continue;
    }
    if (&other == timeline.get() || other.seen() >= point.value) continue;
    const Mark mark = other.mark_of(point.value);
    if (!mark) continue;  // reached by now
    if (const CUresult r = device.cu.StreamWaitEvent(handle, mark.event->handle, CU_EVENT_WAIT_DEFAULT);
        r != CUDA_SUCCESS)
      return device.failed(
          r, "cuStreamWaitEvent",
          base::text("A lane of device '{}' cannot wait for another lane.", device.info().id));
  }
  return {};
}

Result<void> CudaStream::enqueue_step(Batch& batch, Plan& plan, const Step& step) {
  CUresult r = CUDA_SUCCESS;
  const char* api = "";
  switch (step.kind) {
    case Step::Kind::copy:
      if (step.peer) {
        api = "cuMemcpyPeerAsync";
        r = device.cu.MemcpyPeerAsync(step.to, device.context(), step.from, step.peer, step.bytes, handle);
        break;
      }
      api = "cuMemcpyAsync";
      r = device.cu.MemcpyAsync(step.to, step.from, step.bytes, handle);
      break;
    case Step::Kind::fill:
      api = "cuMemsetD32Async";
      r = device.cu.MemsetD32Async(step.to, step.pattern, step.bytes / 4, handle);
      break;
    case Step::Kind::graph:
      api = "cuGraphLaunch";
      r = device.cu.GraphLaunch(step.graph, handle);
      break;
    case Step::Kind::stamp:
      r = device.cu.EventRecord(step.event, handle);
      if (r == CUDA_SUCCESS) return {};  // an event alone does not begin the batch
      api = "cuEventRecord";
      break;
    case Step::Kind::native: {
      batch.begun = true;  // it may enqueue commands and then fail
      const NativeLane lane{.backend = "cuda", .device = device.info().id, .handle = handle, .keep = &keep};
      return call_native(*step.executable, lane, step.grid,
                         std::span(plan.arguments).subspan(step.parameters, step.parameter_count));
    }
    case Step::Kind::launch: {
      const device::Artefact& artefact = step.executable->artefact();
      const std::span<const CUlaunchAttribute> attributes = step.executable->attributes();
      LaunchBlock block(artefact, plan.parameters.data() + step.parameters);
      auto launch = launch_of<CUlaunchConfig>(artefact, step.grid);
      // Both functions take a kernel without a context, which is cast (cuda.h at cuLaunchKernel).
      const auto kernel = reinterpret_cast<CUfunction>(step.executable->kernel());
      if (attributes.empty()) {
        api = "cuLaunchKernel";
        r = device.cu.LaunchKernel(kernel, launch.gridDimX, launch.gridDimY, launch.gridDimZ,
                                   launch.blockDimX, launch.blockDimY, launch.blockDimZ,
                                   launch.sharedMemBytes, handle, nullptr, block.extra());
      } else {
        api = "cuLaunchKernelEx";
        launch.hStream = handle;
        launch.attrs = const_cast<CUlaunchAttribute*>(attributes.data());  // only read
        launch.numAttrs = static_cast<unsigned>(attributes.size());
        r = device.cu.LaunchKernelEx(&launch, kernel, block.each(), block.extra());
      }
      if (r != CUDA_SUCCESS)
        return device.failed(
            r, api, base::text("Device '{}' cannot launch kernel '{}'.", device.info().id, artefact.kernel));
      break;
    }
  }
  if (r != CUDA_SUCCESS)
    return device.failed(r, api, base::text("Device '{}' refuses a command.", device.info().id));
  batch.begun = true;
  return {};
}

Result<void> CudaStream::enqueue_end(Batch& batch) {
  const auto refused = [&](CUresult r, const char* api) {
    return device.failed(r, api,
                         base::text("Device '{}' refuses the end of a submission.", device.info().id));
  };
  for (const device::TimelinePoint& point : batch.signals) {
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS parameters{};
    parameters.params.fence.value = point.value;
    const CUexternalSemaphore semaphore = static_cast<CudaTimeline&>(*point.timeline).semaphore();
    if (const CUresult r = device.cu.SignalExternalSemaphoresAsync(&semaphore, &parameters, 1, handle);
        r != CUDA_SUCCESS)
      return refused(r, "cuSignalExternalSemaphoresAsync");
    batch.begun = true;
  }
  if (const CUresult r = device.cu.EventRecord(batch.event->handle, handle); r != CUDA_SUCCESS)
    return refused(r, "cuEventRecord");
  timeline->mark(batch.value, batch.event);
  return {};
}

}  // namespace wye::cuda
