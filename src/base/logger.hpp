#pragma once
/// What rooms log with.
#include <wye/base/log.hpp>
#include <wye/base/result.hpp>

#include <map>
#include <memory>
#include <string>

namespace wye {
inline namespace v0 {
namespace base {

/// Which levels reach the sink, by room.
struct LogFilter {
  LogLevel level = LogLevel::warning;
  std::map<std::string, LogLevel, std::less<>> rooms;
  /// Parses "info" or "warning,cache=debug,vulkan=trace".
  /// Errors: invalid_argument, naming the word and the levels there are.
  static Result<LogFilter> parse(std::string_view text);
};

/// A sink with its filter; shared by all rooms of one runtime. The default one says nothing.
/// Threads: thread-safe. A sink that throws is caught and not asked again.
class Logger {
 public:
  Logger() = default;
  Logger(LogSink sink, LogFilter filter);
  bool wants(LogLevel level, std::string_view room) const noexcept;
  void write(LogLevel level, std::string_view room, std::string_view text) const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace base
}  // namespace v0
}  // namespace wye
