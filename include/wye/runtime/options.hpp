#pragma once
/// What a runtime can be told, and the environment variables an operator can tell it with.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/log.hpp>
#include <wye/cache/shader_cache.hpp>
#include <wye/device/isolation.hpp>
#include <wye/device/native.hpp>
#include <wye/runtime/reload.hpp>
#include <wye/scheduler/job.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wye {
inline namespace v0 {

/// The names of backends, or nothing. Takes `{"vulkan", "cpu"}`, a vector of names, or `std::nullopt`.
class BackendNames : public std::optional<std::vector<std::string>> {
 public:
  using std::optional<std::vector<std::string>>::optional;
  /// A type of its own, because two pointers in braces would be the ends of one string.
  struct Name {
    Name(const char* name) : text(name) {}             // NOLINT: a string is a name
    Name(std::string name) : text(std::move(name)) {}  // NOLINT
    Name(std::string_view name) : text(name) {}        // NOLINT
    std::string text;
  };
  BackendNames(std::optional<std::vector<std::string>> names)  // NOLINT: the same, or nothing
      : std::optional<std::vector<std::string>>(std::move(names)) {}
  BackendNames(std::initializer_list<Name> names) {
    std::vector<std::string>& all = emplace();
    for (const Name& name : names) all.push_back(name.text);
  }
};

/// Every option with its default and unit. What a host sets wins over the environment; the environment is
/// read once, in `Runtime::open`, and only for options left unset. A value that cannot be meant is an error,
/// never ignored.
///
/// | option           | default         | environment          | unit, range                                          |
/// |------------------|-----------------|----------------------|------------------------------------------------------|
/// | backends         | cuda,vulkan,cpu | WYE_BACKENDS         | names this build has, preferred first                |
/// | lanes_per_device | 2               | WYE_LANES            | contexts, 1 to 256                                   |
/// | lane_memory      | 512 MiB         | WYE_LANE_MEMORY      | bytes, or with KiB, MiB, GiB                         |
/// | lease_timeout    | 5 s             | WYE_LEASE_TIMEOUT    | seconds, or with ms, s                               |
/// | cached_kernels   | 1000            | WYE_CACHED_KERNELS   | executables, 0 to 1,000,000                          |
/// | cache_memory     | 256 MiB         | WYE_CACHE_MEMORY     | bytes, or with KiB, MiB, GiB                         |
/// | cache_directory  | see below       | WYE_CACHE_DIR        | path; in memory only: "", of the variable "none"     |
/// | cache_disk       | 1 GiB           | WYE_CACHE_DISK       | bytes, or with KiB, MiB, GiB; 0: nothing is stored   |
/// | cache_durable    | false           | WYE_CACHE_DURABLE    | 0, 1: wait for the disk where a kernel is stored     |
/// | warm_compilers   | false           | WYE_WARM_COMPILERS   | 0, 1: see CacheOptions                               |
/// | cache_bundles    | none            | -                    | paths of files of `wyec bundle`                      |
/// | concurrent_jobs  | 4               | WYE_JOBS             | jobs, 1 to 1024                                      |
/// | job_time_limit   | 30 s            | WYE_JOB_TIME_LIMIT   | seconds, or with ms, s                               |
/// | fallback         | allow           | WYE_FALLBACK         | allow, warn, forbid                                  |
/// | measure_variants | true            | WYE_MEASURE_VARIANTS | 0, 1: see `fastest_of`                               |
/// | preferences      | see Scheduler   | -                    | rows replace those of their workload type            |
/// | cpu_threads      | 0               | WYE_CPU_THREADS      | threads, the caller's included; 0: one per processor |
/// | validate_driver  | false           | WYE_VALIDATE         | 0, 1                                                 |
/// | cuda_driver      | libcuda.so.1    | WYE_CUDA_DRIVER      | path or name of the library of CUDA's driver         |
/// | isolation        | shared          | WYE_ISOLATION        | shared, partition: see `Isolation`                   |
/// | partition        | half            | WYE_PARTITION        | multiprocessors, or a share: 50%                     |
/// | kept_memory      | 512 MiB         | WYE_KEPT_MEMORY      | bytes, or with KiB, MiB, GiB; of each CUDA context   |
/// | adopt            | none            | -                    | devices that the host has opened (`interop`)         |
/// | hot_reload       | false           | WYE_HOT_RELOAD       | 0, 1                                                 |
/// | on_reload        | none            | -                    | what is told of each reload                          |
/// | log              | none            | WYE_LOG              | a sink; with the variable alone, standard error      |
/// | log_level        | warning         | WYE_LOG              | "warning", "warning,cache=debug"                     |
/// | clock            | steady clock    | -                    | -                                                    |
/// | on_build         | none            | -                    | called after each build: see BuildSink               |
/// | close_timeout    | see Runtime     | WYE_CLOSE_TIMEOUT    | seconds, or with ms, s                               |
///
/// Kernels are kept in XDG_CACHE_HOME/wye, else HOME/.cache/wye; where that cannot be used, in memory only, with a
/// warning. A directory that was named must be usable.
///
/// With `isolation` partition, the runtime uses some multiprocessors of each CUDA device and no others, and its CPU's threads as
/// `cpu_threads` says. Devices that cannot be divided are not used: those of Vulkan, and CUDA's under a driver without green
/// contexts (12.5 or newer has them); `Runtime::adapters` has the reason. `kept_memory` is what a context holds on to of the
/// memory that it used, at most `lane_memory`: more makes allocation quicker, less leaves more to other programs.
///
/// `hot_reload` is for development: kernels that jobs use, and whose sources are from files (`Glsl::from_file`), are made
/// again when a file changes, theirs or one they include, compiled for the devices that use them, and used by the jobs that
/// are prepared from then on. What does not compile, or has other parameters, is reported once, to `on_reload` and as a
/// warning to `log`, and the kernel stays what it was. It costs a thread, parked between changes.
struct RuntimeOptions {
  BackendNames backends = std::nullopt;
  std::optional<std::uint32_t> lanes_per_device = std::nullopt;
  std::optional<Bytes> lane_memory = std::nullopt;
  std::optional<Duration> lease_timeout = std::nullopt;
  std::optional<std::uint32_t> cached_kernels = std::nullopt;
  std::optional<Bytes> cache_memory = std::nullopt;
  std::optional<std::string> cache_directory = std::nullopt;
  std::optional<std::uint32_t> concurrent_jobs = std::nullopt;
  std::optional<Duration> job_time_limit = std::nullopt;
  std::optional<Fallback> fallback = std::nullopt;
  std::vector<Preference> preferences = {};
  std::optional<std::uint32_t> cpu_threads = std::nullopt;
  std::optional<bool> validate_driver = std::nullopt;
  LogSink log = {};
  std::optional<std::string> log_level = std::nullopt;
  const Clock* clock = nullptr;
  std::optional<Bytes> cache_disk = std::nullopt;
  std::vector<std::string> cache_bundles = {};
  std::optional<std::string> cuda_driver = std::nullopt;
  BuildSink on_build = {};
  std::vector<NativeDevice> adopt = {};
  std::optional<bool> hot_reload = std::nullopt;
  ReloadSink on_reload = {};
  std::optional<bool> cache_durable = std::nullopt;
  std::optional<Isolation> isolation = std::nullopt;
  std::optional<Partition> partition = std::nullopt;
  std::optional<Bytes> kept_memory = std::nullopt;
  std::optional<bool> warm_compilers = std::nullopt;
  std::optional<bool> measure_variants = std::nullopt;
  std::optional<Duration> close_timeout = std::nullopt;
};

/// Where a Runtime keeps kernels in this environment if nobody names a directory; empty where it keeps none.
WYE_API std::string user_cache_directory();

}  // namespace v0
}  // namespace wye
