#include "backend/cuda/cuda_lane.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/cuda/cuda_encoder.hpp"
#include "backend/cuda/cuda_replay.hpp"
#include "base/backoff.hpp"
#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

CudaLane::CudaLane(std::shared_ptr<CudaDevice> device)
    : LaneBase(std::move(device)), work_(std::make_unique<LaneWork>(cuda())) {}

Result<std::unique_ptr<CudaLane>> CudaLane::create(std::shared_ptr<CudaDevice> device,
                                                   const device::LaneOptions& options) {
  device->unfinished().collect();
  if (const Error* lost = device->lost()) return *lost;
  std::unique_ptr<CudaLane> lane(new CudaLane(std::move(device)));
  CudaDevice& owner = lane->cuda();
  auto timeline = CudaTimeline::create(owner.self(), CudaTimeline::MovedBy::lane);
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
  for (Flight* flight : flights.in_flight()) retire(*flight);
  stream->keep.clear();
  if (!device.lost() && current)
    device.lose_if_fatal(device.cu.StreamDestroy(stream->handle), "cuStreamDestroy");
  flights.clear();
}

void LaneWork::retire(Flight& flight) noexcept {
  flight.downloads.clear();
  flight.recording.reset();
  flight.waits.clear();
  flight.signals.clear();
  flight.plan.clear();
  flight.graph.reset();
  staging.give_back(flight.staging);
}

bool LaneWork::has_ended() noexcept {
  CudaTimeline& timeline = *stream->timeline;
  if (stream->device.lost()) return true;
  // No event follows the steps of a flight that failed halfway.
  const std::uint64_t scheduled = timeline.scheduled();
  const auto& given = flights.in_flight();
  const bool has_rest = std::any_of(given.begin(), given.end(), [&](const Flight* flight) {
    return flight->begun && flight->value > scheduled;
  });
  return !has_rest && timeline.reached() >= scheduled;
}

