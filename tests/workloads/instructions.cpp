#include <hwy/targets.h>

#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "legs.hpp"

namespace wye::test {

void limit_instructions() {
  const char* const name = std::getenv("WYE_TEST_INSTRUCTIONS");
  if (name == nullptr) return;
  constexpr std::int64_t scalar = HWY_SCALAR | HWY_EMU128;
  const bool is_sse4 = std::string_view(name) == "sse4";
  if (!is_sse4 && std::string_view(name) != "scalar")
    throw std::invalid_argument("WYE_TEST_INSTRUCTIONS is neither 'sse4' nor 'scalar'.");
  hwy::SetSupportedTargetsForTest(is_sse4 ? HWY_SSE4 | scalar : scalar);
}

}  // namespace wye::test
