#include "scheduler/placement.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "device/backend.hpp"

namespace wye {
inline namespace v0 {

std::vector<Preference> default_preferences() {
  using namespace literals;
  const auto order = [](device::BackendKind first) {
    const std::vector<std::string_view> names = device::backend_order(first);
    return std::vector<std::string>(names.begin(), names.end());
  };
  const std::vector<std::string> gpu_first = order(device::BackendKind::gpu);
  const std::vector<std::string> cpu_first = order(device::BackendKind::cpu);
  // The transfer of a small vector to a GPU and back takes longer than one pass of the CPU over it. A large
  // vector hides the cost of the submission; a matrix does so at a much smaller size.
  return {
      {workload_types::vector, 0_B, cpu_first},
      {workload_types::vector, 64_MiB, gpu_first},
      {workload_types::matrix, 0_B, cpu_first},
      {workload_types::matrix, 1_MiB, gpu_first},
      {workload_types::attention, 0_B, cpu_first},
      {workload_types::attention, 1_MiB, gpu_first},
      {workload_types::graph, 0_B, cpu_first},
      {workload_types::graph, 16_MiB, gpu_first},
      {workload_types::timeline, 0_B, cpu_first},
      {workload_types::timeline, 64_MiB, gpu_first},
      {workload_types::image, 0_B, cpu_first},
      {workload_types::image, 1_MiB, gpu_first},
      {workload_types::audio, 0_B, cpu_first},
      {workload_types::audio, 4_MiB, gpu_first},
      {workload_types::custom, 0_B, cpu_first},
      {workload_types::custom, 1_MiB, gpu_first},
      {workload_types::shader_compilation, 0_B, gpu_first},
  };
}

namespace scheduler {

Preferences::Preferences(std::vector<Preference> replacing) : rows_(default_preferences()) {
  for (const Preference& row : replacing)
    std::erase_if(rows_, [&](const Preference& old) { return old.type == row.type; });
  std::move(replacing.begin(), replacing.end(), std::back_inserter(rows_));
}

const Preference& Preferences::row(WorkloadType type, Bytes bytes) const {
  const Preference* best = nullptr;
  for (const Preference& row : rows_)
    if (row.type == type && row.at_least <= bytes && (!best || row.at_least >= best->at_least)) best = &row;
  if (best) return *best;
  if (type != workload_types::custom) return row(workload_types::custom, bytes);
  static const Preference as_found{workload_types::custom, Bytes{0}, {}};
  return as_found;
}

std::vector<std::size_t> order(std::span<const Choice> devices, const Preference& row) {
  const auto rank = [&](std::size_t d) {
    const auto named = std::find(row.backends.begin(), row.backends.end(), devices[d].backend);
    return std::pair(devices[d].emulated, std::distance(row.backends.begin(), named));
  };
  std::vector<std::size_t> indices(devices.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  std::stable_sort(indices.begin(), indices.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  return indices;
}

Orders::Orders(std::span<const Choice> devices, const Preferences& preferences)
    : as_found_(order(devices, Preference{workload_types::custom, Bytes{0}, {}})) {
  for (const Preference& row : preferences.rows()) rows_.emplace_back(&row, order(devices, row));
}

const std::vector<std::size_t>& Orders::of(const Preference& row) const noexcept {
  for (const auto& [known, devices] : rows_)
    if (known == &row) return devices;
  return as_found_;
}

}  // namespace scheduler
}  // namespace v0
}  // namespace wye
