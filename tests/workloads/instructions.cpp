#include <hwy/targets.h>

#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "legs.hpp"

namespace wye::test {

void limit_instructions() {
  const char* const name = std::getenv("WYE_TEST_INSTRUCTIONS");
  if (name == nullptr) return;
  constexpr std::int64_t scalar = HWY_SCALAR | HWY_EMU128, sse4 = scalar | HWY_SSE4;
  const std::string_view newest(name);
  if (newest != "avx2" && newest != "sse4" && newest != "scalar")
    throw std::invalid_argument("WYE_TEST_INSTRUCTIONS is none of 'avx2', 'sse4' and 'scalar'.");
  const std::int64_t targets = newest == "avx2" ? sse4 | HWY_AVX2 : newest == "sse4" ? sse4 : scalar;
  hwy::SetSupportedTargetsForTest(targets & hwy::SupportedTargets());
}

}  // namespace wye::test
