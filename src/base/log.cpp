#include <wye/base/log.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <utility>

#include "base/cancellation.hpp"
#include "base/logger.hpp"
#include "base/text.hpp"
#include "base/write_signals.hpp"

namespace wye::inline v0 {
namespace {

constexpr std::array levels{LogLevel::trace,   LogLevel::debug, LogLevel::info,
                            LogLevel::warning, LogLevel::error, LogLevel::off};

Result<LogLevel> parse_level(std::string_view word) {
  for (LogLevel level : levels) {
    if (word == name(level)) return level;
  }
  return Error(Errc::invalid_argument,
               base::text("Log level ('{}') is none of trace, debug, info, warning, error, off.", word));
}

}  // namespace

std::string_view name(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::trace: return "trace";
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    case LogLevel::error: return "error";
    case LogLevel::off: return "off";
  }
  return "unknown";
}

LogSink log_to_stderr() {
  return [](const LogRecord& record) {
    base::write_to_stderr(base::text("wye {} {}: {}\n", name(record.level), record.room, record.text));
  };
}

namespace base {

void write_to_stderr(const std::string& line) {
  const WriteSignalsBlocked blocked;
  std::fwrite(line.data(), 1, line.size(), stderr);  // one call, so that the lines of threads do not mix
}

Result<LogFilter> LogFilter::parse(std::string_view text) {
  LogFilter filter;
  bool level_given = false;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view word = text.substr(at, comma - at);
    at = comma + 1;

    const std::size_t equals = word.find('=');
    const bool names_room = equals != word.npos;
    Result<LogLevel> level = parse_level(names_room ? word.substr(equals + 1) : word);
    if (!level)
      return std::move(level).error().with_context(base::text("while reading log filter '{}'", text));
    const std::string_view room = names_room ? word.substr(0, equals) : std::string_view();
    if (names_room && room.empty()) {
      return Error(Errc::invalid_argument,
                   base::text("Log filter ('{}') has no room name before the '=' of '{}'.", text, word));
    }
    const bool again =
        names_room ? !filter.rooms.emplace(room, *level).second : std::exchange(level_given, true);
    if (again) {
      return Error(Errc::invalid_argument, base::text("Log filter ('{}') gives two levels for {}{}.", text,
                                                      names_room ? "room " : "all rooms", room));
    }
    if (!names_room) filter.level = *level;
  }
  return filter;
}

struct Logger::State {
  LogSink sink;
  LogFilter filter;
  std::atomic<bool> sink_failed{false};
};

struct Logger::Sink {
  Logger logger;
  void operator()(const LogRecord& record) const { logger.write(record.level, record.room, record.text); }
};

LogSink Logger::sink() const { return state_ ? LogSink(Sink{*this}) : LogSink(); }

Logger::Logger(LogSink sink) {
  if (const Sink* const of_logger = sink.target<Sink>())
    *this = of_logger->logger;
  else
    *this = Logger(std::move(sink), {.level = LogLevel::trace, .rooms = {}});
}

Logger::Logger(LogSink sink, LogFilter filter) {
  if (!sink) return;
  state_ = std::make_shared<State>();
  state_->sink = std::move(sink);
  state_->filter = std::move(filter);
}

bool Logger::wants(LogLevel level, std::string_view room) const noexcept {
  if (!state_ || level == LogLevel::off || state_->sink_failed.load(std::memory_order_relaxed)) return false;
  const auto found = state_->filter.rooms.find(room);
  return level >= (found == state_->filter.rooms.end() ? state_->filter.level : found->second);
}

void Logger::write(LogLevel level, std::string_view room, std::string_view text) const noexcept {
  if (!wants(level, room)) return;
  const CancellationHeld held;
  try {
    state_->sink(LogRecord{level, room, text});
  } catch (...) {
    state_->sink_failed.store(true, std::memory_order_relaxed);
  }
}

}  // namespace base
}  // namespace wye
