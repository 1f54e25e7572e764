#pragma once
/// The threads of the library: named, joined, counted.
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

namespace wye::inline v0::base {

/// One thread that runs one function. Its owner joins it on destruction.
class Worker {
 public:
  /// Starts a thread named `name` (cut to 15 characters, the system's limit). It blocks signals,
  /// because they belong to the application. `body` must not throw; if it does, its thread ends.
  /// `stack` is the size of its stack; 0 means the system's default.
  /// Errors: unavailable, with the system's message.
  static Result<Worker> start(std::string name, std::function<void()> body, Bytes stack = {});

  Worker(Worker&& other) noexcept
      : thread_(std::exchange(other.thread_, std::nullopt)), origin_(other.origin_) {}
  Worker& operator=(Worker&&) = delete;
  /// Joins. Detaches if the thread ends its own owner. Does nothing in a child of `fork`, which has
  /// no such thread.
  ~Worker();

  /// Returns the number of wye's threads in this process.
  static int alive() noexcept;
  /// Returns whether the calling thread is one of wye's.
  static bool inside() noexcept;

 private:
  explicit Worker(pthread_t thread) : thread_(thread) {}
  std::optional<pthread_t> thread_;
  Origin origin_;
};

/// Calls `body`, which must not throw, as `on_stack` does.
Result<void> call_on_stack(Bytes stack, std::string name, const std::function<void()>& body);

/// Runs `work` on a new thread with a stack of `stack` bytes and returns its Result. Recursive
/// functions need it for deeply nested input if the caller's stack may be small. If the system has
/// no thread left, `work` runs on the calling thread, which uses such a stack meanwhile.
/// Errors: unavailable (the system has no memory for the stack either, or refuses its size).
/// Cost:   about 30 us, and the used part of the stack.
template <class F>
std::invoke_result_t<F&> on_stack(Bytes stack, std::string name, F work) {
  std::optional<std::invoke_result_t<F&>> result;
  std::exception_ptr thrown;
  const auto body = [&] {
    try {
      result.emplace(work());
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  if (auto called = call_on_stack(stack, std::move(name), body); !called) return std::move(called).error();
  if (thrown) std::rethrow_exception(thrown);
  return *std::move(result);
}

/// Lowers the priority of the calling thread for its lifetime. It gets the time that other threads
/// leave, and at least a tenth of theirs.
void give_way() noexcept;

}  // namespace wye::base
