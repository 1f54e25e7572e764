#include <algorithm>

#include "cpu.hpp"

namespace wye::inline v0::workloads {

void cpu::copy(Range range, std::span<const float> from, std::span<float> to) {
  const Range items = below(range, to.size());
  std::copy(from.data() + items.first, from.data() + items.last, to.data() + items.first);
}

}  // namespace wye::workloads