CudaLane::~CudaLane() {
  CudaDevice& device = cuda();
  abandon();
  if (!stream_->handle) return;
  // Pending work is submitted or fails. Submitted work must complete before its memory is freed. The thread
  // does not wait in the driver, because the loss of the device would not end that wait.
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

Result<Flight*> CudaLane::next_flight() {
  if (!flights_.has_idle() && !flights_.in_flight().empty()) collect(stream_->timeline->reached());
  stream_->timeline->drop_reached();  // then the events of idle flights are theirs alone
  auto flight = flights_.take([]() -> Result<std::unique_ptr<Flight>> { return std::make_unique<Flight>(); });
  if (!flight) return flight;
  // Another thread may still query the event for its last value. Then this flight needs another event.
  if ((*flight)->event.use_count() != 1) {
    auto event = cuda().take_event();
    if (!event) return flights_.give_back(**flight), std::move(event).error();
    (*flight)->event = *std::move(event);
  }
  (*flight)->value = last_ + 1;
  (*flight)->begun = false;
  return flight;
}

Result<std::uint64_t> CudaLane::submit(const device::Submission& submission) {
  CudaDevice& device = cuda();
  for (const device::TimelinePoint& point : submission.waits)
    if (!point.timeline || point.timeline->owner() != &device)
      return Error(Errc::invalid_argument,
                   base::text("A lane of device '{}' cannot wait for a timeline of another device.",
                              device.info().id));
  for (const device::TimelinePoint& point : submission.signals)
    if (!point.timeline || point.timeline->owner() != &device ||
        !static_cast<CudaTimeline&>(*point.timeline).semaphore())
      return Error(
          Errc::unsupported,
          base::text("A lane of device '{}' signals nothing of the host's: a stream follows it instead.",
                     device.info().id));
  auto ready = device.pending().ready(*stream_, submission.waits);
  if (!ready) return std::move(ready).error();
  const CurrentContext current(device);
  if (!current) return current.error();
  // A pending submission keeps its arguments of now, which a graph might lose to a later submission.
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
  auto flight = next_flight();
  if (!flight) return std::move(flight).error();
  (*flight)->graph = std::move(graph);
  (*flight)->recording = submission.recording;
  (*flight)->waits.assign(submission.waits.begin(), submission.waits.end());
  const std::uint64_t before = last_;
  if (!*ready) (*flight)->signals.assign(submission.signals.begin(), submission.signals.end());
  auto done = *ready ? launch(*flight, submission.signals) : keep_pending(**flight);
  if (done) return last_;
  // Parts of a large upload may be in flight. They complete before the call fails.
  if (last_ != before) (void)stream_->timeline->wait(last_, Instant::max());
  return std::move(done).error();
}

Result<void> CudaLane::stage(Flight& flight, Step& step) {
  if (!step.source && !step.target) return {};
  auto memory = staging_.take(flight.staging, step.bytes);
  if (!memory) return std::move(memory).error();
  if (step.source) {
    std::memcpy(*memory, step.source, step.bytes);
    step.from = reinterpret_cast<std::uintptr_t>(*memory);
  } else {
    flight.downloads.push_back({*memory, step.target, step.bytes});
    step.to = reinterpret_cast<std::uintptr_t>(*memory);
  }
  return {};
}

Result<void> CudaLane::launch(Flight* flight, std::span<const device::TimelinePoint> signals) {
  auto done = stream_->enqueue_waits(*flight);
  for (Step& step : plan_.steps) {
    if (!done) break;
    if (step.source && staging_.is_enough(flight->staging)) {
      auto next = next_part(*flight);
      if (!next) return std::move(next).error();
      flight = *next;
    }
    done = stage(*flight, step);
    if (done) done = stream_->enqueue_step(*flight, plan_, step);
  }
  if (!done) return fail_flight(*flight, std::move(done).error());
  flight->signals.assign(signals.begin(), signals.end());  // after the last part
  return finish(*flight);
}

Result<void> CudaLane::finish(Flight& flight) {
  if (auto ended = stream_->enqueue_end(flight); !ended) return fail_flight(flight, std::move(ended).error());
  last_ = flight.value;
  flights_.start(flight);
  cuda().pending().given(*stream_, flight.value);
  return {};
}

Error CudaLane::fail_flight(Flight& flight, Error error) {
  if (!flight.begun) return discard(flight), error;
  flights_.start(flight);  // until the lane ends: the device may use it
  cuda().pending().fail(*stream_, error);
  return error;
}

Result<Flight*> CudaLane::next_part(Flight& flight) {
  const auto recording = flight.recording;
  if (auto finished = finish(flight); !finished) return std::move(finished).error();
  if (staging_.is_full()) {
    // This flight gives its memory back when it completes. Others hold downloads until a caller waits for
    // them.
    if (const Flight* const oldest = flights_.first_with_staging()) {
      const std::uint64_t value = oldest->value;
      if (auto reached = stream_->timeline->wait(value, Instant::max()); !reached)
        return std::move(reached).error();
      collect(value);
    }
  }
  auto next = next_flight();
  if (next) (*next)->recording = recording;
  return next;
}

Result<void> CudaLane::keep_pending(Flight& flight) {
  for (Step& step : plan_.steps)
    if (auto staged = stage(flight, step); !staged) return discard(flight), staged;
  std::swap(flight.plan, plan_);
  if (auto kept = cuda().pending().add(*stream_, flight); !kept) return discard(flight), kept;
  last_ = flight.value;
  flights_.start(flight);
  return {};
}

void CudaLane::discard(Flight& flight) noexcept {
  work_->retire(flight);
  flights_.give_back(flight);
}

/// Retires flights that have completed and whose downloads were delivered.
void CudaLane::collect(std::uint64_t reached) noexcept {
  flights_.collect(reached, [this](Flight& flight) { work_->retire(flight); });
}

Result<void> CudaLane::wait(std::uint64_t value, Instant until) {
  if (value > last_)
    return Error(
        Errc::invalid_argument,
        base::text("A lane of device '{}' that has submitted up to {} cannot be waited for until {}.",
                   cuda().info().id, last_, value));
  if (auto reached = stream_->timeline->wait(value, until); !reached) return reached;
  for (Flight* flight : flights_.in_flight()) {
    if (flight->value > value) continue;
    for (const Flight::Download& download : flight->downloads)
      std::memcpy(download.target, download.from, download.bytes);
    flight->downloads.clear();
  }
  collect(value);
  return {};
}

void CudaLane::abandon() noexcept {
  for (Flight* flight : flights_.in_flight()) flight->downloads.clear();
}

}  // namespace cuda
}  // namespace v0
}  // namespace wye
