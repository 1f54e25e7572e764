#include "device/artefact.hpp"

#include <algorithm>
#include <limits>

#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace device {
namespace {

/// Pieces of `tile` items that cover `items`.
std::uint64_t pieces(std::uint64_t items, std::uint64_t tile) {
  if (items == 0) return 0;
  return tile == whole ? 1 : (items - 1) / tile + 1;
}

/// Items of one dimension that lie together: never more than there are.
std::uint64_t together(std::uint64_t items, std::uint64_t tile) {
  return tile == whole ? items : std::min(items, tile);
}

std::uint64_t saturated(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::uint64_t>::max() : product;
}

}  // namespace

Result<Extent3> groups_for(const Artefact& artefact, Extent3 items, const Limits& limits,
                           const std::string& device_id) {
  const Extent3 groups(pieces(items.x, artefact.tile.x), pieces(items.y, artefact.tile.y),
                       pieces(items.z, artefact.tile.z));
  const struct {
    char dimension;
    std::uint64_t wanted, limit;
  } checks[] = {
      {'x', groups.x, limits.groups.x}, {'y', groups.y, limits.groups.y}, {'z', groups.z, limits.groups.z}};
  for (const auto& check : checks)
    if (check.wanted > check.limit)
      return Error(Errc::unsupported,
                   base::text("Grid of kernel '{}' in {} ({} workgroups) exceeds the limit of '{}' ({}).",
                              artefact.kernel, check.dimension, check.wanted, device_id, check.limit));
  return groups;
}

std::uint64_t grain_for(const Artefact& artefact, Extent3 items) {
  const Extent3 run(together(items.x, artefact.tile.x), together(items.y, artefact.tile.y),
                    together(items.z, artefact.tile.z));
  // A tile of several rows can only be covered by whole rows, one of several layers by whole layers.
  std::uint64_t grain = run.x;
  if (run.y > 1) grain = saturated(items.x, run.y);
  if (run.z > 1) grain = saturated(saturated(items.x, items.y), run.z);
  return std::max<std::uint64_t>(grain, 1);
}

}  // namespace device
}  // namespace v0
}  // namespace wye
