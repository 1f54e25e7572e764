#pragma once
/// A thread that waits for descriptors.
#include <wye/base/result.hpp>

#include <functional>
#include <memory>
#include <string>

#include "base/worker.hpp"

namespace wye::inline v0::base {

/// Calls functions when descriptors become readable, on one thread.
/// Threads: thread-safe.
class DescriptorWatch {
 public:
  /// Errors: unavailable, with the system's message.
  static Result<DescriptorWatch> start(std::string thread_name);
  DescriptorWatch(DescriptorWatch&&) noexcept = default;
  DescriptorWatch& operator=(DescriptorWatch&&) = delete;
  /// Joins the thread.
  ~DescriptorWatch();

  /// Calls `is_readable` each time that the descriptor is readable or has ended, until it returns
  /// false. The descriptor must stay open until then, or until `remove` has returned.
  void add(int descriptor, std::function<bool()> is_readable);
  /// Ends the watch of a descriptor. A call of its function has returned afterwards. A descriptor
  /// that is not watched is no error.
  void remove(int descriptor) noexcept;

 private:
  struct State;
  DescriptorWatch(std::shared_ptr<State> state, Worker thread) noexcept;
  std::shared_ptr<State> state_;
  std::unique_ptr<Worker> thread_;
};

}  // namespace wye::base
