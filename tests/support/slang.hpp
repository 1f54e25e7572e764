#pragma once
/// Slang's compiler, if the environment of the tests has it (cmake/wheels.sh slang).
#include "kernel/compilers/slang.hpp"
#include "support/catch.hpp"

namespace wye::test {

/// Returns whether it is installed; prints a line if not.
inline bool has_slang() {
  static const auto held = kernel::SlangCompiler::share();  // one start of 200 ms for all tests
  const auto build = held->build_id(kernel::SlangCompiler::Target::spirv);
  if (!build) WARN("Skipped, for want of Slang: " << build.error().sentence());
  return build.has_value();
}

}  // namespace wye::test
