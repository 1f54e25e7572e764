#include "base/descriptor_watch.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/gate.hpp"
#include "base/text.hpp"

namespace wye::inline v0::base {

struct DescriptorWatch::State {
  struct Watched {
    int descriptor;
    std::shared_ptr<std::function<bool()>> is_readable;
  };

  explicit State(Descriptor event) : wakes(std::move(event)) {}

  void wake() const noexcept {
    const std::uint64_t one = 1;
    (void)uninterrupted([&] { return ::write(wakes.number(), &one, sizeof(one)); });
  }

  void run() noexcept {
    std::vector<pollfd> polled;
    for (;;) {
      if (!list(polled)) return;
      if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
      std::uint64_t count = 0;
      (void)uninterrupted([&] { return ::read(wakes.number(), &count, sizeof(count)); });
      for (std::size_t i = 1; i < polled.size(); ++i)
        if (polled[i].revents != 0) call(polled[i].fd);
    }
  }

  /// Lists the descriptors to wait for. Returns false at the end of the watch. Without memory the
  /// earlier list stays.
  bool list(std::vector<pollfd>& polled) noexcept {
    const Lock lock = lock_soon(mutex);
    if (is_ending) return false;
    try {
      std::vector<pollfd> now{{wakes.number(), POLLIN, 0}};
      for (const Watched& one : watched) now.push_back({one.descriptor, POLLIN, 0});
      polled.swap(now);
    } catch (const std::bad_alloc&) {
    }
    return true;
  }

  void call(int descriptor) noexcept {
    std::shared_ptr<std::function<bool()>> function;
    {
      const Lock lock = lock_soon(mutex);
      for (const Watched& one : watched)
        if (one.descriptor == descriptor) function = one.is_readable;
      if (!function) return;
      called = descriptor;
    }
    bool goes_on = false;
    try {
      goes_on = (*function)();
    } catch (...) {
    }
    const Lock lock = lock_soon(mutex);
    called = -1;
    if (!goes_on) std::erase_if(watched, [&](const Watched& one) { return one.is_readable == function; });
    returned.wake_all();
  }

  const Descriptor wakes;
  std::mutex mutex;
  Gate returned;
  std::vector<Watched> watched;
  int called = -1;  // the descriptor whose function runs
  bool is_ending = false;
};

Result<DescriptorWatch> DescriptorWatch::start(std::string thread_name) {
  Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event)
    return Error(Errc::unavailable, text("No thread can watch descriptors: eventfd: {}.",
                                         std::generic_category().message(errno)));
  auto state = std::make_shared<State>(std::move(event));
  auto thread = Worker::start(std::move(thread_name), [state] { state->run(); });
  if (!thread) return std::move(thread).error();
  return DescriptorWatch(std::move(state), *std::move(thread));
}

DescriptorWatch::DescriptorWatch(std::shared_ptr<State> state, Worker thread) noexcept
    : state_(std::move(state)), thread_(std::make_unique<Worker>(std::move(thread))) {}

DescriptorWatch::~DescriptorWatch() {
  if (!state_) return;
  {
    const Lock lock = lock_soon(state_->mutex);
    state_->is_ending = true;
  }
  state_->wake();
}

void DescriptorWatch::add(int descriptor, std::function<bool()> is_readable) {
  {
    const Lock lock = lock_soon(state_->mutex);
    state_->watched.push_back({descriptor, std::make_shared<std::function<bool()>>(std::move(is_readable))});
  }
  state_->wake();
}

void DescriptorWatch::remove(int descriptor) noexcept {
  if (descriptor < 0) return;  // closed, and not watched
  {
    Lock lock = lock_soon(state_->mutex);
    std::erase_if(state_->watched, [&](const auto& one) { return one.descriptor == descriptor; });
    state_->returned.wait(lock, Instant::max(), [&] { return state_->called != descriptor; });
  }
  state_->wake();  // otherwise the thread would poll a descriptor that its owner closes
}

}  // namespace wye::base
