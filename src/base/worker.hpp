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
  /// Starts a thread named `name` (at most 15 characters are seen by the system). Signals are blocked in it: they are
  /// the host's.
  /// Errors: unavailable, with what the system said.
  static Result<Worker> start(std::string name, std::function<void()> body);

  Worker(Worker&&) noexcept = default;
  Worker& operator=(Worker&&) = delete;
  /// Joins.
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
