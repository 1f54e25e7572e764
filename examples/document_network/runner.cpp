#include "runner.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "text.hpp"

namespace document_network {
namespace {

constexpr std::string_view measure = "cpu";
/// Slow machines need a long limit.
constexpr std::chrono::minutes time_limit{10};

bool is_called(const wye::AdapterInfo& adapter, std::string_view name) {
  return adapter.id == name || adapter.backend == name;
}

/// Among the jobs of a step, the one with the slowest kernel lookup determines the tier shown.
int effort(std::string_view tier) {
  return tier == "built" ? 3 : tier == "disk" || tier == "bundle" ? 2 : tier == "memory" ? 1 : 0;
}

void add_name(std::string& list, std::string_view name) {
  if (list.find(name) == std::string::npos) list += (list.empty() ? "" : ", ") + std::string(name);
}

}  // namespace

wye::Result<wye::Runtime> open_runtime(const std::string& backend) {
  auto runtime = wye::Runtime::open();
  if (!runtime || backend == "auto") return runtime;

  std::string usable, reason;
  bool is_known = false;
  for (const wye::AdapterInfo& adapter : runtime->adapters()) {
    if (adapter.usable) add_name(usable, adapter.id);
    if (!is_called(adapter, backend)) continue;
    if (adapter.usable) return runtime;
    is_known = true;
    reason = adapter.reason;
  }
  const std::string name = printable(backend);
  if (is_known)
    return wye::Error(wye::Errc::unavailable,
                      "Backend '" + name + "' cannot be used on this machine: " + reason);
  if (backend.find(':') != std::string::npos)
    return wye::Error(wye::Errc::not_found,
                      "Device '" + name + "' does not exist; there are: " + usable + ".");
  // A backend that is not opened by default may still exist.
  auto options = wye::RuntimeOptions::from_environment();
  if (!options) return std::move(options).error();
  options->pool.backends = {backend, std::string(measure)};
  return wye::Runtime::open(*std::move(options));
}

double max_relative_error(const std::vector<double>& values, const std::vector<double>& reference) {
  double largest = 0, error = 0;
  for (const double value : reference)
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double value = values[i], expected = reference[i];
    if (value == expected || (std::isnan(value) && std::isnan(expected))) continue;
    if (!std::isfinite(value) || !std::isfinite(expected)) return std::numeric_limits<double>::infinity();
    error = std::max(error, std::fabs(value - expected) / std::max(std::fabs(expected), largest * 1e-6));
  }
  return error;
}

Runner::Runner(wye::Runtime runtime, const std::string& backend, bool compare)
    : runtime_(std::move(runtime)), on_(backend == "auto" ? "" : backend) {
  if (!compare) return;
  backends_.emplace_back(measure);
  for (const wye::Device& device : runtime_.devices()) {
    const std::string& other = device.info().backend;
    if (std::find(backends_.begin(), backends_.end(), other) == backends_.end()) backends_.push_back(other);
  }
}

wye::Result<void> Runner::run_here(std::string_view step, wye::Job job) {
  auto ticket = runtime_.submit(std::move(job), {.time_limit = time_limit, .on = on_});
  const auto done = ticket.wait();
  if (!done) return done.error().with_context("while running step '" + std::string(step) + "'");
  note_devices(step, ticket.explain().candidates);

  auto found = std::find_if(steps_.begin(), steps_.end(), [&](const Step& s) { return s.name == step; });
  if (found == steps_.end()) {
    steps_.push_back({std::string(step), "", "", done->reason(), 0, "none"});
    found = steps_.end() - 1;
  }
  add_name(found->backend, done->backend());
  add_name(found->device, done->device().name);
  found->seconds += std::chrono::duration<double>(done->run_time()).count();
  const std::string_view tier = wye::name(done->cache_tier());
  if (effort(tier) > effort(found->cache)) found->cache = tier;
  return {};
}

void Runner::note_devices(std::string_view step, const std::vector<wye::Candidate>& candidates) {
  for (const wye::Candidate& candidate : candidates) {
    auto found = std::find_if(devices_.begin(), devices_.end(),
                              [&](const ConsideredDevice& d) { return d.id == candidate.device; });
    if (found == devices_.end()) {
      devices_.push_back({candidate.device, candidate.name, {}, ""});
      found = devices_.end() - 1;
    }
    std::vector<std::string>& ran = found->steps;
    if (candidate.verdict != wye::Candidate::Verdict::ran) {
      if (found->reason.empty()) found->reason = candidate.reason;
    } else if (std::find(ran.begin(), ran.end(), step) == ran.end()) {
      ran.emplace_back(step);
    }
  }
}

void Runner::note(std::string_view step, const wye::AdapterInfo& device, const std::string& reason,
                  double seconds) {
  steps_.push_back({std::string(step), device.backend, device.name, reason, seconds, "none"});
  auto found = std::find_if(devices_.begin(), devices_.end(),
                            [&](const ConsideredDevice& d) { return d.id == device.id; });
  if (found == devices_.end()) found = devices_.insert(found, {device.id, device.name, {}, ""});
  found->steps.emplace_back(step);
}

wye::Result<void> Runner::run_again(std::string_view step, const std::string& backend, wye::Job job) {
  const auto done = runtime_.submit(std::move(job), {.time_limit = time_limit, .on = backend}).wait();
  if (!done)
    return done.error().with_context("while running step '" + std::string(step) + "' on '" + backend +
                                     "' to compare");
  return {};
}

void Runner::note_agreement(std::string_view step, const std::string& backend, double error) {
  const auto found = std::find_if(agreements_.begin(), agreements_.end(),
                                  [&](const Agreement& a) { return a.step == step && a.backend == backend; });
  if (found == agreements_.end())
    agreements_.push_back({backend, std::string(step), error});
  else
    found->max_relative_error = std::max(found->max_relative_error, error);
}

}  // namespace document_network
