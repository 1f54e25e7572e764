#include "scheduler/placement.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "device/backend.hpp"

namespace wye::inline v0 {

std::vector<Preference> default_preferences() {
  using namespace literals;
  const auto order = [](device::BackendKind first) {
    const std::vector<std::string_view> names = device::backend_order(first);
    return std::vector<std::string>(names.begin(), names.end());
  };
  const std::vector<std::string> gpu_first = order(device::BackendKind::gpu);
  const std::vector<std::string> cpu_first = order(device::BackendKind::cpu);
  // The transfer of a small vector to a GPU and back takes longer than one pass of the CPU over it.
  // A large vector hides the cost of the submission; a matrix does so at a much smaller size. A
  // simulation computes many steps on memory that stays on the device. Number theory has hundreds
  // of steps for each number that is transferred, and a picture has many pixels for each byte that
  // it is made of.
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
      {workload_types::simulation, 0_B, cpu_first},
      {workload_types::simulation, 64_KiB, gpu_first},
      {workload_types::number_theory, 0_B, cpu_first},
      {workload_types::number_theory, 256_KiB, gpu_first},
      {workload_types::rendering, 0_B, cpu_first},
      {workload_types::rendering, 1_MiB, gpu_first},
      {workload_types::custom, 0_B, cpu_first},
      {workload_types::custom, 1_MiB, gpu_first},
      {workload_types::shader_compilation, 0_B, gpu_first},
  };
}

namespace scheduler {

std::vector<Choice> find_groups(std::vector<Choice> devices, PlacementMode mode) noexcept {
  constexpr std::size_t most = 64;  // the bits of `Choice::others`
  const bool learns = mode == PlacementMode::learned;
  const auto are_equal = [&](const Choice& a, const Choice& b) {
    return a.is_gpu() && b.is_gpu() && a.backend == b.backend && a.type == b.type && a.name == b.name;
  };
  for (std::size_t d = 0; d < devices.size(); ++d) {
    devices[d].equal = d;
    for (std::size_t first = d; first-- > 0;)
      if (are_equal(devices[d], devices[first])) devices[d].equal = first;
  }
  for (Choice& device : devices) {
    // A processor may have devices of several backends.
    const auto is_on_silicon_of = [&](const Choice& other) {
      return std::any_of(devices.begin(), devices.end(), [&](const Choice& member) {
        return member.equal == device.equal && member.silicon == other.silicon;
      });
    };
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const Choice& other = devices[d];
      if (&other == &device) continue;
      if (other.equal == device.equal) {
        device.has_equals = true;
        continue;
      }
      const bool is_apart = !is_on_silicon_of(other);
      if (d >= most || !(learns || (is_apart && device.is_gpu() && other.is_gpu()))) continue;
      device.others |= std::uint64_t{1} << d;
      if (is_apart) device.apart |= std::uint64_t{1} << d;
    }
  }
  return devices;
}

Move decide_move(const Wait& wait, Duration run) noexcept {
  if (wait.run == Duration::zero()) return wait.is_long() && !wait.until_start ? Move::first : Move::none;
  if (run == Duration::zero()) return Move::none;
  const Duration after_start = wait.until_start ? Duration::zero() : wait.run;
  const Duration before = wait.until_start ? wait.before - wait.run : wait.before;
  if (run < after_start + wait.run / wait.devices) return Move::first;
  return run < after_start + before / wait.devices ? Move::last : Move::none;
}

bool names(std::string_view prefer, const Choice& device) noexcept {
  return prefer == device.id || prefer == device.backend || (prefer == "gpu" && device.is_gpu());
}

Row preferring(const Row& row, std::string_view prefer) {
  Row made = row;
  made.prefer = prefer;
  for (std::size_t d = 0; d < std::min<std::size_t>(row.choices.size(), 64); ++d)
    if (names(prefer, row.choices[d])) made.preferred |= std::uint64_t{1} << d;
  std::stable_partition(made.devices.begin(), made.devices.end(),
                        [&](std::size_t d) { return made.is_preferred(d); });
  return made;
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

Preferences::Preferences(const std::vector<Preference>& replacing, std::span<const Choice> devices) {
  std::vector<Preference> rows = default_preferences();
  for (const Preference& row : replacing)
    std::erase_if(rows, [&](const Preference& old) { return old.type == row.type; });
  rows.insert(rows.end(), replacing.begin(), replacing.end());
  for (Preference& row : rows) {
    auto of_type =
        std::find_if(types_.begin(), types_.end(), [&](const Rows& other) { return other.type == row.type; });
    if (of_type == types_.end()) of_type = types_.insert(of_type, {row.type, {}});
    // Of two rows for the same size, the later one applies.
    const auto smaller = std::find_if(of_type->rows.begin(), of_type->rows.end(),
                                      [&](const Row& other) { return other.at_least <= row.at_least; });
    std::vector<std::size_t> ordered = order(devices, row);
    of_type->rows.insert(smaller, {std::move(row), std::move(ordered), devices});
  }
  // Most kernels of applications are of this type.
  std::stable_partition(types_.begin(), types_.end(),
                        [](const Rows& of) { return of.type == workload_types::custom; });
  as_found_.type = workload_types::custom;
  as_found_.devices = order(devices, as_found_);
  as_found_.choices = devices;
}

const Preferences::Rows* Preferences::rows_of(WorkloadType type) const noexcept {
  // Most callers pass a constant of the library, whose name is the same object.
  for (const Rows& of : types_)
    if (of.type.name.data() == type.name.data() && of.type.name.size() == type.name.size()) return &of;
  for (const Rows& of : types_)
    if (of.type == type) return &of;
  return nullptr;
}

const Row& Preferences::row(WorkloadType type, Bytes bytes) const noexcept {
  if (const Rows* const of = rows_of(type))
    for (const Row& row : of->rows)
      if (row.at_least <= bytes) return row;
  return type == workload_types::custom ? as_found_ : row(workload_types::custom, bytes);
}

}  // namespace scheduler
}  // namespace wye
