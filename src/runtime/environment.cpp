#include "runtime/environment.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/logger.hpp"
#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace runtime {
namespace {

Error refuse(const char* variable, std::string_view value, std::string_view expected) {
  return Error(Errc::invalid_argument,
               base::text("Environment variable {} ('{}') is not {}.", variable, value, expected));
}

Error beyond(const char* variable, std::string_view value, std::string_view limit) {
  return Error(Errc::invalid_argument,
               base::text("Environment variable {} ('{}') exceeds the limit ({}).", variable, value, limit));
}

struct Unit {
  std::string_view name;
  double factor;
};
/// Reads a number followed by one of the `units`, or by nothing, which means the first of them.
/// Errors: invalid_argument: the text is not such a quantity (`expected`), or is `end` or more.
Result<double> quantity(const char* variable, std::string_view text, std::initializer_list<Unit> units,
                        double end, std::string_view limit, std::string_view expected) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = !text.empty() && text.front() >= '0' && text.front() <= '9';  // no sign, inf or nan
  if (!is_number || error == std::errc::invalid_argument) return refuse(variable, text, expected);
  std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const Unit& known : units) {
    if (unit != known.name && !(unit.empty() && &known == units.begin())) continue;
    if (error == std::errc::result_out_of_range && text.find("e-") == text.npos)
      return beyond(variable, text, limit);
    if (!(number * known.factor < end)) return beyond(variable, text, limit);
    return number * known.factor;
  }
  return refuse(variable, text, expected);
}

/// Reads digits and nothing else.
Result<std::uint32_t> whole(const char* variable, std::string_view value, std::string_view digits,
                            std::string_view expected) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc::invalid_argument || end != digits.data() + digits.size())
    return refuse(variable, value, expected);
  if (error == std::errc::result_out_of_range)
    return beyond(variable, value, std::to_string(std::numeric_limits<std::uint32_t>::max()));
  return number;
}

Result<void> read(const char* variable, std::string_view text, std::uint32_t& out) {
  const auto number = whole(variable, text, text, "a whole number");
  if (!number) return number.error();
  out = *number;
  return {};
}

Result<void> read(const char* variable, std::string_view text, Bytes& out) {
  std::uint64_t exact = 0;  // more digits than a double has
  if (const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exact);
      error == std::errc() && end == text.data() + text.size()) {
    out = Bytes{exact};
    return {};
  }
  constexpr double end = 18446744073709551616.0;  // 2^64
  const auto bytes =
      quantity(variable, text, {{"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}}, end,
               "2^64 - 1 bytes", "a number of bytes such as 536870912 or 512MiB");
  if (!bytes) return bytes.error();
  out = Bytes{static_cast<std::uint64_t>(*bytes)};
  return {};
}

Result<void> read(const char* variable, std::string_view text, Duration& out) {
  const auto seconds = quantity(variable, text, {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"min", 60}}, 9e9,
                                "9,000,000,000 s", "a number of seconds such as 5 or 500ms");
  if (!seconds) return seconds.error();
  out = Duration(static_cast<Duration::rep>(*seconds * 1e9));
  return {};
}

Result<void> read(const char* variable, std::string_view text, bool& out) {
  if (text != "0" && text != "1") return refuse(variable, text, "0 or 1");
  out = text == "1";
  return {};
}

Result<void> read(const char* variable, std::string_view text, Fallback& out) {
  constexpr std::array<std::pair<std::string_view, Fallback>, 3> words{
      {{"allow", Fallback::allow}, {"warn", Fallback::warn}, {"forbid", Fallback::forbid}}};
  for (const auto& [word, value] : words)
    if (text == word) return out = value, Result<void>();
  return refuse(variable, text, "allow, warn or forbid");
}

Result<void> read(const char* variable, std::string_view text, Isolation& out) {
  if (text != "shared" && text != "partition") return refuse(variable, text, "shared or partition");
  out = text == "shared" ? Isolation::shared : Isolation::partition;
  return {};
}

Result<void> read(const char* variable, std::string_view text, Partition& out) {
  const bool is_share = text.ends_with('%');
  const std::string_view number = is_share ? text.substr(0, text.size() - 1) : text;
  constexpr std::string_view expected = "a number of multiprocessors such as 32, or a share from 1% to 100%";
  const auto value = whole(variable, text, number, expected);
  if (!value) return value.error();
  if (*value == 0 || (is_share && *value > 100)) return refuse(variable, text, expected);
  out = is_share ? Partition{.percent = *value} : Partition{.multiprocessors = *value};
  return {};
}

Result<void> read(const char* variable, std::string_view text, std::vector<std::string>& out) {
  out.clear();
  for (std::size_t first = 0; first <= text.size();) {
    const std::size_t last = std::min(text.find(',', first), text.size());
    if (last == first) return refuse(variable, text, "a list of names such as vulkan,cpu");
    out.emplace_back(text.substr(first, last - first));
    first = last + 1;
  }
  return {};
}

Result<void> read(const char*, std::string_view text, std::string& out) { return out = text, Result<void>(); }

/// What the host set, else what the variable says, else what is there.
template <class T>
Result<void> fill(T& out, std::optional<T> set, const Environment& environment, const char* variable) {
  if (set) return out = std::move(*set), Result<void>();
  if (const auto value = environment(variable); value && !value->empty()) return read(variable, *value, out);
  return {};
}

