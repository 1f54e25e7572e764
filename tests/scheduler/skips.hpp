#pragma once
/// Skips that are reported.
#include <wye/runtime/runtime.hpp>

#include <string_view>

#include "support/catch.hpp"

namespace wye::test {

/// Returns whether a backend has no device, and reports the skip.
inline bool skips_without(const Runtime& runtime, std::string_view backend) {
  for (const Device& device : runtime.devices())
    if (device.info().backend == backend) return false;
  WARN("Skipped: there is no device of '" << backend << "'.");
  return true;
}

}  // namespace wye::test
