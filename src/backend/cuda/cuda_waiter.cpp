#include "backend/cuda/cuda_waiter.hpp"

#include <utility>

#include "backend/cuda/cuda_device.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

Result<std::optional<CUresult>> CudaWaiter::wait(EventHandle event, Instant until) {
  auto request = std::make_shared<Request>(Request{std::move(event), std::nullopt});
  base::Lock lock(mutex_);
  if (!thread_) {
    auto started = base::Worker::start("wye-cuda-wait", [this] { run(); });
    if (!started) return std::move(started).error();
    thread_.emplace(*std::move(started));
  }
  requests_.push_back(request);
  asked_.wake_one();
  answered_.wait(lock, until, [&] { return request->result || device_.lost(); });
  return request->result;
}

void CudaWaiter::run() {
  const CurrentContext current(device_);
  base::Lock lock(mutex_);
  for (;;) {
    asked_.wait(lock, Instant::max(), [this] { return ending_ || !requests_.empty(); });
    if (ending_) return;
    const std::shared_ptr<Request> request = std::move(requests_.front());
    requests_.pop_front();
    if (request.use_count() == 1) continue;  // its deadline has passed
    lock.unlock();
    const CUresult r = device_.cu.EventSynchronize(request->event->handle);
    lock.lock();
    request->result = r;
    request->event.reset();
    answered_.wake_all();
  }
}

void CudaWaiter::give_up() noexcept {
  const base::Lock lock(mutex_);
  answered_.wake_all();
}

void CudaWaiter::end() noexcept {
  {
    const base::Lock lock(mutex_);
    ending_ = true;
    requests_.clear();
    asked_.wake_all();
  }
  thread_.reset();
}

}  // namespace cuda
}  // namespace v0
}  // namespace wye
