#include "runtime/environment.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/logger.hpp"
#include "base/text.hpp"

namespace wye::inline v0 {
namespace runtime {
namespace {

Error invalid_value(const char* variable, std::string_view value, std::string_view expected) {
  return Error(Errc::invalid_argument,
               base::text("Environment variable {} ('{}') is not {}.", variable, value, expected));
}

Error exceeds_limit(const char* variable, std::string_view value, std::string_view limit) {
  return Error(Errc::invalid_argument,
               base::text("Environment variable {} ('{}') exceeds the limit ({}).", variable, value, limit));
}

struct Unit {
  std::string_view name;
  double factor;
};
/// Reads a number with one of the `units`; without a unit, the first one applies.
/// Errors: invalid_argument: the text is not such a quantity (`expected`), or is `end` or more.
Result<double> read_quantity(const char* variable, std::string_view text, std::initializer_list<Unit> units,
                             double end, std::string_view limit, std::string_view expected) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = !text.empty() && text.front() >= '0' && text.front() <= '9';  // no sign, inf or nan
  if (!is_number || error == std::errc::invalid_argument) return invalid_value(variable, text, expected);
  std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const Unit& known : units) {
    if (unit != known.name && !(unit.empty() && &known == units.begin())) continue;
    if (error == std::errc::result_out_of_range && text.find("e-") == text.npos)
      return exceeds_limit(variable, text, limit);
    if (!(number * known.factor < end)) return exceeds_limit(variable, text, limit);
    return number * known.factor;
  }
  return invalid_value(variable, text, expected);
}

/// Reads digits and nothing else.
Result<std::uint32_t> read_digits(const char* variable, std::string_view value, std::string_view digits,
                                  std::string_view expected) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc::invalid_argument || end != digits.data() + digits.size())
    return invalid_value(variable, value, expected);
  if (error == std::errc::result_out_of_range)
    return exceeds_limit(variable, value, std::to_string(std::numeric_limits<std::uint32_t>::max()));
  return number;
}