/// Where kernels are kept: what the host or the operator named, else the user's place for caches. Paths there that are
/// not absolute are ignored, as the XDG Base Directory Specification says.
void choose_directory(Resolved& all, std::optional<std::string> set, const Environment& environment) {
  std::string& directory = all.cache.directory;
  if (set) {
    directory = std::move(*set);
    return;
  }
  if (const auto named = environment("WYE_CACHE_DIR"); named && !named->empty()) {
    if (*named != "none") directory = *named;
    return;
  }
  const auto absolute = [&](const char* variable) {
    const auto value = environment(variable);
    return value && value->starts_with('/') ? *value : std::string();
  };
  all.is_default_directory = true;
  if (const std::string caches = absolute("XDG_CACHE_HOME"); !caches.empty())
    directory = caches + "/wye";
  else if (const std::string home = absolute("HOME"); !home.empty())
    directory = home + "/.cache/wye";
}

}  // namespace

std::optional<std::string> process_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

Result<Resolved> resolve(RuntimeOptions options, const Environment& environment) {
  Resolved all;
  const std::array filled{
      fill(all.pool.backends, std::move(options.backends), environment, "WYE_BACKENDS"),
      fill(all.pool.lanes_per_device, options.lanes_per_device, environment, "WYE_LANES"),
      fill(all.pool.lane_memory, options.lane_memory, environment, "WYE_LANE_MEMORY"),
      fill(all.pool.lease_timeout, options.lease_timeout, environment, "WYE_LEASE_TIMEOUT"),
      fill(all.pool.cpu_threads, options.cpu_threads, environment, "WYE_CPU_THREADS"),
      fill(all.pool.validate_driver, options.validate_driver, environment, "WYE_VALIDATE"),
      fill(all.pool.cuda_driver, std::move(options.cuda_driver), environment, "WYE_CUDA_DRIVER"),
      fill(all.pool.isolation, options.isolation, environment, "WYE_ISOLATION"),
      fill(all.pool.partition, options.partition, environment, "WYE_PARTITION"),
      fill(all.pool.kept_memory, options.kept_memory, environment, "WYE_KEPT_MEMORY"),
      fill(all.hot_reload, options.hot_reload, environment, "WYE_HOT_RELOAD"),
      fill(all.cache.kernels, options.cached_kernels, environment, "WYE_CACHED_KERNELS"),
      fill(all.cache.memory, options.cache_memory, environment, "WYE_CACHE_MEMORY"),
      fill(all.cache.disk, options.cache_disk, environment, "WYE_CACHE_DISK"),
      fill(all.cache.durable, options.cache_durable, environment, "WYE_CACHE_DURABLE"),
      fill(all.cache.warm_compilers, options.warm_compilers, environment, "WYE_WARM_COMPILERS"),
      fill(all.scheduler.concurrent_jobs, options.concurrent_jobs, environment, "WYE_JOBS"),
      fill(all.scheduler.job_time_limit, options.job_time_limit, environment, "WYE_JOB_TIME_LIMIT"),
      fill(all.scheduler.fallback, options.fallback, environment, "WYE_FALLBACK"),
      fill(all.scheduler.measure_variants, options.measure_variants, environment, "WYE_MEASURE_VARIANTS"),
  };
  for (const Result<void>& one : filled)
    if (!one) return one.error();
  constexpr Duration unset{-1};
  Duration close_timeout = unset;
  if (auto ok = fill(close_timeout, options.close_timeout, environment, "WYE_CLOSE_TIMEOUT"); !ok)
    return std::move(ok).error();
  if (options.close_timeout || close_timeout != unset)
    all.pool.close_timeout = all.scheduler.close_timeout = close_timeout;
  choose_directory(all, std::move(options.cache_directory), environment);
  all.pool.adopt = std::move(options.adopt);
  all.on_reload = std::move(options.on_reload);
  all.cache.bundles = std::move(options.cache_bundles);
  all.cache.on_build = std::move(options.on_build);
  all.scheduler.preferences = std::move(options.preferences);
  all.pool.clock = all.cache.clock = all.scheduler.clock = options.clock;

  std::optional<std::string> levels = std::move(options.log_level);
  LogSink sink = std::move(options.log);
  if (!levels) {
    levels = environment("WYE_LOG");
    if (levels && levels->empty()) levels.reset();
    if (levels && !sink) sink = log_to_stderr();  // the operator asked, and the host has no place for it
  }
  base::LogFilter filter;
  if (levels) {
    auto parsed = base::LogFilter::parse(*levels);
    if (!parsed)
      return std::move(parsed).error().with_context(
          "while reading the log level (option log_level or WYE_LOG)");
    filter = std::move(*parsed);
  }
  if (sink) {
    const base::Logger logger(std::move(sink), std::move(filter));
    all.pool.log = all.cache.log = all.scheduler.log = [logger](const LogRecord& record) {
      logger.write(record.level, record.room, record.text);
    };
  }
  return all;
}

}  // namespace runtime

std::string user_cache_directory() {
  runtime::Resolved all;
  runtime::choose_directory(all, std::nullopt, runtime::process_environment);
  return all.cache.directory;
}

}  // namespace v0
}  // namespace wye
