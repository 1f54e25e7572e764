#pragma once
/// Reported skips. A test that this machine makes meaningless calls `skip` and returns; no test
/// returns without a report.
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "support/catch.hpp"

namespace wye::test {

/// Reports that the running test ends here, with `reason`: as a warning of the test, and as a line
/// of the file that WYE_TEST_SKIPS names. `tests/run.sh` counts these lines.
inline void skip(std::string_view reason) {
  WARN("Skipped: " << reason);
  if (const char* file = std::getenv("WYE_TEST_SKIPS"))
    std::ofstream(file, std::ios::app)
        << Catch::getResultCapture().getCurrentTestName() + ": " + std::string(reason) + "\n";
}

/// Returns whether the runtime or pool has a device of `backend`. Reports a skip if not.
template <class Owner>
bool has_device(const Owner& owner, std::string_view backend) {
  for (const auto& device : owner.devices())
    if (device.info().backend == backend) return true;
  skip("there is no device of backend '" + std::string(backend) + "'");
  return false;
}

}  // namespace wye::test