Result<void> read(const char* variable, std::string_view text, std::uint32_t& out) {
  const auto number = read_digits(variable, text, text, "a whole number");
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
      read_quantity(variable, text, {{"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}}, end,
                    "2^64 - 1 bytes", "a number of bytes such as 536870912 or 512MiB");
  if (!bytes) return bytes.error();
  out = Bytes{static_cast<std::uint64_t>(*bytes)};
  return {};
}

Result<void> read(const char* variable, std::string_view text, Duration& out) {
  const auto seconds = read_quantity(variable, text, {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"min", 60}}, 9e9,
                                     "9,000,000,000 s", "a number of seconds such as 5 or 500ms");
  if (!seconds) return seconds.error();
  out = Duration(static_cast<Duration::rep>(std::llround(*seconds * 1e9)));
  return {};
}

Result<void> read(const char* variable, std::string_view text, bool& out) {
  if (text != "0" && text != "1") return invalid_value(variable, text, "0 or 1");
  out = text == "1";
  return {};
}

template <class T, std::size_t count>
using Words = std::array<std::pair<std::string_view, T>, count>;

constexpr Words<Fallback, 3> words_of(Fallback) {
  return {{{"allow", Fallback::allow}, {"warn", Fallback::warn}, {"forbid", Fallback::forbid}}};
}
constexpr Words<PlacementMode, 2> words_of(PlacementMode) {
  return {{{"learned", PlacementMode::learned}, {"table", PlacementMode::table}}};
}
constexpr Words<Isolation, 3> words_of(Isolation) {
  return {
      {{"shared", Isolation::shared}, {"partition", Isolation::partition}, {"device", Isolation::device}}};
}
constexpr Words<Qualification, 3> words_of(Qualification) {
  return {
      {{"stored", Qualification::stored}, {"again", Qualification::again}, {"never", Qualification::never}}};
}
constexpr Words<Share, 2> words_of(Share) {
  return {{{"process", Share::process}, {"machine", Share::machine}}};
}
template <class T>
concept HasWords = requires(T value) {
  words_of(value);
};

/// Reads one of the words of a type.
template <HasWords T>
Result<void> read(const char* variable, std::string_view text, T& out) {
  constexpr auto words = words_of(T{});
  std::string expected;
  for (std::size_t w = 0; w < words.size(); ++w) {
    if (text == words[w].first) return out = words[w].second, Result<void>();
    if (w != 0) expected += w + 1 < words.size() ? ", " : " or ";
    expected += words[w].first;
  }
  return invalid_value(variable, text, expected);
}

Result<void> read(const char* variable, std::string_view text, Partition& out) {
  const bool is_share = text.ends_with('%');
  const std::string_view number = is_share ? text.substr(0, text.size() - 1) : text;
  constexpr std::string_view expected = "a number of multiprocessors such as 32, or a share from 1% to 100%";
  const auto value = read_digits(variable, text, number, expected);
  if (!value) return value.error();
  if (*value == 0 || (is_share && *value > 100)) return invalid_value(variable, text, expected);
  out = is_share ? Partition{.percent = *value} : Partition{.multiprocessors = *value};
  return {};
}

Result<void> read(const char* variable, std::string_view text, std::vector<std::string>& out) {
  out.clear();
  for (std::size_t first = 0; first <= text.size();) {
    const std::size_t last = std::min(text.find(',', first), text.size());
    if (last == first) return invalid_value(variable, text, "a list of names such as vulkan,cpu");
    out.emplace_back(text.substr(first, last - first));
    first = last + 1;
  }
  return {};
}

Result<void> read(const char*, std::string_view text, std::string& out) { return out = text, Result<void>(); }

/// Sets `out` to the value of `variable`, if the variable is set and not empty.
template <class T>
Result<void> set(T& out, const Environment& environment, const char* variable) {
  if (const auto value = environment(variable); value && !value->empty()) return read(variable, *value, out);
  return {};
}
template <class T>
Result<void> set(std::optional<T>& out, const Environment& environment, const char* variable) {
  T value{};
  const auto text = environment(variable);
  if (!text || text->empty()) return {};
  if (auto ok = read(variable, *text, value); !ok) return ok;
  out = value;
  return {};
}

// The texts that `read` reads.
std::string write(std::uint32_t value) { return std::to_string(value); }
std::string write(Bytes value) { return std::to_string(value.count); }
std::string write(Duration value) {
  constexpr Duration longest = std::chrono::seconds(8'999'999'999);
  const Duration::rep ns = std::min(value, longest).count();
  return base::text("{}.{:03}us", ns / 1000, ns % 1000);
}
std::string write(bool value) { return value ? "1" : "0"; }
std::string write(const std::string& value) { return value; }
std::string write(const Partition& value) {
  return value.percent != 0 ? base::text("{}%", value.percent) : write(value.multiprocessors);
}
std::string write(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ",") + name;
  return list;
}
std::string write(HasWords auto value) {
  for (const auto& [word, known] : words_of(value))
    if (known == value) return std::string(word);
  return {};
}
template <class T>
std::string write(const std::optional<T>& option) {
  return option ? write(*option) : std::string();
}

/// Calls `call(option, variable)` for every option that a variable sets, other than the directory of
/// the cache and the log. `Options` is RuntimeOptions or const.
template <class Options, class Call>
void each_variable(Options& all, Call call) {
  call(all.pool.backends, "WYE_BACKENDS");
  call(all.pool.devices, "WYE_DEVICES");
  call(all.pool.lanes_per_device, "WYE_LANES");
  call(all.pool.slots, "WYE_SLOTS");
  call(all.pool.silicon_memory, "WYE_SILICON_MEMORY");
  call(all.pool.pool_memory, "WYE_POOL_MEMORY");
  call(all.pool.lane_memory, "WYE_LANE_MEMORY");
  call(all.pool.kept_memory, "WYE_KEPT_MEMORY");
  call(all.pool.pinned_memory, "WYE_PINNED_MEMORY");
  call(all.pool.poll_limit, "WYE_POLL_LIMIT");
  call(all.pool.lease_timeout, "WYE_LEASE_TIMEOUT");
  call(all.pool.cpu_threads, "WYE_CPU_THREADS");
  call(all.pool.isolation, "WYE_ISOLATION");
  call(all.pool.partition, "WYE_PARTITION");
  call(all.pool.validate_driver, "WYE_VALIDATE");
  call(all.pool.cuda_driver, "WYE_CUDA_DRIVER");
  call(all.pool.share, "WYE_SHARE");
  call(all.pool.share_folder, "WYE_SHARE_DIR");
  call(all.cache.memory, "WYE_CACHE_MEMORY");
  call(all.cache.kernels, "WYE_CACHED_KERNELS");
  call(all.cache.disk, "WYE_CACHE_DISK");
  call(all.cache.durable, "WYE_CACHE_DURABLE");
  call(all.cache.warm_compilers, "WYE_WARM_COMPILERS");
  call(all.scheduler.concurrent_jobs, "WYE_JOBS");
  call(all.scheduler.job_time_limit, "WYE_JOB_TIME_LIMIT");
  call(all.scheduler.fallback, "WYE_FALLBACK");
  call(all.scheduler.placement, "WYE_PLACEMENT");
  call(all.scheduler.measure_variants, "WYE_MEASURE_VARIANTS");
  call(all.qualification, "WYE_QUALIFICATION");
  call(all.hot_reload, "WYE_HOT_RELOAD");
  call(all.close_timeout, "WYE_CLOSE_TIMEOUT");
}

/// Returns the user's cache directory, or nothing. Paths that are not absolute are ignored, as the
/// XDG Base Directory Specification demands.
std::string default_directory(const Environment& environment) {
  const auto absolute = [&](const char* variable) {
    const auto value = environment(variable);
    return value && value->starts_with('/') ? *value : std::string();
  };
  if (const std::string caches = absolute("XDG_CACHE_HOME"); !caches.empty()) return caches + "/wye";
  if (const std::string home = absolute("HOME"); !home.empty()) return home + "/.cache/wye";
  return {};
}

void choose_directory(CacheOptions& cache, const Environment& environment) {
  const auto named = environment("WYE_CACHE_DIR");
  cache.require_directory = named && !named->empty();
  if (!cache.require_directory)
    cache.directory = default_directory(environment);
  else if (*named != "none")
    cache.directory = *named;
}

}  // namespace

