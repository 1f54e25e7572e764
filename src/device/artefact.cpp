#include "device/artefact.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text.hpp"

namespace wye::inline v0::device {
namespace {

/// Returns the number of tiles that cover `items`.
std::uint64_t tiles(std::uint64_t items, std::uint64_t tile) {
  if (items == 0) return 0;
  return tile == whole ? 1 : (items - 1) / tile + 1;
}

/// Returns the items of one dimension in one tile, at most all of them.
std::uint64_t items_in_tile(std::uint64_t items, std::uint64_t tile) {
  return tile == whole ? items : std::min(items, tile);
}

std::uint64_t saturated(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::uint64_t>::max() : product;
}

/// The bytes of a slot in the parameter block, if it has any, and the name of the kind in messages.
struct PassingForm {
  std::optional<std::uint64_t> size;
  std::string_view name;
};
PassingForm form_of(Passing::Kind kind, const Slot& slot) {
  switch (kind) {
    case Passing::Kind::host: return {{}, "host memory"};
    case Passing::Kind::descriptor: return {{}, "a descriptor"};
    case Passing::Kind::bytes: return {slot.size, "bytes"};
    case Passing::Kind::address: return {8, "an address"};
    case Passing::Kind::span: return {16, "an address and a count"};
  }
  return {{}, "nothing known"};
}

}  // namespace

Result<void> check_passing(const Artefact& artefact, std::string_view devices,
                           std::initializer_list<Passing::Kind> kinds) {
  const std::vector<Slot>& slots = artefact.schema.slots;
  if (artefact.passing.size() != slots.size())
    return Error(Errc::invalid_argument,
                 base::text("Kernel '{}' has {} parameters and describes the passing of {}.", artefact.kernel,
                            slots.size(), artefact.passing.size()));
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Passing& passing = artefact.passing[i];
    const PassingForm form = form_of(passing.kind, slots[i]);
    if (std::find(kinds.begin(), kinds.end(), passing.kind) == kinds.end())
      return Error(Errc::unsupported,
                   base::text("Parameter {} ('{}') of kernel '{}' is passed as {}, which no {} supports.", i,
                              slots[i].name, artefact.kernel, form.name, devices));
    const bool is_value = slots[i].kind == SlotKind::scalar || slots[i].kind == SlotKind::structure;
    if (passing.kind != Passing::Kind::host && is_value != (passing.kind == Passing::Kind::bytes))
      return Error(Errc::invalid_argument,
                   base::text("Parameter {} ('{}') of kernel '{}' is a {} and cannot be passed as {}.", i,
                              slots[i].name, artefact.kernel, name(slots[i].kind), form.name));
    if (form.size && passing.offset + *form.size > artefact.parameter_bytes)
      return Error(
          Errc::invalid_argument,
          base::text("Parameter {} ('{}') of kernel '{}' ends at byte {} of a parameter block of {} bytes.",
                     i, slots[i].name, artefact.kernel, passing.offset + *form.size,
                     artefact.parameter_bytes));
  }
  return {};
}

Result<void> check_plain_launch(const Artefact& artefact, std::string_view devices) {
  const std::string_view wanted = artefact.launch.cluster       ? "clusters of workgroups"
                                  : artefact.launch.cooperative ? "a cooperative launch"
                                  : artefact.dynamic_shared     ? "dynamic shared memory"
                                                                : "";
  if (wanted.empty()) return {};
  return Error(Errc::unsupported,
               base::text("Kernel '{}' needs {}, which no {} supports.", artefact.kernel, wanted, devices));
}

Extent3 groups_for(const Artefact& artefact, Extent3 items) noexcept {
  return Extent3(tiles(items.x, artefact.tile.x), tiles(items.y, artefact.tile.y),
                 tiles(items.z, artefact.tile.z));
}

Result<void> check_groups(const Artefact& artefact, Extent3 groups, const Limits& limits,
                          const std::string& device_id, std::uint64_t row_groups) {
  const auto exceeds = [&](char dimension, std::uint64_t wanted, std::uint64_t limit) {
    return Error(Errc::unsupported,
                 base::text("Grid of kernel '{}' in {} ({} workgroups) exceeds the limit of '{}' ({}).",
                            artefact.kernel, dimension, wanted, device_id, limit));
  };
  const bool is_row = groups.y == 1 && groups.z == 1;
  const std::uint64_t most_x = std::max(limits.groups.x, is_row ? row_groups : 0);
  if (groups.x > most_x) return exceeds('x', groups.x, most_x);
  if (groups.y > limits.groups.y) return exceeds('y', groups.y, limits.groups.y);
  if (groups.z > limits.groups.z) return exceeds('z', groups.z, limits.groups.z);
  return {};
}

std::uint64_t grain_for(const Artefact& artefact, Extent3 items) {
  const Extent3 run(items_in_tile(items.x, artefact.tile.x), items_in_tile(items.y, artefact.tile.y),
                    items_in_tile(items.z, artefact.tile.z));
  // Only whole rows cover a tile of several rows, and only whole layers cover a tile of several
  // layers.
  std::uint64_t grain = run.x;
  if (run.y > 1) grain = saturated(items.x, run.y);
  if (run.z > 1) grain = saturated(saturated(items.x, items.y), run.z);
  return std::max<std::uint64_t>(grain, 1);
}

}  // namespace wye::device
