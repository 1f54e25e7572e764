#pragma once
/// The log port, and places in source text. wye writes no messages unless the application provides
/// a sink.
#include <wye/base/config.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace wye::inline v0 {

enum class LogLevel : std::uint8_t { trace, debug, info, warning, error, off };

/// Returns "warning".
WYE_API std::string_view name(LogLevel level) noexcept;

/// One message. Its views are valid only during the call of the sink.
struct LogRecord {
  LogLevel level = LogLevel::info;
  std::string_view room;  ///< the source of the message: "scheduler", "vulkan"
  std::string_view text;
};

/// A place in the source text of the application. std::source_location needs clang 16.
struct SourceLocation {
  /// As the compiler was given it. Valid until the process ends, or its library is unloaded.
  const char* file = "";
  std::uint32_t line = 0;

  /// Returns the place of the call. As a default argument of a function, the place of the call of
  /// that function.
  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          std::uint32_t line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

/// Receives messages. wye calls it from any thread and never under a lock. It must not call wye.
using LogSink = std::function<void(const LogRecord&)>;

/// Returns a sink that writes lines such as "wye warning scheduler: text" to the standard error of
/// the process.
WYE_API LogSink log_to_stderr();

}  // namespace wye
