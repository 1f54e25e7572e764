// Metrics in the text format of Prometheus.
#include <wye/runtime/runtime.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace wye::inline v0 {
namespace {

using base::seconds;
using base::text;
using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

/// Returns the value of a label. Names of types are those of the application.
std::string label_of(std::string_view name) {
  std::string label(name.substr(0, 63));
  for (char& c : label)
    if (c < ' ' || c > '~' || c == '"' || c == '\\') c = '?';
  return label;
}

/// Writes families of series: a help text, a type, and one line for each series.
class Exposition {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    out_ += text("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void add(double value, const Labels& labels = {}, std::string_view suffix = {}) {
    out_ += name_;
    out_ += suffix;
    for (std::size_t l = 0; l < labels.size(); ++l)
      out_ += text("{}{}=\"{}\"", l == 0 ? "{" : ",", labels[l].first, labels[l].second);
    out_ += text("{} {:.12g}\n", labels.empty() ? "" : "}", value);
  }
  void add(std::uint64_t value, const Labels& labels = {}) { add(static_cast<double>(value), labels); }
  void add(Bytes value, const Labels& labels = {}) { add(value.count, labels); }
  void add(Duration value, const Labels& labels = {}) { add(seconds(value), labels); }
  /// Adds a summary.
  void add(const Histogram& times, Labels labels = {}) {
    for (const auto& [fraction, name] : {std::pair{0.5, "0.5"}, {0.95, "0.95"}, {0.99, "0.99"}}) {
      labels.emplace_back("quantile", name);
      add(seconds(times.percentile(fraction)), labels);
      labels.pop_back();
    }
    add(seconds(times.sum()), labels, "_sum");
    add(static_cast<double>(times.count()), labels, "_count");
  }
  /// Adds a family of one series.
  template <class Value>
  void one(std::string_view name, std::string_view type, std::string_view help, const Value& value) {
    begin(name, type, help);
    add(value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_, name_;
};

constexpr std::string_view counter = "counter", gauge = "gauge", summary = "summary";

/// Adds the numbers of types.
void add(const TypeMetrics& from, TypeMetrics& to) {
  to.completed += from.completed;
  to.failed += from.failed;
  to.timed_out += from.timed_out;
  to.cancelled += from.cancelled;
  for (const auto& [backend, times] : from.by_backend) to.by_backend[backend].add(times);
}

/// Returns the types with the most jobs by their labels, and all others together.
std::map<std::string, TypeMetrics> types_of(const SchedulerMetrics& jobs) {
  constexpr std::size_t most = 16;
  std::map<std::string, TypeMetrics> types;
  std::vector<std::pair<std::uint64_t, std::string_view>> order;
  for (const auto& [name, type] : jobs.by_type) order.emplace_back(type.completed, name);
  std::ranges::stable_sort(order, std::ranges::greater(), [](const auto& one) { return one.first; });
  for (const auto& [completed, name] : order) {
    std::string label = label_of(name);
    if (types.size() >= most && !types.contains(label)) label = "other types";
    add(jobs.by_type.find(name)->second, types[label]);
  }
  return types;
}

void add_jobs(Exposition& out, const SchedulerMetrics& jobs) {
  out.one("wye_jobs_submitted_total", counter, "Jobs submitted.", jobs.submitted);
  out.begin("wye_jobs", gauge, "Jobs that wait or run.");
  out.add(std::uint64_t{jobs.queued}, {{"state", "queued"}});
  out.add(std::uint64_t{jobs.running}, {{"state", "running"}});
  out.begin("wye_jobs_settled_total", counter, "Jobs that have ended, by workload type and result.");
  const auto types = types_of(jobs);
  for (const auto& [type, of] : types) {
    out.add(of.completed, {{"type", type}, {"state", "completed"}});
    out.add(of.failed, {{"type", type}, {"state", "failed"}});
    out.add(of.timed_out, {{"type", type}, {"state", "timed_out"}});
    out.add(of.cancelled, {{"type", type}, {"state", "cancelled"}});
  }
  out.begin("wye_jobs_completed_total", counter, "Jobs completed, by backend.");
  for (const auto& [backend, completed] : jobs.completed_by_backend)
    out.add(completed, {{"backend", backend}});
  out.begin(
      "wye_job_seconds", summary,
      "Times of completed jobs, by workload type, backend and part: in the queue, for the build of their "
      "kernels, for transfers, and to run.");
  for (const auto& [type, of] : types)
    for (const auto& [backend, times] : of.by_backend)
      for (const auto& [part, histogram] : {std::pair{"queue", &times.queue},
                                            {"build", &times.build},
                                            {"transfer", &times.transfer},
                                            {"run", &times.run}})
        out.add(*histogram, {{"type", type}, {"backend", backend}, {"part", part}});
  out.one("wye_job_fallbacks_total", counter, "Completed jobs that had failed on another device.",
          jobs.fallbacks);
  out.one("wye_job_moves_total", counter, "Completed jobs that an idle device took from others.", jobs.moves);
  out.one("wye_job_trials_total", counter,
          "Completed jobs that showed how long their kernels take on a device.", jobs.trials);
  out.one("wye_job_memory_waits_total", counter, "Returns of jobs to their queues, for want of memory.",
          jobs.memory_waits);
  out.one("wye_job_batches_total", counter, "Submissions of several jobs.", jobs.batches);
  out.one("wye_batched_jobs_total", counter, "Jobs in submissions of several jobs.", jobs.batched_jobs);
  out.one("wye_prefetches_total", counter, "Jobs whose arrays were copied before they had a lane.",
          jobs.prefetches);
  out.one("wye_prefetched_bytes_total", counter, "Bytes that these copies had.", jobs.bytes_prefetched);
}

void add_pool(Exposition& out, const PoolMetrics& pool) {
  out.one("wye_contexts", gauge, "Contexts that have been leased.", std::uint64_t{pool.contexts});
  out.one("wye_contexts_active", gauge, "Contexts that are leased now.", std::uint64_t{pool.active});
  out.one("wye_leases_total", counter, "Leases of contexts.", pool.leases);
  out.one("wye_lease_timeouts_total", counter, "Requests for a lease that waited until their deadline.",
          pool.timeouts);
  out.one("wye_lease_wait_seconds", summary, "Times that requests for a lease have waited.", pool.lease_wait);
  out.one("wye_context_switches_total", counter, "Submissions of a thread to another context than before.",
          pool.switches);
  out.one("wye_context_switch_seconds", summary, "Times of these switches, for threads that switch often.",
          pool.switch_time);
  out.one("wye_allocated_bytes", gauge, "Memory of contexts and arrays.", pool.bytes);
  out.one("wye_array_evictions_total", counter, "Copies of arrays that made room.", pool.evictions);
  out.one("wye_memory_shortages_total", counter, "Attempts of jobs that found no memory.", pool.shortages);
  out.one("wye_device_recoveries_total", counter, "Lost devices that were opened again.", pool.recoveries);
}

/// Processors have the id of their first device.
void add_silicon(Exposition& out, const std::vector<SiliconInfo>& silicon) {
  const auto family = [&](std::string_view name, std::string_view help, auto value_of) {
    out.begin(name, gauge, help);
    for (const SiliconInfo& one : silicon)
      if (!one.devices.empty()) out.add(value_of(one), {{"device", one.devices.front().id}});
  };
  family("wye_slots", "Leases that a processor takes at a time.",
         [](const SiliconInfo& one) { return std::uint64_t{one.slots}; });
  family("wye_slots_used", "Slots in use by this process.",
         [](const SiliconInfo& one) { return std::uint64_t{one.used}; });
  family("wye_slots_used_elsewhere", "Slots in use by other processes.",
         [](const SiliconInfo& one) { return std::uint64_t{one.used_elsewhere}; });
  family("wye_slot_use_ratio", "Part of the slots that is in use.",
         [](const SiliconInfo& one) { return one.slot_use(); });
  family("wye_slot_requests", "Requests that wait for a lease.",
         [](const SiliconInfo& one) { return std::uint64_t{one.waiting}; });
  family("wye_held_bytes", "Memory of a processor that this process holds.",
         [](const SiliconInfo& one) { return one.memory.empty() ? Bytes{} : one.memory.front().held; });
  family("wye_memory_pressure", "Pressure on the memory of a processor: 0 none, 1 some, 2 high.",
         [](const SiliconInfo& one) { return static_cast<std::uint64_t>(one.pressure); });
  out.begin("wye_device_state", gauge, "1 for the state that a device has.");
  constexpr std::pair<DeviceHealth, std::string_view> states[]{{DeviceHealth::healthy, "healthy"},
                                                               {DeviceHealth::suspect, "suspect"},
                                                               {DeviceHealth::quarantined, "quarantined"},
                                                               {DeviceHealth::probing, "probing"},
                                                               {DeviceHealth::dead, "dead"}};
  for (const SiliconInfo& one : silicon)
    for (const DeviceState& device : one.devices)
      for (const auto& [health, state] : states)
        out.add(std::uint64_t{device.health == health}, {{"device", device.id}, {"state", state}});
}

void add_devices(Exposition& out, const std::vector<Monitoring>& devices) {
  const auto family = [&](std::string_view name, std::string_view type, std::string_view help, auto member) {
    out.begin(name, type, help);
    for (const Monitoring& one : devices)
      if (const auto& value = (one.*member).value) out.add(*value, {{"device", one.device}});
  };
  family("wye_device_memory_bytes", gauge, "Memory of a device.", &Monitoring::memory_total);
  family("wye_device_memory_used_bytes", gauge, "Memory of a device that all processes and the driver use.",
         &Monitoring::memory_used);
  family("wye_device_use_ratio", gauge, "Part of the recent past in which a device ran a kernel.",
         &Monitoring::utilization);
  family("wye_device_temperature_celsius", gauge, "Temperature of a device.", &Monitoring::temperature);
  family("wye_device_corrected_memory_errors_total", counter, "Memory errors that ECC corrected.",
         &Monitoring::corrected_errors);
  family("wye_device_uncorrected_memory_errors_total", counter, "Memory errors that ECC could not correct.",
         &Monitoring::uncorrected_errors);
}

void add_cache(Exposition& out, const CacheMetrics& cache) {
  out.one("wye_cached_kernels", gauge, "Kernels that are ready.", std::uint64_t{cache.kernels});
  out.one("wye_cached_bytes", gauge, "Memory of these kernels.", cache.bytes);
  out.begin(
      "wye_cache_requests_total", counter,
      "Requests for kernels, by result: found in memory, on disk or in a bundle, built, waited for, failed.");
  out.add(cache.hits, {{"state", "memory"}});
  out.add(cache.disk_hits, {{"state", "disk"}});
  out.add(cache.bundle_hits, {{"state", "bundle"}});
  out.add(cache.misses, {{"state", "built"}});
  out.add(cache.joined, {{"state", "joined"}});
  out.add(cache.failures, {{"state", "failed"}});
  out.one("wye_cache_hit_ratio", gauge, "Part of the requests that found a built kernel.", cache.hit_rate());
  out.one("wye_cache_evictions_total", counter, "Kernels that made room.", cache.evictions);
  out.one("wye_cache_rebuilds_total", counter, "Builds of kernels that had been evicted.",
          cache.misses_evicted);
  out.one("wye_cache_corrupt_total", counter, "Damaged files that were removed.", cache.corrupt);
  out.one("wye_cache_build_seconds_total", counter, "Time of builds.", cache.build_time);
  out.one("wye_cache_saved_seconds_total", counter, "Time of builds that requests were spared.", cache.saved);
}

}  // namespace

std::string prometheus_text(const Metrics& metrics) {
  Exposition out;
  add_jobs(out, metrics.jobs);
  add_pool(out, metrics.pool);
  add_silicon(out, metrics.silicon);
  add_devices(out, metrics.devices);
  add_cache(out, metrics.cache);
  out.one("wye_process_resident_bytes", gauge, "Memory of the process.", metrics.process.resident);
  out.one("wye_process_cpu_seconds_total", counter, "Processor time of the process.",
          metrics.process.processor_time);
  out.one("wye_events_dropped_total", counter, "Events that listeners were too slow for.",
          metrics.events_dropped);
  return out.take();
}

}  // namespace wye
