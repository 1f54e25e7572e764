// Captures of streams. A capturing stream runs and records nothing; what counts is the calls that a
// capture prohibits.
#include "support/cuda/capture.hpp"

#include <algorithm>

#include "support/cuda/stream.hpp"

namespace standin {
namespace {

struct Capture {
  CUstream stream;
  std::thread::id thread;
  CUstreamCaptureMode mode;
  bool valid = true;
};
std::mutex mutex;
auto& captures = *new std::vector<Capture>;  // never destroyed, as the world
std::atomic<std::size_t> count{0};
thread_local CUstreamCaptureMode mode_of_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;

/// The documentation has no list of the calls that are "potentially unsafe". It names those that
/// allocate, synchronize or query; those that create and destroy may do so too.
bool may_be_unsafe(std::string_view name) {
  if (name.ends_with("Async")) return false;
  for (const std::string_view word :
       {"Alloc", "Free", "Load", "Synchronize", "Query", "Create", "Destroy", "Retain", "Release", "MemMap",
        "Unmap", "Trim", "GetFunction", "SetAttribute", "Instantiate", "MemGetInfo", "Import"})
    if (name.find(word) != std::string_view::npos) return true;
  return false;
}

/// Returns whether `capture` prohibits such calls to this thread (cuda.h at
/// cuThreadExchangeStreamCaptureMode).
bool prohibits(const Capture& capture) {
  if (mode_of_thread == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (capture.thread == std::this_thread::get_id()) return capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
  return mode_of_thread == CU_STREAM_CAPTURE_MODE_GLOBAL && capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

/// Returns the capture of a stream, or the end. Requires the mutex.
auto find_capture(CUstream stream) {
  return std::find_if(captures.begin(), captures.end(),
                      [&](const Capture& one) { return one.stream == stream; });
}

}  // namespace

bool invalidates(CUstream stream) {
  if (count.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(mutex);
  const auto found = find_capture(stream);
  if (found == captures.end()) return false;
  found->valid = false;
  return true;
}

void end_captures() {
  const std::lock_guard lock(mutex);
  captures.clear();
  count = 0;
  mode_of_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;
}

int prohibited(std::string_view name) {
  if (count.load(std::memory_order_relaxed) == 0 || !may_be_unsafe(name)) return 0;
  const Unseen unseen;
  const std::lock_guard lock(mutex);
  int code = 0;
  for (Capture& capture : captures)
    if (prohibits(capture)) {
      capture.valid = false;
      code = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  return code;
}

namespace {

CUresult ThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (*mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, mode_of_thread);
  return CUDA_SUCCESS;
}
CUresult StreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Stream, on, stream);
  (void)on;
  const std::lock_guard lock(mutex);
  captures.push_back({stream, std::this_thread::get_id(), mode});
  count = captures.size();
  return CUDA_SUCCESS;
}
CUresult StreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  WYE_NEEDS_CONTEXT;
  const std::lock_guard lock(mutex);
  const auto found = find_capture(stream);
  *status = found == captures.end() ? CU_STREAM_CAPTURE_STATUS_NONE
            : found->valid          ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                    : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  return CUDA_SUCCESS;
}
/// Its graph is null.
CUresult StreamEndCapture(CUstream stream, CUgraph* graph) {
  WYE_NEEDS_CONTEXT;
  *graph = nullptr;
  const std::lock_guard lock(mutex);
  const auto found = find_capture(stream);
  if (found == captures.end()) return CUDA_ERROR_ILLEGAL_STATE;
  const Capture ended = *found;
  if (ended.thread != std::this_thread::get_id() && ended.mode != CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  captures.erase(found);
  count = captures.size();
  return ended.valid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

WYE_ENTRY_POINTS(WYE_ENTRY(ThreadExchangeStreamCaptureMode, 10010), WYE_OLDER(StreamBeginCapture, 10000),
                 WYE_ENTRY(StreamBeginCapture, 10010), WYE_ENTRY(StreamEndCapture, 10000),
                 WYE_ENTRY(StreamIsCapturing, 10000));

}  // namespace
}  // namespace standin
