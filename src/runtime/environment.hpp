#pragma once
/// Options from the host and from the environment, made one. The only place of the library that reads the environment.
#include <wye/base/result.hpp>
#include <wye/cache/shader_cache.hpp>
#include <wye/pool/context_pool.hpp>
#include <wye/runtime/options.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <functional>
#include <optional>
#include <string>

namespace wye {
inline namespace v0 {
namespace runtime {

/// Where a variable's value comes from: `process_environment`, or a test's table.
using Environment = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> process_environment(const char* name);

/// What the rooms are opened with.
struct Resolved {
  PoolOptions pool;
  CacheOptions cache;
  SchedulerOptions scheduler;
  bool hot_reload = false;
  ReloadSink on_reload = {};
  bool is_default_directory = false;  ///< nobody named the cache's directory, so nobody needs it
};

/// Fills what the host left unset from `environment`, and that from the defaults.
/// Errors: invalid_argument, naming the variable or option, its value, and what it may be.
Result<Resolved> resolve(RuntimeOptions options, const Environment& environment);

}  // namespace runtime
}  // namespace v0
}  // namespace wye
