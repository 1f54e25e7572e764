#include "runner.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "text.hpp"

namespace document_network {
namespace {

constexpr std::string_view measure = "cpu";
/// A slow machine may take its time.
constexpr std::chrono::minutes time_limit{10};

bool is_called(const wye::AdapterInfo& adapter, std::string_view name) {
  return adapter.id == name || adapter.backend == name;
}

/// Of several jobs of a step, the one whose kernel took longest to get says where it was.
int effort(std::string_view tier) {
  return tier == "built" ? 3 : tier == "disk" ? 2 : tier == "memory" ? 1 : 0;
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
  // Not among those that are opened by default; it may be there for who asks.
  return wye::Runtime::open({.backends = std::vector<std::string>{backend, std::string(measure)}});
}

double max_relative_error(std::span<const float> values, std::span<const float> reference) {
  double largest = 0, error = 0;
  for (const float value : reference)
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(static_cast<double>(value)));
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
  for (const wye::Device& device : runtime_.devices()) {
    const std::string& other = device.info().backend;
    if (other == measure)
      has_measure_ = true;
    else if (std::find(compare_.begin(), compare_.end(), other) == compare_.end())
      compare_.push_back(other);
  }
}

wye::Result<void> Runner::run(std::string_view step, std::span<float> output,
                              const std::function<wye::Job(std::span<float> output)>& make) {
  std::vector<float> before;
  if (!compare_.empty()) before.assign(output.begin(), output.end());

  auto done = run_on(on_, make(output));
  if (!done) return std::move(done).error().with_context("while running step '" + std::string(step) + "'");
  note(step, *done);
  if (compare_.empty()) return {};
  if (!has_measure_)
    return wye::Error(wye::Errc::unavailable,
                      "There is nothing to compare with: backend 'cpu' is not in use.");

  std::vector<float> reference = before;
  auto measured = run_on(measure, make(reference));
  if (!measured)
    return std::move(measured).error().with_context("while running step '" + std::string(step) + "'");
  for (const std::string& backend : compare_) {
    std::vector<float> values = before;
    auto other = run_on(backend, make(values));
    if (!other)
      return std::move(other).error().with_context("while running step '" + std::string(step) + "'");
    note(step, backend, max_relative_error(values, reference));
  }
  return {};
}

wye::Result<wye::Outcome> Runner::run_on(std::string_view backend, wye::Job job) {
  return runtime_.submit(std::move(job), {.time_limit = time_limit, .on = backend}).wait();
}

void Runner::note(std::string_view step, const wye::Outcome& outcome) {
  auto found = std::find_if(steps_.begin(), steps_.end(), [&](const Step& s) { return s.name == step; });
  if (found == steps_.end()) {
    steps_.push_back({std::string(step), "", "", outcome.reason(), 0, "none"});
    found = steps_.end() - 1;
  }
  add_name(found->backend, outcome.backend());
  add_name(found->device, outcome.device().name);
  found->seconds += std::chrono::duration<double>(outcome.ran()).count();
  const std::string_view tier = wye::name(outcome.cache());
  if (effort(tier) > effort(found->cache)) found->cache = tier;
}

void Runner::note(std::string_view step, const std::string& backend, double error) {
  const auto found = std::find_if(agreements_.begin(), agreements_.end(),
                                  [&](const Agreement& a) { return a.step == step && a.backend == backend; });
  if (found == agreements_.end())
    agreements_.push_back({backend, std::string(step), error});
  else
    found->max_relative_error = std::max(found->max_relative_error, error);
}

}  // namespace document_network
