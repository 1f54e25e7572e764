#pragma once
/// The log port. wye says nothing unless a host gives it a sink.
#include <wye/base/config.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace wye {
inline namespace v0 {

enum class LogLevel : std::uint8_t { trace, debug, info, warning, error, off };

/// "warning".
WYE_API std::string_view name(LogLevel level) noexcept;

/// One message. Views are valid during the call only.
struct LogRecord {
  LogLevel level = LogLevel::info;
  std::string_view room;  ///< who says it: "scheduler", "vulkan"
  std::string_view text;
};

/// Where messages go. Called from any thread, never under a lock of wye's; it must not call back into wye.
using LogSink = std::function<void(const LogRecord&)>;

/// A sink that writes "wye warning scheduler: text" lines to the process's standard error, for programs that
/// want one.
WYE_API LogSink log_to_stderr();

}  // namespace v0
}  // namespace wye
