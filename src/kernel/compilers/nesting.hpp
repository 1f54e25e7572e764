#pragma once
/// Sources that are nested deeper than their compilers can bear.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/worker.hpp"
#include "kernel/compilers/includes.hpp"

namespace wye {
inline namespace v0 {
namespace kernel {

/// Whether compilers can bear a source, `text` and what it includes. They call themselves for every bracket and operator within
/// another: 8 MiB of stack are gone with 4,000 of either (NVRTC 13.0), 5,000 (Slang 2026.12), 10,000 (glslang 12). What macros
/// make is not seen here.
/// Errors: compile_failed.
Result<void> check_nesting(std::string_view text, const std::vector<SourceText>& texts,
                           const std::string& kernel);

/// Runs a compiler on a stack for ten times the depth that `check_nesting` allows, not on that of a host's thread.
template <class Compiler>
auto run_compiler(Compiler compiler) {
  return base::on_stack(Bytes{64ull << 20}, "wye-compile", std::move(compiler));
}

}  // namespace kernel
}  // namespace v0
}  // namespace wye
