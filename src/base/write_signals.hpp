#pragma once
/// Signals that the system sends to a thread because of a write.
#include <signal.h>
#include <time.h>

#include <cerrno>
#include <initializer_list>

namespace wye::inline v0::base {

/// While it exists, a write of this thread fails with EFBIG (beyond RLIMIT_FSIZE) or EPIPE (no
/// process reads the pipe). SIGXFSZ and SIGPIPE, which would end the process, are not delivered.
/// Signals that were pending before stay pending.
/// Threads: used by one thread.
/// Cost:    five system calls.
class WriteSignalsBlocked {
 public:
  WriteSignalsBlocked() noexcept {
    sigset_t pending;
    sigemptyset(&pending);
    ::sigpending(&pending);
    sigset_t both;
    sigemptyset(&both);
    sigemptyset(&ours_);
    for (const int number : {SIGXFSZ, SIGPIPE}) {
      sigaddset(&both, number);
      if (sigismember(&pending, number) != 1) sigaddset(&ours_, number);
    }
    ::pthread_sigmask(SIG_BLOCK, &both, &before_);
  }
  WriteSignalsBlocked(const WriteSignalsBlocked&) = delete;  // restores once
  ~WriteSignalsBlocked() {
    const int number = errno;
    // The system sends them to the writing thread, so a signal that is pending only now comes from
    // its write.
    const timespec at_once{};
    while (::sigtimedwait(&ours_, nullptr, &at_once) > 0 || errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = number;
  }

 private:
  sigset_t ours_, before_;
};

}  // namespace wye::base
