#pragma once
/// Options of a Runtime, and the environment variables that set them.
#include <wye/base/clock.hpp>
#include <wye/base/error.hpp>
#include <wye/base/log.hpp>
#include <wye/base/result.hpp>
#include <wye/cache/shader_cache.hpp>
#include <wye/pool/context_pool.hpp>
#include <wye/runtime/qualification.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wye::inline v0 {

/// Describes one reload of a kernel whose file, or a file that it includes, has changed.
struct Reload {
  std::string kernel;
  std::optional<Error> error =
      std::nullopt;  ///< unset: later jobs use the new code; set: the kernel is unchanged
  Duration took{};   ///< time to read the files and to compile for the devices in use
};

/// Receives reloads, by the rule of `SwitchSink`.
using ReloadSink = std::function<void(const Reload&)>;

/// Names and values of environment variables.
using Variables = std::vector<std::pair<std::string, std::string>>;

/// Options of `Runtime::open`. A runtime uses exactly these values and reads no environment variable.
///
/// | option        | default           | environment       | unit, range                                 |
/// |---------------|-------------------|-------------------|---------------------------------------------|
/// | pool          | see PoolOptions   | see there         |                                             |
/// | cache         | see CacheOptions  | see there         |                                             |
/// | scheduler     | see SchedulerOptions | see there      |                                             |
/// | qualification | stored            | WYE_QUALIFICATION | stored, again, never                        |
/// | hot_reload    | false             | WYE_HOT_RELOAD    | 0, 1                                        |
/// | on_reload     | none              | -                 | called after each reload                    |
/// | log           | none              | WYE_LOG           | a sink; the variable sets standard error    |
/// | log_level     | warning           | WYE_LOG           | "warning", "warning,cache=debug"            |
/// | clock         | steady clock      | -                 |                                             |
/// | close_timeout | see Runtime       | WYE_CLOSE_TIMEOUT | seconds, or with ms, s                      |
///
/// An application that lets its operator set variables, and sets some options itself, begins with
/// `from_environment`:
///
///     auto options = wye::RuntimeOptions::from_environment();
///     if (!options) return options.error();
///     options->pool.lanes_per_device = 4;
///     auto runtime = wye::Runtime::open(*options);
struct RuntimeOptions {
  PoolOptions pool = {};
  CacheOptions cache = {};
  SchedulerOptions scheduler = {};
  /// Checks each GPU before its first use, as `qualify` does. The report is stored beside the
  /// kernels, for the build of its driver. A device that fails is not used, and `adapters()` has
  /// the reason. A feature that fails is off for that device. A device that does not complete a
  /// check is not used for a day. A device whose check crashes is not used for an hour: a child
  /// process finds out after a process has ended in it. Devices of the application (`adopt`) are not
  /// checked.
  Qualification qualification = Qualification::stored;
  /// For development. Watches the files of kernels that jobs use (`Glsl::from_file` and its like)
  /// and the files that these include. After a change, compiles the kernel for the devices that use
  /// it; jobs prepared from then on use the new code. If the code does not compile, or has other
  /// parameters, the kernel is unchanged, and `on_reload` and the log get the error once. Costs one
  /// thread, which sleeps between changes.
  bool hot_reload = false;
  ReloadSink on_reload = {};
  LogSink log = {};                   ///< used by each part without a sink
  std::string log_level = "warning";  ///< of `log`; rooms can differ: "warning,cache=debug"
  const Clock* clock = nullptr;       ///< used by each part without a clock; null: the steady clock
  /// Limits the destruction of the last copy of the runtime, and is the limit of pool and
  /// scheduler. See `Runtime`.
  std::optional<Duration> close_timeout = std::nullopt;

  /// Returns the defaults with the environment variables applied that are set and not empty. The
  /// cache directory is WYE_CACHE_DIR ("none": memory only), otherwise `user_cache_directory()`
  /// with `CacheOptions::require_directory` off.
  /// Errors: invalid_argument, naming the variable, its value, and the values that it takes.
  WYE_API static Result<RuntimeOptions> from_environment();

  /// Returns the variables that set these options in another process, without those whose options
  /// have their default. They name no log, clock, sink, adopted device or BlobStore, and no option
  /// that has no variable.
  WYE_API Variables to_variables() const;
  /// Returns the options of `from_environment` with `variables` in place of the environment.
  /// Errors: those of `from_environment`.
  WYE_API static Result<RuntimeOptions> from_variables(const Variables& variables);
};

/// Returns the user's cache directory for wye: XDG_CACHE_HOME/wye, otherwise HOME/.cache/wye;
/// WYE_CACHE_DIR overrides both. Empty if none of the variables names an absolute path, or
/// WYE_CACHE_DIR is "none".
WYE_API std::string user_cache_directory();

}  // namespace wye
