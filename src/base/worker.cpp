#include "base/worker.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

#include "base/cancellation.hpp"
#include "base/float_environment.hpp"
#include "base/text.hpp"

namespace wye::inline v0::base {
namespace {

constinit PerProcess<std::atomic<int>> alive_count;
constinit thread_local bool is_worker = false;

/// Blocks signals on this thread while it exists. A thread that is started meanwhile inherits the
/// blocked signals. Signals of faults of the thread itself are not blocked: if blocked, they would
/// end the process without a call of the application's handler.
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

struct Task {
  std::string name;
  std::function<void()> body;
};

void* run_task(void* given) noexcept {
  {
    const std::unique_ptr<Task> task(static_cast<Task*>(given));
    is_worker = true;
    const CancellationHeld held;  // for as long as the thread exists
    std::fesetenv(FE_DFL_ENV);    // not that of the thread that started this one
    pthread_setname_np(pthread_self(), task->name.c_str());
    try {
      task->body();
    } catch (...) {  // a body must not throw; if it does, its thread ends and the process continues
    }
  }  // destroys the captures before the thread counts as ended
  alive_count.get().fetch_sub(1);
  return nullptr;
}

}  // namespace

Result<Worker> Worker::start(std::string name, std::function<void()> body, Bytes stack) {
  if (name.size() > 15) name.resize(15);
  auto task = std::make_unique<Task>(Task{name, std::move(body)});
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  int refused = stack.count == 0 ? 0 : pthread_attr_setstacksize(&attributes, stack.count);
  pthread_t thread{};
  alive_count.get().fetch_add(1);
  if (refused == 0) {
    const SignalsBlocked blocked;
    refused = pthread_create(&thread, &attributes, run_task, task.get());
  }
  pthread_attr_destroy(&attributes);
  if (refused != 0) {
    alive_count.get().fetch_sub(1);
    return Error(Errc::unavailable,
                 text("Thread '{}' cannot be started: {}.", name, std::generic_category().message(refused)),
                 NativeError{"pthread_create", refused, ""});
  }
  (void)task.release();  // the thread owns it now
  return Worker(thread);
}

Worker::~Worker() {
  if (!thread_ || origin_.is_inherited()) return;
  if (pthread_equal(*thread_, pthread_self()) != 0) {
    pthread_detach(*thread_);
  } else {
    pthread_join(*thread_, nullptr);
  }
}

namespace {

/// The stack of a call: memory of the system, used as it is needed, above a page that cannot be
/// accessed.
class OwnStack {
 public:
  explicit OwnStack(std::size_t bytes)
      : bytes_(bytes + page),
        memory_(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0)) {
    if (*this) ::mprotect(memory_, page, PROT_NONE);
  }
  OwnStack(const OwnStack&) = delete;
  ~OwnStack() {
    if (*this) ::munmap(memory_, bytes_);
  }
  explicit operator bool() const noexcept { return memory_ != MAP_FAILED; }

  /// Calls `body` on this stack.
  void call(const std::function<void()>& body) noexcept {
    ucontext_t inside{}, caller{};
    ::getcontext(&inside);
    inside.uc_stack.ss_sp = memory_;
    inside.uc_stack.ss_size = bytes_;
    inside.uc_link = &caller;
    // A context takes its arguments as ints.
    const auto address = reinterpret_cast<std::uintptr_t>(&body);
    ::makecontext(&inside, reinterpret_cast<void (*)()>(&enter), 2, static_cast<unsigned>(address >> 32),
                  static_cast<unsigned>(address));
    ::swapcontext(&caller, &inside);
  }

 private:
  static constexpr std::size_t page = 64 << 10;  // the largest of a supported system
  static void enter(unsigned high, unsigned low) noexcept {
    const std::uintptr_t address = std::uintptr_t{high} << 32 | low;
    (*reinterpret_cast<const std::function<void()>*>(address))();
  }

  const std::size_t bytes_;
  void* const memory_;
};

}  // namespace

Result<void> call_on_stack(Bytes stack, std::string name, const std::function<void()>& body) {
  auto started = Worker::start(std::move(name), body, stack);
  if (started) return {};  // its destructor waits for the end
  const auto& native = started.error().native();
  if (!native || native->number != EAGAIN) return std::move(started).error();
  const CancellationHeld held;
  const DefaultFloatEnvironment environment;
  if (stack.count == 0) return body(), Result<void>();
  OwnStack own(stack.count);
  if (!own) return std::move(started).error();
  own.call(body);
  return {};
}

int Worker::alive() noexcept { return alive_count.get().load(); }
bool Worker::inside() noexcept { return is_worker; }

void give_way() noexcept {
  // On Linux this affects only the calling thread: setpriority(2), "C library/kernel differences".
  (void)::setpriority(PRIO_PROCESS, 0, std::min(::getpriority(PRIO_PROCESS, 0) + 10, 19));
}

}  // namespace wye::base
