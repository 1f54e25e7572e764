#include "base/worker.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <system_error>
#include <utility>

#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace base {
namespace {

std::atomic<int> alive_count{0};

/// Blocks signals on this thread while it exists, so that a thread started meanwhile begins with them
/// blocked. Those that say this very thread did something wrong are let through: blocked, they would end the
/// process without asking the host's handler.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&all, fault);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;  // restores once
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

Result<Worker> Worker::start(std::string name, std::function<void()> body) {
  if (name.size() > 15) name.resize(15);
  const SignalsBlocked blocked;
  alive_count.fetch_add(1);
  try {
    return Worker(std::thread([name, body = std::move(body)]() mutable {
      pthread_setname_np(pthread_self(), name.c_str());
      body();
      body = nullptr;  // what it holds ends before the thread counts as ended
      alive_count.fetch_sub(1);
    }));
  } catch (const std::system_error& error) {
    alive_count.fetch_sub(1);
    return Error(Errc::unavailable, text("Thread '{}' cannot be started: {}.", name, error.code().message()),
                 NativeError{"pthread_create", error.code().value(), ""});
  } catch (...) {
    alive_count.fetch_sub(1);
    throw;
  }
}

Worker::~Worker() {
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

int Worker::alive() noexcept { return alive_count.load(); }

void give_way() noexcept {
  (void)::setpriority(PRIO_PROCESS, 0,
                      10);  // of this thread only, whatever the name says: Linux, setpriority(2)
}

}  // namespace base
}  // namespace v0
}  // namespace wye
