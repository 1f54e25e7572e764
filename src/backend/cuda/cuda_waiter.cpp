#include "backend/cuda/cuda_waiter.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_device.hpp"
#include "base/gate.hpp"
#include "base/worker.hpp"

namespace wye::inline v0::cuda {

/// The wait of one caller.
struct CudaWaiter::Request {
  std::uint64_t timeline;  // its number, because the timeline may be destroyed first
  std::uint64_t value;
  EventHandle event;
  bool watched = false;  // a thread sleeps for its event
  std::optional<CUresult> result;
  base::Gate answered;
};

/// The state that the threads and the callers share. Each thread keeps it alive. A thread that
/// sleeps for a lost device may outlive the device, and then uses only this state.
struct CudaWaiter::Shared {
  std::shared_ptr<CudaDriver> driver;
  CUcontext context = nullptr;
  std::mutex mutex;
  base::Gate asked;
  std::vector<std::shared_ptr<Request>> requests;  // without a result, oldest first
  bool ending = false;
  std::size_t idle = 0;  // threads that are parked, or woken and without a request
  std::vector<base::Worker> threads;

  /// Returns whether a thread sleeps for an equal or earlier value of the same timeline.
  bool is_covered(const Request& request) const {
    return std::any_of(requests.begin(), requests.end(), [&](const auto& other) {
      return other->watched && other->timeline == request.timeline && other->value <= request.value;
    });
  }
  /// Returns a request that needs a thread, the first of its timeline.
  std::shared_ptr<Request> next() const {
    std::shared_ptr<Request> first;
    for (const auto& one : requests) {
      if (one->watched || (first && (one->timeline != first->timeline || one->value >= first->value)))
        continue;
      if (!is_covered(*one)) first = one;
    }
    return first;
  }
  /// Returns the number of requests that need a thread.
  std::size_t unserved() const {
    return static_cast<std::size_t>(std::count_if(requests.begin(), requests.end(), [&](const auto& one) {
      return !one->watched && !is_covered(*one);
    }));
  }
  CUresult sleep(CUevent event);
  void run();
};

/// Waits for an event. Called on threads of wye only.
CUresult CudaWaiter::Shared::sleep(CUevent event) {
  if (const CUresult r = driver->cu.CtxPushCurrent(context); r != CUDA_SUCCESS) return r;
  const CUresult r = driver->cu.EventSynchronize(event);
  CUcontext popped = nullptr;
  const CUresult after = driver->cu.CtxPopCurrent(&popped);
  return r != CUDA_SUCCESS ? r : after;
}

void CudaWaiter::Shared::run() {
  const RelaxedCapture relaxed(driver->cu);
  base::Lock lock(mutex);
  for (;;) {
    std::shared_ptr<Request> request;
    ++idle;
    asked.wait(lock, Instant::max(), [&] { return ending || (request = next()); });
    --idle;
    if (ending) return;
    request->watched = true;
    const CUevent event = request->event->handle;
    lock.unlock();
    const CUresult r = sleep(event);
    lock.lock();
    // The result also completes the waits for earlier values of this timeline.
    const auto answered = [&](const std::shared_ptr<Request>& one) {
      if (one->timeline != request->timeline || one->value > request->value) return false;
      one->result = r;
      one->answered.wake_all();
      return true;
    };
    requests.erase(std::remove_if(requests.begin(), requests.end(), answered), requests.end());
  }
}

CudaWaiter::CudaWaiter(CudaDevice& device) : device_(device), shared_(std::make_shared<Shared>()) {}

Result<std::optional<CUresult>> CudaWaiter::wait(std::uint64_t timeline, std::uint64_t value,
                                                 const EventHandle& event, Instant until) {
  auto request = std::make_shared<Request>();
  request->timeline = timeline;
  request->value = value;
  request->event = event;
  Shared& shared = *shared_;
  base::Lock lock(shared.mutex);
  if (!shared.driver) {
    shared.driver = device_.driver();
    shared.context = device_.context();
  }
  if (!shared.is_covered(*request)) {
    if (shared.unserved() < shared.idle) {
      shared.asked.wake_one();
    } else if (shared.threads.size() < most_threads) {
      auto started = base::Worker::start("wye-cuda-wait", [keep = shared_] { keep->run(); });
      if (started)
        shared.threads.push_back(*std::move(started));
      else if (shared.threads.empty())
        return std::move(started).error();
    }
  }
  shared.requests.push_back(request);
  request->answered.wait(lock, until, [&] { return request->result || device_.lost(); });
  if (!request->result && !request->watched) std::erase(shared.requests, request);
  return request->result;
}

void CudaWaiter::give_up() noexcept {
  const base::Lock lock(shared_->mutex);
  for (const auto& request : shared_->requests) request->answered.wake_all();
}

void CudaWaiter::end() noexcept {
  std::vector<base::Worker> threads;
  {
    const base::Lock lock(shared_->mutex);
    shared_->ending = true;
    shared_->asked.wake_all();
    // A thread that sleeps for a lost device keeps `Shared`, with its own handle, until it wakes.
    // The events belong to the device, which is destroyed first.
    if (device_.lost() && !shared_->requests.empty()) {
      for (const auto& request : shared_->requests) request->event.reset();
      return;
    }
    threads.swap(shared_->threads);
  }
}

}  // namespace wye::cuda