std::optional<std::string> process_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

Result<RuntimeOptions> read_environment(const Environment& environment) {
  RuntimeOptions all;
  Result<void> read_all;
  each_variable(all, [&](auto& option, const char* variable) {
    if (read_all) read_all = set(option, environment, variable);
  });
  if (!read_all) return std::move(read_all).error();
  choose_directory(all.cache, environment);
  if (const auto levels = environment("WYE_LOG"); levels && !levels->empty()) {
    if (auto ok = base::LogFilter::parse(*levels); !ok)
      return std::move(ok).error().with_context("while reading the environment variable WYE_LOG");
    all.log_level = *levels;
    all.log = log_to_stderr();
  }
  return all;
}

Variables write_variables(const RuntimeOptions& options) {
  Variables variables;
  const RuntimeOptions defaults;
  std::map<std::string, std::string> of_defaults;
  each_variable(defaults,
                [&](const auto& option, const char* variable) { of_defaults[variable] = write(option); });
  each_variable(options, [&](const auto& option, const char* variable) {
    if (std::string value = write(option); value != of_defaults[variable])
      variables.emplace_back(variable, std::move(value));
  });
  variables.emplace_back("WYE_CACHE_DIR", options.cache.directory.empty() ? "none" : options.cache.directory);
  return variables;
}

}  // namespace runtime

Variables RuntimeOptions::to_variables() const { return runtime::write_variables(*this); }

Result<RuntimeOptions> RuntimeOptions::from_variables(const Variables& variables) {
  try {
    return runtime::read_environment([&](const char* name) -> std::optional<std::string> {
      for (const auto& [variable, value] : variables)
        if (variable == name) return value;
      return std::nullopt;
    });
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory to read the options.");
  }
}

Result<RuntimeOptions> RuntimeOptions::from_environment() {
  try {
    return runtime::read_environment(runtime::process_environment);
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory to read the environment.");
  }
}

std::string user_cache_directory() {
  CacheOptions cache;
  runtime::choose_directory(cache, runtime::process_environment);
  return cache.directory;
}

}  // namespace wye
