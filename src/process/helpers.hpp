#pragma once
/// Threads beside a worker. For components of wye; not installed.
#include <wye/base/result.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace wye::inline v0::process {

/// Threads that work on one range of numbers at a time, beside the thread that owns them.
/// Threads: one thread at a time.
class WYE_API Helpers {
 public:
  /// Errors: unavailable (no thread), with the system's message.
  static Result<Helpers> start(const std::string& name, unsigned threads);
  Helpers(Helpers&&) noexcept;
  Helpers& operator=(Helpers&&) = delete;
  /// Waits for the calls that run, and joins the threads. The other numbers of the range are not
  /// called.
  ~Helpers();

  /// Has the threads call `body(i)` for each i below `count`, and returns at once. `body` must not
  /// throw. An earlier range must be complete.
  void begin(std::size_t count, std::function<void(std::size_t)> body);
  /// Calls the body too, until the range is complete.
  void finish() noexcept;

 private:
  struct State;
  explicit Helpers(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace wye::process
