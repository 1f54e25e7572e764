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

/// Lets the calling thread have what time others leave: a tenth of theirs where they leave none. It cannot be
/// undone.
void give_way() noexcept;

}  // namespace base
}  // namespace v0
}  // namespace wye
