#include "kernel/reflect/spirv.hpp"

#if WYE_WITH_GLSL
#include <spirv-tools/libspirv.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "kernel/compilers/diagnostics.hpp"
#endif

namespace wye::inline v0::kernel {

#if WYE_WITH_GLSL

namespace {

Result<void> validate(std::span<const std::uint32_t> words, bool scalar_layout) {
  const std::unique_ptr<spv_context_t, decltype(&spvContextDestroy)> context(
      spvContextCreate(SPV_ENV_VULKAN_1_2), spvContextDestroy);
  const std::unique_ptr<spv_validator_options_t, decltype(&spvValidatorOptionsDestroy)> options(
      spvValidatorOptionsCreate(), spvValidatorOptionsDestroy);
  if (!context || !options) return Error(Errc::out_of_memory, "The SPIR-V validator could not be started.");
  spvValidatorOptionsSetScalarBlockLayout(options.get(), scalar_layout);
  spv_const_binary_t binary{words.data(), words.size()};
  spv_diagnostic said = nullptr;
  const spv_result_t result = spvValidateWithOptions(context.get(), options.get(), &binary, &said);
  const std::unique_ptr<spv_diagnostic_t, decltype(&spvDiagnosticDestroy)> diagnostic(said,
                                                                                      spvDiagnosticDestroy);
  if (result == SPV_SUCCESS) return {};
  if (!diagnostic)
    return Error(Errc::invalid_argument,
                 base::text("The SPIR-V is not valid (code {}).", static_cast<int>(result)));
  std::string_view what = diagnostic->error;
  const std::size_t first = std::min(what.find('\n'), what.size());
  std::string_view rest = what.substr(first);
  what = what.substr(0, first);
  while (!what.empty() && (what.back() == '.' || what.back() == ' ')) what.remove_suffix(1);
  // The validator counts instructions from 1. Index 0 means that it could not read the words.
  Error error(Errc::invalid_argument, diagnostic->position.index == 0
                                          ? base::text("The SPIR-V is not valid: {}.", what)
                                          : base::text("The SPIR-V is not valid at instruction {}: {}.",
                                                       diagnostic->position.index, what));
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (line.find_first_not_of(" \t") != line.npos) error = error.with_context(std::string(trimmed(line)));
    rest.remove_prefix(line.size());
  }
  return error;
}

}  // namespace

Result<Features> validate(std::span<const std::uint32_t> words) {
  if (validate(words, false)) return Features();
  if (auto valid = validate(words, true); !valid) return std::move(valid).error();
  return Features{Feature::scalar_layout};
}

#else

Result<Features> validate(std::span<const std::uint32_t>) { return Features(); }

#endif

}  // namespace wye::kernel
