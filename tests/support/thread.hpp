#pragma once
/// A thread of a test that the test can see park.
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "support/await.hpp"

namespace wye::test {

/// Runs a function on a thread. The destructor joins it.
/// Threads: one thread at a time.
class Thread {
 public:
  template <class Body>
  explicit Thread(Body body)
      : thread_([this, body = std::move(body)]() mutable {
          id_ = ::gettid();
          body();
          has_ended_ = true;
        }) {}
  Thread(const Thread&) = delete;  // the thread has its address
  ~Thread() { join(); }

  void join() {
    if (thread_.joinable()) thread_.join();
  }
  bool has_ended() const { return has_ended_; }
  /// Waits until the thread sleeps in a call of the system, or has ended. It may still run again by
  /// itself, so a test that passes must not depend on this; it makes a mistake likely to be seen.
  void await_parked() const {
    await([this] { return has_ended_ || (id_ != 0 && state() == 'S'); });
  }

 private:
  /// Returns the state of the thread as the system shows it: "R" runs, "S" sleeps.
  char state() const {
    std::ifstream file("/proc/self/task/" + std::to_string(id_) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name_end = text.rfind(") ");
    return name_end == std::string::npos ? '?' : text[name_end + 2];
  }
  std::atomic<pid_t> id_{0};
  std::atomic<bool> has_ended_{false};
  std::thread thread_;
};

}  // namespace wye::test
