#pragma once
/// What the driver's own checks say, on its way to the host's sink.
#include <wye/base/log.hpp>

#include <string>
#include <utility>
#include <vector>

namespace wye {
inline namespace v0 {
namespace vulkan {

/// Threads: thread-safe. A sink that throws is ignored.
class Messages {
 public:
  explicit Messages(LogSink sink) : sink_(std::move(sink)) {}
  void say(LogLevel level, std::string text) noexcept;

 private:
  friend class MessageHold;
  LogSink sink_;
};

/// Keeps what is said on this thread until it ends: for as long as a lock is held.
/// Threads: one thread at a time.
class MessageHold {
 public:
  explicit MessageHold(Messages* messages);
  ~MessageHold();
  MessageHold(const MessageHold&) = delete;
  MessageHold& operator=(const MessageHold&) = delete;

 private:
  friend class Messages;
  Messages* messages_;  // null: nothing is ever said
  std::vector<std::pair<LogLevel, std::string>> kept_;
};

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
