// Checks the arguments of `distribute`, and chooses the devices of the set.
#include <wye/records/distribute.hpp>

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "distribution.hpp"
#include "journal.hpp"
#include "process/workers.hpp"
#include "set.hpp"
#include "source.hpp"
#include "text.hpp"

namespace wye::inline v0 {
namespace records {
namespace {

Error invalid(std::string sentence) { return {Errc::invalid_argument, std::move(sentence)}; }

Result<void> check_number(std::string_view name, std::uint64_t value, std::uint64_t most) {
  if (value >= 1 && value <= most) return {};
  return invalid(text("RecordOptions::", name, " (", value, ") is not in the range 1 to ", most, "."));
}

Result<void> check(const RecordOptions& options) {
  if (const auto& number = options.devices.number; number && *number < 1)
    return invalid(text("RecordOptions::devices must be >= 1, got ", *number, "."));
  if (auto ok = check_number("batch", options.batch, 1'000'000); !ok) return ok;
  if (auto ok = check_number("workers_per_device", options.workers_per_device, 16); !ok) return ok;
  if (auto ok = check_number("attempts", options.attempts, 100); !ok) return ok;
  if (options.io_workers > 64)
    return invalid(text("RecordOptions::io_workers (", options.io_workers, ") is not in the range 0 to 64."));
  if (options.timeout <= Duration{})
    return invalid(text("RecordOptions::timeout (", options.timeout.count(), " ns) must be more than 0."));
  return {};
}

Result<void> check_type(std::string_view of, const RecordType& expected, const RecordType& got,
                        const std::string& function) {
  if (expected == got) return {};
  return invalid(text("Record function '", function, "' takes ", of, " of type '", expected.name, "' (",
                      expected.size, " bytes), got '", got.name, "' (", got.size, " bytes)."));
}

Result<void> check(const RecordFunction& function, const RecordInput& in, const RecordOutput& out) {
  if (auto ok = check_type("records", function.input(), in.type(), function.name()); !ok) return ok;
  if (auto ok = check_type("results", function.output(), out.type(), function.name()); !ok) return ok;
  return {};
}

bool is_gpu(const AdapterInfo& adapter) { return adapter.type != AdapterType::cpu; }

/// Returns the adapters of a set without names: every usable GPU, once for each processor, or the
/// first other one.
std::vector<const AdapterInfo*> default_adapters(const std::vector<AdapterInfo>& adapters) {
  std::vector<const AdapterInfo*> chosen;
  for (const AdapterInfo& adapter : adapters) {
    if (!adapter.usable || !is_gpu(adapter)) continue;
    const bool is_repeated = std::ranges::any_of(chosen, [&](const AdapterInfo* earlier) {
      return adapter.device_uuid != Uuid{} && earlier->device_uuid == adapter.device_uuid;
    });
    if (!is_repeated) chosen.push_back(&adapter);
  }
  if (!chosen.empty()) return chosen;
  for (const AdapterInfo& adapter : adapters)
    if (adapter.usable) return {&adapter};
  return {};
}

std::string ids_of(const std::vector<AdapterInfo>& adapters) {
  std::string ids;
  for (const AdapterInfo& adapter : adapters)
    if (adapter.usable) ids += (ids.empty() ? "" : ", ") + adapter.id;
  return ids.empty() ? "none" : ids;
}

Result<std::vector<const AdapterInfo*>> named_adapters(const std::vector<AdapterInfo>& adapters,
                                                       const std::vector<std::string>& ids) {
  std::vector<const AdapterInfo*> chosen;
  for (const std::string& id : ids) {
    const auto found = std::ranges::find(adapters, id, &AdapterInfo::id);
    if (found == adapters.end() || !found->usable)
      return Error(Errc::not_found,
                   text("RecordOptions::devices names '", id, "', which is no usable device of the runtime (",
                        ids_of(adapters), ")."));
    if (std::ranges::find(chosen, &*found) != chosen.end())
      return invalid(text("RecordOptions::devices names '", id, "' twice."));
    chosen.push_back(&*found);
  }
  return chosen;
}

Result<std::vector<const AdapterInfo*>> choose(const std::vector<AdapterInfo>& adapters,
                                               const RecordDevices& devices) {
  if (!devices.ids.empty()) return named_adapters(adapters, devices.ids);
  std::vector<const AdapterInfo*> chosen = default_adapters(adapters);
  if (chosen.empty()) return Error(Errc::unavailable, "The runtime has no usable device for a record set.");
  if (!devices.number) return chosen;
  if (static_cast<std::uint64_t>(*devices.number) > chosen.size())
    return invalid(text("RecordOptions::devices (", *devices.number,
                        ") exceeds the number of usable devices (", chosen.size(), ")."));
  chosen.resize(static_cast<std::size_t>(*devices.number));
  return chosen;
}

/// Returns the name by which the driver of CUDA knows a processor.
std::string cuda_name(const AdapterInfo& adapter) {
  if (adapter.device_uuid == Uuid{} || !is_gpu(adapter)) return {};
  return (adapter.name.find(" MIG ") == std::string::npos ? "GPU-" : "MIG-") + to_string(adapter.device_uuid);
}

/// Describes a device for workers, which see it alone.
SetDevice describe(const AdapterInfo& adapter, std::size_t number, RuntimeOptions options,
                   std::uint32_t workers) {
  options.pool.backends = {adapter.backend};
  options.pool.devices = {adapter.device_uuid == Uuid{} ? adapter.id : to_string(adapter.device_uuid)};
  options.pool.adopt.clear();
  options.hot_reload = false;
  SetDevice device{.id = adapter.id,
                   .name = is_gpu(adapter) ? text("GPU ", number) : "CPU",
                   .options = std::move(options)};
  if (workers > 1) device.options.pool.share = Share::machine;
  // Chosen before a driver loads. Empty: the driver has no device.
  device.environment = {{"CUDA_VISIBLE_DEVICES", cuda_name(adapter)}};
  return device;
}

}  // namespace

Result<RecordReport> run_set(Runtime& runtime, const RecordFunction& function, RecordInput in,
                             RecordOutput out, const RecordOptions& options, const Pace& pace) {
  if (process::WorkerEnd::is_worker_process())
    return Error(Errc::unsupported,
                 "A worker process cannot distribute records. Call wye::worker_main first in main.");
  if (auto ok = check(options); !ok) return std::move(ok).error();
  if (auto ok = check(function, in, out); !ok) return std::move(ok).error();
  const std::vector<AdapterInfo>& adapters = runtime.adapters();
  auto chosen = choose(adapters, options.devices);
  if (!chosen) return std::move(chosen).error();
  const auto source = Source::open(std::move(in));
  if (!source) return source.error();
  auto sink = Sink::open(std::move(out), *source);
  if (!sink) return std::move(sink).error();
  std::vector<SetDevice> devices;
  for (const AdapterInfo* adapter : *chosen) {
    const std::uint32_t workers = options.processes ? options.workers_per_device : 1;
    devices.push_back(describe(*adapter, devices.size(), runtime.options(), workers));
  }
  if (source->count() == 0) {
    RecordReport report;
    for (const SetDevice& device : devices)
      report.devices.push_back({.id = device.id, .name = device.name, .out = std::nullopt});
    return report;
  }
  std::vector<RecordRange> done;
  std::optional<Journal> journal;
  if (!options.journal.empty()) {
    auto opened = Journal::open(options.journal, function, options.batch, *source, *sink, done);
    if (!opened) return std::move(opened).error();
    journal.emplace(*std::move(opened));
  }
  return Distribution(function, *source, *sink, journal ? &*journal : nullptr, std::move(done), options,
                      std::move(devices), pace)
      .run();
}

}  // namespace records

Result<RecordReport> distribute(Runtime& runtime, const RecordFunction& function, RecordInput in,
                                RecordOutput out, const RecordOptions& options) {
  try {
    return records::run_set(runtime, function, in, std::move(out), options, {});
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory for a record set.");
  }
}

}  // namespace wye
