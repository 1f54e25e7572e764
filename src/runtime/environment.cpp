#include "runtime/environment.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>
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
  out = Duration(static_cast<Duration::rep>(*seconds * 1e9));
  return {};
}

Result<void> read(const char* variable, std::string_view text, bool& out) {
  if (text != "0" && text != "1") return invalid_value(variable, text, "0 or 1");
  out = text == "1";
  return {};
}

template <class T, std::size_t count>
using Words = std::array<std::pair<std::string_view, T>, count>;

/// Sets `out` to the value of the word `text`.
template <class T, std::size_t count>
Result<void> read_word(const char* variable, std::string_view text, const Words<T, count>& words,
                       std::string_view expected, T& out) {
  for (const auto& [word, value] : words)
    if (text == word) return out = value, Result<void>();
  return invalid_value(variable, text, expected);
}

Result<void> read(const char* variable, std::string_view text, Fallback& out) {
  constexpr Words<Fallback, 3> words{
      {{"allow", Fallback::allow}, {"warn", Fallback::warn}, {"forbid", Fallback::forbid}}};
  return read_word(variable, text, words, "allow, warn or forbid", out);
}

Result<void> read(const char* variable, std::string_view text, PlacementMode& out) {
  constexpr Words<PlacementMode, 2> words{
      {{"learned", PlacementMode::learned}, {"table", PlacementMode::table}}};
  return read_word(variable, text, words, "learned or table", out);
}

Result<void> read(const char* variable, std::string_view text, Isolation& out) {
  constexpr Words<Isolation, 3> words{
      {{"shared", Isolation::shared}, {"partition", Isolation::partition}, {"device", Isolation::device}}};
  return read_word(variable, text, words, "shared, partition or device", out);
}

Result<void> read(const char* variable, std::string_view text, Qualification& out) {
  constexpr Words<Qualification, 3> words{
      {{"stored", Qualification::stored}, {"again", Qualification::again}, {"never", Qualification::never}}};
  return read_word(variable, text, words, "stored, again or never", out);
}

Result<void> read(const char* variable, std::string_view text, Share& out) {
  constexpr Words<Share, 2> words{{{"process", Share::process}, {"machine", Share::machine}}};
  return read_word(variable, text, words, "process or machine", out);
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
  const std::array read_all{
      set(all.pool.backends, environment, "WYE_BACKENDS"),
      set(all.pool.devices, environment, "WYE_DEVICES"),
      set(all.pool.lanes_per_device, environment, "WYE_LANES"),
      set(all.pool.slots, environment, "WYE_SLOTS"),
      set(all.pool.silicon_memory, environment, "WYE_SILICON_MEMORY"),
      set(all.pool.pool_memory, environment, "WYE_POOL_MEMORY"),
      set(all.pool.lane_memory, environment, "WYE_LANE_MEMORY"),
      set(all.pool.kept_memory, environment, "WYE_KEPT_MEMORY"),
      set(all.pool.pinned_memory, environment, "WYE_PINNED_MEMORY"),
      set(all.pool.poll_limit, environment, "WYE_POLL_LIMIT"),
      set(all.pool.lease_timeout, environment, "WYE_LEASE_TIMEOUT"),
      set(all.pool.cpu_threads, environment, "WYE_CPU_THREADS"),
      set(all.pool.isolation, environment, "WYE_ISOLATION"),
      set(all.pool.partition, environment, "WYE_PARTITION"),
      set(all.pool.validate_driver, environment, "WYE_VALIDATE"),
      set(all.pool.cuda_driver, environment, "WYE_CUDA_DRIVER"),
      set(all.pool.share, environment, "WYE_SHARE"),
      set(all.pool.share_folder, environment, "WYE_SHARE_DIR"),
      set(all.cache.memory, environment, "WYE_CACHE_MEMORY"),
      set(all.cache.kernels, environment, "WYE_CACHED_KERNELS"),
      set(all.cache.disk, environment, "WYE_CACHE_DISK"),
      set(all.cache.durable, environment, "WYE_CACHE_DURABLE"),
      set(all.cache.warm_compilers, environment, "WYE_WARM_COMPILERS"),
      set(all.scheduler.concurrent_jobs, environment, "WYE_JOBS"),
      set(all.scheduler.job_time_limit, environment, "WYE_JOB_TIME_LIMIT"),
      set(all.scheduler.fallback, environment, "WYE_FALLBACK"),
      set(all.scheduler.placement, environment, "WYE_PLACEMENT"),
      set(all.scheduler.measure_variants, environment, "WYE_MEASURE_VARIANTS"),
      set(all.qualification, environment, "WYE_QUALIFICATION"),
      set(all.hot_reload, environment, "WYE_HOT_RELOAD"),
      set(all.close_timeout, environment, "WYE_CLOSE_TIMEOUT"),
  };
  for (const Result<void>& one : read_all)
    if (!one) return one.error();
  choose_directory(all.cache, environment);
  if (const auto levels = environment("WYE_LOG"); levels && !levels->empty()) {
    if (auto ok = base::LogFilter::parse(*levels); !ok)
      return std::move(ok).error().with_context("while reading the environment variable WYE_LOG");
    all.log_level = *levels;
    all.log = log_to_stderr();
  }
  return all;
}

}  // namespace runtime

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
