#pragma once
/// The logger of the rooms.
#include <wye/base/log.hpp>
#include <wye/base/result.hpp>

#include <map>
#include <memory>
#include <string>

namespace wye::inline v0::base {

/// The lowest level that reaches the sink, for each room.
struct LogFilter {
  LogLevel level = LogLevel::warning;
  std::map<std::string, LogLevel, std::less<>> rooms;
  /// Parses "info" or "warning,cache=debug,vulkan=trace".
  /// Errors: invalid_argument, with the word and the known levels.
  static Result<LogFilter> parse(std::string_view text);
};

/// Writes a line to the standard error of the process.
void write_to_stderr(const std::string& line);

/// A sink with its filter, shared by all rooms of one runtime. The default logger writes nothing.
/// Threads: thread-safe. A sink that throws is not called again.
class Logger {
 public:
  Logger() = default;
  /// Writes records of all levels, or if `sink` is that of another logger, of the levels of that.
  explicit Logger(LogSink sink);
  Logger(LogSink sink, LogFilter filter);
  /// Returns a sink that writes to this logger; none if it writes nothing.
  LogSink sink() const;
  bool wants(LogLevel level, std::string_view room) const noexcept;
  void write(LogLevel level, std::string_view room, std::string_view text) const noexcept;

 private:
  struct State;
  struct Sink;
  std::shared_ptr<State> state_;
};

}  // namespace wye::base
