#pragma once
/// Stops threads at a point that a test opens.
#include <wye/base/clock.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace wye::test {

/// A named point at which threads park until the test opens it. Once it is open, threads pass.
/// Threads: thread-safe.
class StopPoint {
 public:
  explicit StopPoint(std::string name = "the point") : name_(std::move(name)) {}
  StopPoint(const StopPoint&) = delete;  // threads are parked in it

  /// Parks the calling thread until the point is open.
  void pass() {
    std::unique_lock lock(mutex_);
    ++reached_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_open_; });
    ++passed_;
    changed_.notify_all();
  }
  /// Waits until `threads` calls of `pass` have begun. Throws if they have not within a minute.
  void await(int threads = 1) { await_count(reached_, threads, "reached"); }
  /// Waits until `threads` calls of `pass` have returned, or are about to.
  void await_passed(int threads = 1) { await_count(passed_, threads, "passed"); }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  bool is_open() const {
    const std::lock_guard lock(mutex_);
    return is_open_;
  }
  /// Returns the calls of `pass` that have begun.
  int reached() const {
    const std::lock_guard lock(mutex_);
    return reached_;
  }

 private:
  void await_count(const int& count, int threads, const char* done) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::minutes(1), [&] { return count >= threads; }))
      throw std::runtime_error(std::to_string(count) + " of " + std::to_string(threads) + " threads have " +
                               done + " '" + name_ + "' within a minute.");
  }
  const std::string name_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int reached_ = 0, passed_ = 0;
  bool is_open_ = false;
};

}  // namespace wye::test
