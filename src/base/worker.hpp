#pragma once
/// Threads of the library: named, joined, counted.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>

#include <pthread.h>

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/process.hpp"

namespace wye {
inline namespace v0 {
namespace base {

/// One thread that runs one function and is joined when its owner ends.
class Worker {
 public:
  /// Starts a thread named `name` (cut to 15 characters, the system's limit). Signals are blocked in it: they
  /// are the host's. `body` must not throw: if it does, its thread ends. Its stack is what the system gives threads, or `stack`.
  /// Errors: unavailable, with what the system said.
  static Result<Worker> start(std::string name, std::function<void()> body, Bytes stack = {});

  Worker(Worker&& other) noexcept
      : thread_(std::exchange(other.thread_, std::nullopt)), origin_(other.origin_) {}
  Worker& operator=(Worker&&) = delete;
  /// Joins. Detaches if the thread ends its own owner. Does nothing in a child of `fork`, which has no such thread.
  ~Worker();

  /// Threads of wye alive in this process.
  static int alive() noexcept;

 private:
  explicit Worker(pthread_t thread) : thread_(thread) {}
  std::optional<pthread_t> thread_;
  Origin origin_;
};

/// What `work` gives, a Result, on a thread of its own with a stack of `stack`: for what calls itself as deep as its input is
/// nested, when the caller's stack may be small.
/// Errors: unavailable (no thread can be started).
/// Cost:   some 30 us; of the stack, what is used.
template <class F>
std::invoke_result_t<F&> on_stack(Bytes stack, std::string name, F work) {
  std::optional<std::invoke_result_t<F&>> result;
  std::exception_ptr thrown;
  {
    const auto body = [&] {
      try {
        result.emplace(work());
      } catch (...) {
        thrown = std::current_exception();
      }
    };
    const auto worker = Worker::start(std::move(name), body, stack);
    if (!worker) return worker.error();
  }
  if (thrown) std::rethrow_exception(thrown);
  return *std::move(result);
}

/// Lets the calling thread have what time others leave: a tenth of theirs where they leave none. It cannot be
/// undone.
void give_way() noexcept;

}  // namespace base
}  // namespace v0
}  // namespace wye
