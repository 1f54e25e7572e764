#include "support/cuda/stream.hpp"

#include <algorithm>
#include <chrono>

#include "support/cuda/capture.hpp"
#include "support/cuda/memory.hpp"

namespace standin {

Queue::Queue(bool delays) : delays_(delays), random_(world().seed.load() * 7919u + ++count) {
  thread_ = std::thread([this] { run(); });
}
void Queue::end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}
void Queue::push(std::function<void()> operation) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(operation));
  has_operations_.store(true, std::memory_order_relaxed);
  changed_.notify_all();
}
bool Queue::idle() {
  const std::lock_guard lock(mutex_);
  return queue_.empty();
}
std::shared_ptr<Mark> Queue::mark() {
  auto mark = std::make_shared<Mark>();
  push([mark] { mark->reach(); });
  return mark;
}
void Mark::reach() {
  const std::lock_guard lock(mutex);
  reached = true;
  time = std::chrono::steady_clock::now();
  changed.notify_all();
}
void Queue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    auto operation = std::move(queue_.front());
    lock.unlock();
    if (delays_ && world().seed != 0 && random_() % 16 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
    operation();
    operation = nullptr;
    lock.lock();
    queue_.pop_front();
    if (!queue_.empty() || !never_sleeps()) continue;
    has_operations_.store(false, std::memory_order_relaxed);
    lock.unlock();
    spin();
    lock.lock();
  }
}
void Queue::spin() const {
  const auto end = Latency::Clock::now() + std::chrono::milliseconds(1);
  while (!has_operations_.load(std::memory_order_relaxed) && Latency::Clock::now() < end) {
  }
}
Stream::Stream(int of, CUcontext in) : Queue(true), Sequence(of, in, ++created) { enter(*this); }
Stream::~Stream() {
  end();
  leave(*this);
}
std::shared_ptr<Mark> Stream::mark() {
  auto mark = Queue::mark();
  mark->moment = moment_of(*this);
  return mark;
}
std::string run_kernel(const twin::Launch& launch) {
  static thread_local std::vector<std::unique_ptr<Queue>> helpers;
  static const auto workers = static_cast<std::size_t>(setting("WYE_STANDIN_WORKERS", has_tsan() ? 2 : 1));
  const std::size_t blocks = std::size_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const std::size_t parts = std::max<std::size_t>(1, std::min(workers, blocks));
  std::vector<std::string> wrong(parts);
  while (helpers.size() + 1 < parts) helpers.push_back(std::make_unique<Queue>(false));
  std::vector<std::shared_ptr<Mark>> ends;
  for (std::size_t i = 1; i < parts; ++i) {
    helpers[i - 1]->push([&launch, &wrong, i, parts] { wrong[i] = twin::run(launch, i, parts); });
    ends.push_back(helpers[i - 1]->mark());
  }
  wrong[0] = twin::run(launch, 0, parts);
  for (const auto& end : ends) (void)wait_for(*end);
  for (const std::string& one : wrong)
    if (!one.empty()) return one;
  return "";
}

CUresult wait_for(Mark& mark, Latency* wake) {
  std::unique_lock lock(mark.mutex);
  if (mark.reached) return state();
  mark.changed.wait(lock, [&] { return mark.reached; });
  lock.unlock();
  if (wake) wake->spend();
  return state();
}

CUresult create_stream(CUstream* stream, unsigned flags, int priority, CUcontext context) {
  if (broken()) return state();
  if (flags != CU_STREAM_NON_BLOCKING || priority > 0 || priority < highest_priority)
    return CUDA_ERROR_INVALID_VALUE;
  world().priority = priority;
  create<Stream>(stream, device_of(context), context);
  return CUDA_SUCCESS;
}

namespace {

CUresult StreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  WYE_NEEDS_CONTEXT;
  return create_stream(stream, flags, priority, contexts.back());
}

CUresult CtxGetStreamPriorityRange(int* least, int* greatest) {
  WYE_NEEDS_CONTEXT;
  *least = 0;
  *greatest = highest_priority;
  return CUDA_SUCCESS;
}
CUresult StreamDestroy(CUstream stream) {
  WYE_NEEDS_CONTEXT;
  return destroy<Stream>(stream);
}
CUresult StreamSynchronize(CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Stream, on, stream);
  Latency* const wake = on->idle() ? nullptr : latency("cuStreamSynchronize/wake");
  const std::shared_ptr<Mark> mark = on->mark();
  const CUresult r = wait_for(*mark, wake);
  see(mark->moment);
  give_back_kept();
  return r;
}
CUresult StreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Stream, on, stream);
  WYE_NEEDS(Event, its, event);
  if (invalidates(stream)) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;  // the event is not of the capture
  const std::shared_ptr<Mark> mark = its->last();                       // its present value
  if (!mark) return CUDA_SUCCESS;
  await(*on, mark->moment);
  on->push([mark] { (void)wait_for(*mark); });
  return CUDA_SUCCESS;
}
CUresult EventCreate(CUevent* event, unsigned flags) {
  WYE_NEEDS_CONTEXT;
  create<Event>(event, contexts.back(), flags);
  return CUDA_SUCCESS;
}
CUresult EventRecord(CUevent event, CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Stream, on, stream);
  WYE_NEEDS(Event, its, event);
  if (its->context != on->context) return CUDA_ERROR_INVALID_HANDLE;
  its->record(*on);
  return CUDA_SUCCESS;
}
CUresult EventSynchronize(CUevent event) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Event, its, event);
  const std::shared_ptr<Mark> mark = its->last();
  Latency* const wake = its->blocking ? latency("cuEventSynchronize/wake") : nullptr;
  const CUresult r = mark ? wait_for(*mark, wake) : CUDA_SUCCESS;
  if (mark) see(mark->moment);
  give_back_kept();
  return r;
}
CUresult EventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Event, first, begin);
  WYE_NEEDS(Event, second, end);
  const std::shared_ptr<Mark> from = first->last(), to = second->last();
  if (!first->timed || !second->timed || !from || !to || first->context != second->context)
    return CUDA_ERROR_INVALID_HANDLE;
  std::chrono::steady_clock::time_point times[2];
  for (std::size_t i = 0; i < 2; ++i) {
    Mark& mark = i == 0 ? *from : *to;
    const std::lock_guard lock(mark.mutex);
    if (!mark.reached) return CUDA_ERROR_NOT_READY;
    times[i] = mark.time;
  }
  *milliseconds = std::chrono::duration<float, std::milli>(times[1] - times[0]).count();
  return CUDA_SUCCESS;
}
CUresult EventDestroy(CUevent event) {
  WYE_NEEDS_CONTEXT;
  return destroy<Event>(event);
}

WYE_ENTRY_POINTS(WYE_ENTRY(CtxGetStreamPriorityRange, 5050), WYE_ENTRY(StreamCreateWithPriority, 5050),
                 WYE_OLDER(StreamDestroy, 2000), WYE_ENTRY(StreamDestroy, 4000),
                 WYE_ENTRY(StreamSynchronize, 2000), WYE_ENTRY(StreamWaitEvent, 3020),
                 WYE_ENTRY(EventCreate, 2000), WYE_ENTRY(EventRecord, 2000),
                 WYE_ENTRY(EventSynchronize, 2000), WYE_OLDER(EventDestroy, 2000),
                 WYE_ENTRY(EventDestroy, 4000), WYE_ENTRY(EventElapsedTime, 2000));

}  // namespace
}  // namespace standin
