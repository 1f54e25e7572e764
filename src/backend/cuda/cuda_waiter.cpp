#include "backend/cuda/cuda_waiter.hpp"

#include <utility>

#include "backend/cuda/cuda_device.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

Result<std::optional<CUresult>> CudaWaiter::wait(EventHandle event, Instant until) {
  auto request = std::make_shared<Request>(Request{std::move(event), std::nullopt});
  base::Lock lock(mutex_);
  if (requests_.size() >= idle_ && threads_.size() < most_threads) {
    auto started = base::Worker::start("wye-cuda-wait", [this] { run(); });
    if (started)
      threads_.push_back(*std::move(started));
    else if (threads_.empty())
      return std::move(started).error();
  }
  requests_.push_back(request);
  asked_.wake_one();
  answered_.wait(lock, until, [&] { return request->result || device_.lost(); });
  return request->result;
}

void CudaWaiter::run() {
  base::Lock lock(mutex_);
  for (;;) {
    ++idle_;
    asked_.wait(lock, Instant::max(), [this] { return ending_ || !requests_.empty(); });
    --idle_;
    if (ending_) return;
    const std::shared_ptr<Request> request = std::move(requests_.front());
    requests_.pop_front();
    if (request.use_count() == 1) continue;  // its deadline has passed
    lock.unlock();
    CUresult r = CUDA_SUCCESS;
    {
      const CurrentContext current(device_);
      r = current ? device_.cu.EventSynchronize(request->event->handle) : current.result();
    }
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
  threads_.clear();
}

}  // namespace cuda
}  // namespace v0
}  // namespace wye
