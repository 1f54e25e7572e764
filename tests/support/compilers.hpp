#pragma once
/// The compilers of GLSL and Slang that the tests find.
#include "kernel/compilers/glsl.hpp"
#include "kernel/compilers/slang.hpp"
#include "support/skip.hpp"

namespace wye::test {

/// Returns whether this build compiles GLSL. Reports a skip if not.
inline bool has_glsl() {
  const auto compiler = kernel::GlslCompiler::share();
  if (!compiler) skip("this build has no GLSL compiler");
  return compiler != nullptr;
}

/// Returns whether libslang is present (cmake/wheels.sh slang). Reports a skip if not.
inline bool has_slang() {
  static const auto held = kernel::SlangCompiler::share();  // one start of 200 ms for all tests
  const auto build = held->build_id(kernel::SlangCompiler::Target::spirv);
  if (!build) skip(build.error().sentence());
  return build.has_value();
}

}  // namespace wye::test
