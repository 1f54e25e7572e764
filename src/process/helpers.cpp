#include "process/helpers.hpp"

#include <mutex>
#include <utility>
#include <vector>

#include "base/gate.hpp"
#include "base/text.hpp"
#include "base/worker.hpp"

namespace wye::inline v0::process {

struct Helpers::State {
  State() = default;
  State(const State&) = delete;  // the threads have its address
  ~State() {
    {
      const base::Lock lock = base::lock_soon(mutex);
      is_ending = true;
      next = count;
      begun.wake_all();
    }
    threads.clear();  // joins
  }

  /// Calls the body for numbers of the range until none is left. `lock` is released meanwhile.
  void call(base::Lock& lock) noexcept {
    while (next < count) {
      const std::size_t number = next++;
      ++running;
      lock.unlock();
      body(number);
      lock.lock();
      --running;
    }
    if (running == 0) completed.wake_all();
  }
  void run() noexcept {
    base::Lock lock = base::lock_soon(mutex);
    for (;;) {
      begun.wait(lock, Instant::max(), [&] { return is_ending || next < count; });
      if (is_ending) return;
      call(lock);
    }
  }

  std::mutex mutex;
  base::Gate begun, completed;
  std::function<void(std::size_t)> body;
  std::size_t count = 0, next = 0, running = 0;
  bool is_ending = false;
  std::vector<base::Worker> threads;
};

Result<Helpers> Helpers::start(const std::string& name, unsigned threads) {
  auto state = std::make_unique<State>();
  for (unsigned t = 0; t < threads; ++t) {
    auto thread = base::Worker::start(base::text("{} {}", name, t), [all = state.get()] { all->run(); });
    if (!thread) return std::move(thread).error();
    state->threads.push_back(*std::move(thread));
  }
  return Helpers(std::move(state));
}

Helpers::Helpers(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Helpers::Helpers(Helpers&&) noexcept = default;
Helpers::~Helpers() = default;

void Helpers::begin(std::size_t count, std::function<void(std::size_t)> body) {
  const base::Lock lock = base::lock_soon(state_->mutex);
  state_->body = std::move(body);
  state_->count = count;
  state_->next = 0;
  state_->begun.wake_all();
}

void Helpers::finish() noexcept {
  base::Lock lock = base::lock_soon(state_->mutex);
  state_->call(lock);
  state_->completed.wait(lock, Instant::max(),
                         [&] { return state_->next == state_->count && state_->running == 0; });
}

}  // namespace wye::process
