#include <wye/base/log.hpp>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/logger.hpp"
#include "support/catch.hpp"

using wye::LogLevel;
using wye::LogRecord;
using wye::base::LogFilter;
using wye::base::Logger;

TEST_CASE("a log filter is a level and levels of rooms", "[base]") {
  const auto simple = LogFilter::parse("info");
  REQUIRE(simple);
  CHECK(simple->level == LogLevel::info);
  CHECK(simple->rooms.empty());

  const auto full = LogFilter::parse("error,cache=debug,vulkan=trace,pool=off");
  REQUIRE(full);
  CHECK(full->level == LogLevel::error);
  CHECK(full->rooms.size() == 3);
  CHECK(full->rooms.at("cache") == LogLevel::debug);
  CHECK(full->rooms.at("vulkan") == LogLevel::trace);
  CHECK(full->rooms.at("pool") == LogLevel::off);

  const auto room_only = LogFilter::parse("cache=debug");
  REQUIRE(room_only);
  CHECK(room_only->level == LogFilter().level);
}

TEST_CASE("a malformed log filter is refused, with the mistake", "[base]") {
  struct Case {
    const char* text;
    const char* sentence;
  };
  const Case cases[] = {
      {"loud", "Log level ('loud') is none of trace, debug, info, warning, error, off."},
      {"", "Log level ('') is none of trace, debug, info, warning, error, off."},
      {"info,", "Log level ('') is none of trace, debug, info, warning, error, off."},
      {"Info", "Log level ('Info') is none of trace, debug, info, warning, error, off."},
      {"cache=", "Log level ('') is none of trace, debug, info, warning, error, off."},
      {"cache=debug=info", "Log level ('debug=info') is none of trace, debug, info, warning, error, off."},
      {"=debug", "Log filter ('=debug') has no room name before the '=' of '=debug'."},
      {"info,debug", "Log filter ('info,debug') gives two levels for all rooms."},
      {"pool=info,pool=debug", "Log filter ('pool=info,pool=debug') gives two levels for room pool."},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const auto filter = LogFilter::parse(c.text);
    REQUIRE_FALSE(filter);
    CHECK(filter.error() == wye::Errc::invalid_argument);
    CHECK(filter.error().sentence() == c.sentence);
  }
}

TEST_CASE("a logger writes the messages that pass its filter", "[base]") {
  std::vector<std::string> lines;
  const Logger logger(
      [&](const LogRecord& record) {
        lines.push_back(std::string(name(record.level)) + " " + std::string(record.room) + " " +
                        std::string(record.text));
      },
      *LogFilter::parse("warning,cache=debug,pool=off"));
  logger.write(LogLevel::info, "scheduler", "quiet");
  logger.write(LogLevel::warning, "scheduler", "late");
  logger.write(LogLevel::debug, "cache", "hit");
  logger.write(LogLevel::trace, "cache", "quiet");
  logger.write(LogLevel::error, "pool", "quiet");
  logger.write(LogLevel::off, "cache", "quiet");
  CHECK(lines == std::vector<std::string>{"warning scheduler late", "debug cache hit"});
  CHECK(logger.wants(LogLevel::debug, "cache"));
  CHECK_FALSE(logger.wants(LogLevel::debug, "scheduler"));
  CHECK_FALSE(logger.wants(LogLevel::error, "pool"));
}

TEST_CASE("a logger without a sink wants nothing", "[base]") {
  CHECK_FALSE(Logger().wants(LogLevel::error, "pool"));
  CHECK_FALSE(Logger(nullptr, {}).wants(LogLevel::error, "pool"));
  Logger().write(LogLevel::error, "pool", "dropped");
}

TEST_CASE("a sink that throws is not called again", "[base]") {
  int asked = 0;
  const Logger logger(
      [&](const LogRecord&) {
        ++asked;
        throw std::runtime_error("full");
      },
      {});
  const Logger copy = logger;
  logger.write(LogLevel::error, "pool", "one");
  copy.write(LogLevel::error, "pool", "two");
  CHECK(asked == 1);
  CHECK_FALSE(copy.wants(LogLevel::error, "pool"));
}

TEST_CASE("threads may log at once", "[base]") {
  std::atomic<int> count{0};
  const Logger logger([&](const LogRecord&) { ++count; }, {});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) logger.write(LogLevel::error, "pool", "x");
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(count == 4000);
}
