// Advice from metrics.
#include <wye/runtime/runtime.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace wye::inline v0 {
namespace {

using base::seconds;
using base::text;
using Sentences = std::vector<std::string>;

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/// More than half of the time of a type on a backend is transfers.
void advise_on_transfers(const SchedulerMetrics& jobs, Sentences& sentences) {
  constexpr std::uint64_t least_jobs = 16;
  for (const auto& [type, of] : jobs.by_type)
    for (const auto& [backend, times] : of.by_backend) {
      const double moved = seconds(times.transfer.sum()), whole = moved + seconds(times.run.sum());
      if (times.run.count() < least_jobs || moved <= whole / 2) continue;
      sentences.push_back(
          text("{:.0f} % of the time of {} '{}' jobs on {} are transfers ({:.3g} s of {:.3g} s). Keep their "
               "data in an Array, which stays on the device between jobs.",
               percent(moved, whole), times.run.count(), type, backend, moved, whole));
    }
}

/// Kernels are evicted, and built again.
void advise_on_evictions(const CacheMetrics& cache, Sentences& sentences) {
  constexpr std::uint64_t least_builds = 3;
  if (cache.misses_evicted < least_builds) return;
  sentences.push_back(
      text("{} of {} builds were of kernels that had been evicted. Raise CacheOptions::memory or "
           "CacheOptions::kernels, which hold {} kernels in {} now.",
           cache.misses_evicted, cache.misses, cache.kernels, to_string(cache.bytes)));
}

/// More than a tenth of the time of jobs is builds of kernels at their first use.
void advise_on_builds(const Metrics& metrics, Sentences& sentences) {
  constexpr double least_seconds = 0.05;
  double built = 0, whole = 0;
  for (const auto& [type, of] : metrics.jobs.by_type) {
    built += seconds(of.build.sum());
    whole += seconds(of.build.sum() + of.transfer.sum() + of.run.sum());
  }
  if (metrics.cache.misses_first == 0 || built < least_seconds || built <= whole / 10) return;
  sentences.push_back(
      text("{:.0f} % of the time of jobs are builds ({:.3g} s of {:.3g} s), and {} kernels were built at "
           "their first use. Record a Manifest and prewarm its kernels (ShaderCache::prewarm), or set "
           "CacheOptions::directory, which keeps them for later processes.",
           percent(built, whole), built, whole, metrics.cache.misses_first));
}

/// Jobs wait, and most slots are free.
void advise_on_idle_slots(const Metrics& metrics, Sentences& sentences) {
  std::uint32_t used = 0, slots = 0;
  for (const SiliconInfo& one : metrics.silicon) {
    used += one.used + one.used_elsewhere;
    slots += one.slots;
  }
  if (metrics.jobs.queued == 0 || slots == 0 || 2 * used >= slots) return;
  sentences.push_back(
      text("{} jobs wait while {} of {} slots are in use. Raise PoolOptions::lanes_per_device for jobs on "
           "GPUs, or SchedulerOptions::concurrent_jobs for those on the CPU.",
           metrics.jobs.queued, used, slots));
}

/// Jobs return to their queues for want of memory, one in a hundred or more.
void advise_on_memory(const SchedulerMetrics& jobs, Sentences& sentences) {
  if (jobs.memory_waits == 0 || 100 * jobs.memory_waits < jobs.completed) return;
  sentences.push_back(
      text("Jobs returned to their queues {} times for want of memory ({} jobs completed). Raise "
           "PoolOptions::silicon_memory or PoolOptions::pool_memory if they are set, free arrays, or divide "
           "the work.",
           jobs.memory_waits, jobs.completed));
}

/// The only GPU is a driver that runs on the CPU.
void advise_on_emulation(const std::vector<SiliconInfo>& silicon, Sentences& sentences) {
  std::string emulated;
  for (const SiliconInfo& one : silicon)
    for (const DeviceState& device : one.devices) {
      if (device.is_gpu && !device.is_emulated) return;
      if (device.is_emulated) emulated = device.id;
    }
  if (emulated.empty()) return;
  sentences.push_back(text(
      "The only GPU is '{}', a driver that runs on the CPU. If the machine has a GPU, install its driver; "
      "otherwise leave 'vulkan' out of PoolOptions::backends.",
      emulated));
}

}  // namespace

std::vector<std::string> advise(const Metrics& metrics) {
  Sentences sentences;
  advise_on_transfers(metrics.jobs, sentences);
  advise_on_evictions(metrics.cache, sentences);
  advise_on_builds(metrics, sentences);
  advise_on_idle_slots(metrics, sentences);
  advise_on_memory(metrics.jobs, sentences);
  advise_on_emulation(metrics.silicon, sentences);
  return sentences;
}

}  // namespace wye
