#include "backend/cuda/cuda_lane.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "backend/cuda/cuda_encoder.hpp"
#include "backend/cuda/cuda_replay.hpp"
#include "base/backoff.hpp"
#include "base/text.hpp"

namespace wye::inline v0::cuda {

CudaLane::CudaLane(std::shared_ptr<CudaDevice> device)
    : LaneBase(std::move(device)), work_(std::make_unique<LaneWork>(cuda())) {}

Result<std::unique_ptr<CudaLane>> CudaLane::create(std::shared_ptr<CudaDevice> device,
                                                   const device::LaneOptions& options) {
  device->unfinished().collect();
  if (const Error* lost = device->lost()) return *lost;
  std::unique_ptr<CudaLane> lane(new CudaLane(std::move(device)));
  CudaDevice& owner = lane->cuda();
  auto timeline = CudaTimeline::create(owner.self(), CudaTimeline::SignaledBy::lane);
  if (!timeline) return std::move(timeline).error();
  lane->stream_->timeline = *timeline;
  lane->timeline_base_ = *timeline;
  const CreationContext current(owner);
  if (!current) return current.error();
  auto stream = owner.create_stream(options.priority);
  if (!stream) return std::move(stream).error();
  lane->stream_->handle = *stream;
  return lane;
}

LaneWork::~LaneWork() {
  if (!stream->handle) return;  // its creation failed
  CudaDevice& device = stream->device;
  const CurrentContext current(device);
  for (Batch* batch : batches.in_flight()) retire(*batch);
  stream->keep.clear();
  if (!device.lost() && current)
    device.lose_if_fatal(device.cu.StreamDestroy(stream->handle), "cuStreamDestroy");
  batches.clear();
}

void LaneWork::retire(Batch& batch) noexcept {
  batch.downloads.clear();
  batch.recording.reset();
  batch.waits.clear();
  batch.signals.clear();
  batch.plan.clear();
  batch.graph.reset();
  stream->device.staging().give_back(batch.staging);
  if (std::exchange(batch.is_foreign, false)) --stream->device.foreign_waits();
}

bool LaneWork::has_ended() noexcept {
  CudaTimeline& timeline = *stream->timeline;
  if (stream->device.lost()) return true;
  // No event follows the steps of a batch that failed halfway.
  const std::uint64_t scheduled = timeline.scheduled();
  const auto& given = batches.in_flight();
  const bool has_rest = std::any_of(given.begin(), given.end(), [&](const Batch* batch) {
    return batch->begun && batch->value > scheduled;
  });
  return !has_rest && timeline.reached() >= scheduled;
}

CudaLane::~CudaLane() {
  CudaDevice& device = cuda();
  abandon();
  if (!stream_->handle) return;
  // Pending work is submitted or fails. Submitted work must complete before its memory is freed.
  // The thread does not wait in the driver, because the loss of the device would not end that wait.
  constexpr Instant for_ever = Instant::max() - Duration(1);
  (void)stream_->timeline->wait(last_, for_ever);
  device.pending().close(*stream_);
  (void)stream_->timeline->wait(stream_->timeline->scheduled(), for_ever);
  base::Backoff backoff;
  bool ended = false;
  do {
    {
      const CurrentContext current(device);
      if (current && !device.lost()) {
        const CUresult r = device.cu.StreamSynchronize(stream_->handle);
        device.lose_if_fatal(r, "cuStreamSynchronize");
        ended = r == CUDA_SUCCESS;
      }
    }
    // A failed wait does not tell whether the stream is at work.
    ended = ended || work_->has_ended();
  } while (!ended && backoff.sleep());
  if (!ended) device.unfinished().add(std::move(work_));
}

Result<Batch*> CudaLane::next_batch() {
  if (!batches_.has_idle() && !batches_.in_flight().empty()) collect(stream_->timeline->reached());
  stream_->timeline->drop_reached();  // then the events of idle batches are theirs alone
  auto batch = batches_.take([]() -> Result<std::unique_ptr<Batch>> { return std::make_unique<Batch>(); });
  if (!batch) return batch;
  // Another thread may still query the event for its last value. Then this batch needs another
  // event.
  if ((*batch)->event.use_count() != 1) {
    auto event = cuda().events().take();
    if (!event) return batches_.give_back(**batch), std::move(event).error();
    (*batch)->event = *std::move(event);
  }
  (*batch)->value = last_ + 1;
  (*batch)->begun = false;
  return batch;
}

Result<std::uint64_t> CudaLane::submit(const device::Submission& submission) {
  CudaDevice& device = cuda();
  for (const device::TimelinePoint& point : submission.signals)
    if (!static_cast<CudaTimeline&>(*point.timeline).semaphore())
      return Error(
          Errc::unsupported,
          base::text("A lane of device '{}' signals nothing of the host's: a stream follows it instead.",
                     device.info().id));
  auto ready = device.pending().ready(*stream_, submission.waits);
  if (!ready) return std::move(ready).error();
  const CurrentContext current(device);
  if (!current) return current.error();
  // A pending submission keeps its arguments of now, which a graph might lose to a later
  // submission.
  CudaReplay* const replay = *ready ? CudaReplay::of(submission, device) : nullptr;
  std::shared_ptr<const CudaGraph> graph;
  plan_.clear();
  if (!replay || !replay->is_for(*submission.recording)) {
    if (auto encoded = encode(*submission.recording, device, plan_); !encoded)
      return std::move(encoded).error();
    if (replay)
      if (auto updated = replay->update(*submission.recording, plan_); !updated)
        return std::move(updated).error();
  }
  if (replay) graph = replay->graph();
  if (graph) plan_.steps.assign(1, {.kind = Step::Kind::graph, .graph = graph->executable()});
  auto batch = next_batch();
  if (!batch) return std::move(batch).error();
  (*batch)->graph = std::move(graph);
  (*batch)->recording = submission.recording;
  (*batch)->waits.assign(submission.waits.begin(), submission.waits.end());
  const std::uint64_t before = last_;
  if (!*ready) (*batch)->signals.assign(submission.signals.begin(), submission.signals.end());
  auto done = *ready ? launch(*batch, submission.signals) : keep_pending(**batch);
  if (done) return last_;
  // Parts of a large transfer may be in flight. They complete before the call fails.
  if (last_ != before) (void)stream_->timeline->wait(last_, Instant::max());
  return std::move(done).error();
}

Result<void> CudaLane::stage(Batch& batch, Step& step) {
  if (!step.source && !step.target) return {};
  auto memory = staging_.take(batch.staging, step.bytes);
  if (!memory) return std::move(memory).error();
  if (step.source) {
    std::memcpy(*memory, step.source, step.bytes);
    step.from = reinterpret_cast<std::uintptr_t>(*memory);
  } else {
    batch.downloads.push_back({*memory, step.target, step.bytes});
    step.to = reinterpret_cast<std::uintptr_t>(*memory);
  }
  return {};
}

Result<void> CudaLane::launch(Batch* batch, std::span<const device::TimelinePoint> signals) {
  const auto is_staged = [](const Step& step) { return step.source || step.target; };
  Result<void> done;
  if (std::any_of(plan_.steps.begin(), plan_.steps.end(), is_staged)) done = wait_for_staging();
  note_foreign(*batch);
  if (done) done = stream_->enqueue_waits(*batch);
  for (Step& step : plan_.steps) {
    if (!done) break;
    if (is_staged(step) && Staging::is_enough(batch->staging)) {
      auto next = next_part(*batch);
      if (!next) return std::move(next).error();
      batch = *next;
    }
    done = stage(*batch, step);
    if (done) done = stream_->enqueue_step(*batch, plan_, step);
  }
  if (!done) return fail_batch(*batch, std::move(done).error());
  batch->signals.assign(signals.begin(), signals.end());  // after the last part
  return finish(*batch);
}

Result<void> CudaLane::finish(Batch& batch) {
  if (auto ended = stream_->enqueue_end(batch); !ended) return fail_batch(batch, std::move(ended).error());
  last_ = batch.value;
  batches_.start(batch);
  cuda().pending().submitted(*stream_, batch.value);
  return {};
}

Error CudaLane::fail_batch(Batch& batch, Error error) {
  if (!batch.begun) return discard(batch), error;
  batches_.start(batch);  // until the lane ends: the device may use it
  cuda().pending().fail(*stream_, error);
  return error;
}

Result<Batch*> CudaLane::next_part(Batch& batch) {
  const auto recording = batch.recording;
  if (auto finished = finish(batch); !finished) return std::move(finished).error();
  if (auto waited = wait_for_staging(); !waited) return std::move(waited).error();
  auto next = next_batch();
  if (next) (*next)->recording = recording;
  return next;
}

Result<void> CudaLane::wait_for_staging() {
  if (staging_.is_full()) collect(stream_->timeline->reached());
  while (staging_.is_full() && cuda().foreign_waits() == 0) {
    const auto& in_flight = batches_.in_flight();
    const auto oldest = std::find_if(in_flight.begin(), in_flight.end(),
                                     [](const Batch* batch) { return batch->staging.held != 0; });
    if (oldest == in_flight.end()) break;  // other lanes use the memory, and may wait for this thread
    const std::uint64_t value = (*oldest)->value;
    if (auto reached = stream_->timeline->wait(value, Instant::max()); !reached) return reached;
    deliver(value);
  }
  return {};
}

void CudaLane::note_foreign(Batch& batch) noexcept {
  batch.is_foreign =
      std::any_of(batch.waits.begin(), batch.waits.end(), [](const device::TimelinePoint& point) {
        return static_cast<const CudaTimeline&>(*point.timeline).is_foreign();
      });
  if (batch.is_foreign) ++cuda().foreign_waits();
}

Result<void> CudaLane::keep_pending(Batch& batch) {
  // A later thread submits it, with all its steps at once.
  for (Step& step : plan_.steps)
    if (auto staged = stage(batch, step); !staged) return discard(batch), staged;
  note_foreign(batch);
  std::swap(batch.plan, plan_);
  if (auto kept = cuda().pending().add(*stream_, batch); !kept) return discard(batch), kept;
  last_ = batch.value;
  batches_.start(batch);
  return {};
}

void CudaLane::discard(Batch& batch) noexcept {
  work_->retire(batch);
  batches_.give_back(batch);
}

/// Retires batches that have completed and whose downloads were delivered.
void CudaLane::collect(std::uint64_t reached) noexcept {
  batches_.collect(reached, [this](Batch& batch) { work_->retire(batch); });
}

Result<void> CudaLane::wait(std::uint64_t value, Instant until) {
  assert(value <= last_);
  if (auto reached = stream_->timeline->wait(value, until); !reached) return reached;
  deliver(value);
  return {};
}

void CudaLane::deliver(std::uint64_t value) noexcept {
  for (Batch* batch : batches_.in_flight()) {
    if (batch->value > value) continue;
    for (const Batch::Download& download : batch->downloads)
      std::memcpy(download.target, download.from, download.bytes);
    batch->downloads.clear();
  }
  collect(value);
}

void CudaLane::abandon() noexcept {
  for (Batch* batch : batches_.in_flight()) batch->downloads.clear();
}

}  // namespace wye::cuda
