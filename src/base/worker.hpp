#pragma once
/// Threads of the library: named, joined, counted.
#include <wye/base/result.hpp>

#include <functional>
#include <string>
#include <thread>

namespace wye {
inline namespace v0 {
namespace base {

/// One thread that runs one function and is joined when its owner ends.
class Worker {
 public:
  /// Starts a thread named `name` (cut to 15 characters, the system's limit). Signals are blocked in it: they
  /// are the host's. `body` must not throw.
  /// Errors: unavailable, with what the system said.
  static Result<Worker> start(std::string name, std::function<void()> body);

  Worker(Worker&&) noexcept = default;
  Worker& operator=(Worker&&) = delete;
  /// Joins; detaches where the thread ends its own owner.
  ~Worker();

  /// Threads of wye alive in this process.
  static int alive() noexcept;

 private:
  explicit Worker(std::thread thread) : thread_(std::move(thread)) {}
  std::thread thread_;
};

}  // namespace base
}  // namespace v0
}  // namespace wye
