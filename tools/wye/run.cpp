#include "run.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

namespace wye_tool {
namespace {

using Json = nlohmann::ordered_json;

double milliseconds(wye::Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

wye::Error invalid(std::string sentence) { return {wye::Errc::invalid_argument, std::move(sentence)}; }

wye::Result<const Workload*> find_workload(const std::string& name) {
  std::string names;
  for (const Workload& one : workloads()) {
    if (one.name == name) return &one;
    names += (names.empty() ? "" : ", ") + std::string(one.name);
  }
  return invalid("There is no workload '" + name + "' (" + (names.empty() ? "this build has none" : names) +
                 ").");
}

wye::JobTimes times_of(const wye::Outcome& outcome) {
  return {outcome.queue_time(), outcome.build_time(), outcome.transfer_time(), outcome.run_time()};
}

DeviceRun run_on(wye::Runtime& runtime, const wye::AdapterInfo& adapter, const Trial& trial,
                 std::uint32_t repeat) {
  DeviceRun result;
  result.device = adapter.id;
  result.name = adapter.name;
  for (std::uint32_t r = 0; r < repeat; ++r) {
    const auto done = runtime.run(trial.job(), {.fallback = wye::Fallback::forbid, .on = adapter.id});
    if (!done) {
      result.failure = done.error().describe();
      return result;
    }
    result.last = times_of(*done);
    if (r == 0) result.first = result.last;
  }
  result.error = trial.error();
  return result;
}

Json json_of(const wye::JobTimes& times) {
  return {{"queue_ms", milliseconds(times.queue)},
          {"build_ms", milliseconds(times.build)},
          {"transfer_ms", milliseconds(times.transfer)},
          {"run_ms", milliseconds(times.run)}};
}

}  // namespace

wye::Result<RunReport> run(const RunOptions& options) {
  const auto workload = find_workload(options.workload);
  if (!workload) return workload.error();
  RunReport report;
  report.workload = *workload;
  report.size = options.size.value_or(report.workload->usual);
  if (report.size == 0 || report.size > report.workload->most)
    return invalid("The size (" + std::to_string(report.size) + ") is not in the range 1 to " +
                   std::to_string(report.workload->most) + " (" + std::string(report.workload->of) + ").");
  if (options.repeat == 0 || options.repeat > 1000)
    return invalid("The number of runs (" + std::to_string(options.repeat) +
                   ") is not in the range 1 to 1000.");
  auto runtime = wye::Runtime::open();
  if (!runtime) return std::move(runtime).error();
  const Trial trial = report.workload->make(report.size);
  std::string ids;
  for (const wye::Device& device : runtime->devices()) {
    ids += (ids.empty() ? "" : ", ") + device.id();
    if (options.device.empty() || options.device == device.id())
      report.devices.push_back(run_on(*runtime, device.info(), trial, options.repeat));
  }
  if (report.devices.empty())
    return invalid("Device '" + options.device + "' is no usable device (" + ids + ").");
  if (options.device.empty())
    if (const auto done = runtime->run(trial.job())) {
      report.chosen = done->device().id;
      report.reason = done->reason();
    }
  return report;
}

std::string text_of(const RunReport& report) {
  std::string text = std::string(report.workload->name) + ", " + std::to_string(report.size) + " " +
                     std::string(report.workload->of) + "\n";
  for (const DeviceRun& one : report.devices) {
    text += "  " + one.device + " (" + one.name + "): ";
    if (one.failure) {
      text += "failed: " + *one.failure + "\n";
      continue;
    }
    text += "run " + number(milliseconds(one.last.run)) + " ms, transfers " +
            number(milliseconds(one.last.transfer)) + " ms, queue " + number(milliseconds(one.last.queue)) +
            " ms; the first time also built for " + number(milliseconds(one.first.build)) + " ms; " +
            (one.is_right() ? "right" : "WRONG") + ": error " + number(one.error) + " of its bound\n";
  }
  if (!report.chosen.empty()) text += "chosen: " + report.chosen + ": " + report.reason + "\n";
  return text;
}

std::string json_of(const RunReport& report) {
  Json all{{"workload", report.workload->name},
           {"size", report.size},
           {"of", report.workload->of},
           {"devices", Json::array()}};
  for (const DeviceRun& one : report.devices) {
    Json device{{"device", one.device}, {"name", one.name}, {"right", one.is_right()}};
    if (one.failure) {
      device["failure"] = *one.failure;
    } else {
      device["first"] = json_of(one.first);
      device["last"] = json_of(one.last);
      device["error_of_bound"] = one.error;
    }
    all["devices"].push_back(std::move(device));
  }
  if (!report.chosen.empty()) all["chosen"] = {{"device", report.chosen}, {"reason", report.reason}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace wye_tool
