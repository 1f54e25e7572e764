#pragma once
/// Forwards messages of the driver's checks to the log sink.
#include <wye/base/log.hpp>

#include <string>
#include <utility>
#include <vector>

namespace wye::inline v0::vulkan {

/// Threads: thread-safe. A sink that throws is ignored.
class Messages {
 public:
  explicit Messages(LogSink sink) : sink_(std::move(sink)) {}
  void log(LogLevel level, std::string text) noexcept;

 private:
  friend class MessageHold;
  LogSink sink_;
};

/// Defers the messages of this thread until it ends. Used while a lock is held.
/// Threads: one thread at a time.
class MessageHold {
 public:
  explicit MessageHold(Messages* messages);
  ~MessageHold();
  MessageHold(const MessageHold&) = delete;
  MessageHold& operator=(const MessageHold&) = delete;

 private:
  friend class Messages;
  Messages* messages_;  // null: there are no messages to defer
  std::vector<std::pair<LogLevel, std::string>> kept_;
};

}  // namespace wye::vulkan
