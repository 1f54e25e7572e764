#pragma once
/// Protects against stack overflow in compilers.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/worker.hpp"
#include "kernel/compilers/includes.hpp"

namespace wye::inline v0::kernel {

/// Checks the nesting of a source, `text` and its includes. Compilers recurse for every nested
/// bracket and operator: 8 MiB of stack overflow at 4,000 of either (NVRTC 13.0), 5,000 (Slang
/// 2026.12), 10,000 (glslang 12). Expanded macros are not checked.
/// Errors: compile_failed.
Result<void> check_nesting(std::string_view text, const std::vector<SourceText>& texts,
                           const std::string& kernel);

/// Runs a compiler on a thread whose stack suffices for ten times the depth that `check_nesting`
/// allows.
template <class Compiler>
auto run_compiler(Compiler compiler) {
  return base::on_stack(Bytes{64ull << 20}, "wye-compile", std::move(compiler));
}

}  // namespace wye::kernel
