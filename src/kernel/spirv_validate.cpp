#include "kernel/spirv.hpp"

#if WYE_WITH_GLSL
#include <spirv-tools/libspirv.h>

#include <memory>

#include "base/text.hpp"
#endif

namespace wye {
inline namespace v0 {
namespace kernel {

#if WYE_WITH_GLSL

Result<void> validate(std::span<const std::uint32_t> words) {
  const std::unique_ptr<spv_context_t, decltype(&spvContextDestroy)> context(
      spvContextCreate(SPV_ENV_VULKAN_1_2), spvContextDestroy);
  if (!context) return Error(Errc::out_of_memory, "The SPIR-V validator could not be started.");
  spv_const_binary_t binary{words.data(), words.size()};
  spv_diagnostic said = nullptr;
  const spv_result_t result = spvValidate(context.get(), &binary, &said);
  const std::unique_ptr<spv_diagnostic_t, decltype(&spvDiagnosticDestroy)> diagnostic(said,
                                                                                      spvDiagnosticDestroy);
  if (result == SPV_SUCCESS) return {};
  if (!diagnostic)
    return Error(Errc::invalid_argument, base::text("The SPIR-V is not valid (code {}).", result));
  std::string_view what = diagnostic->error;
  what = what.substr(0, what.find('\n'));
  while (!what.empty() && (what.back() == '.' || what.back() == ' ')) what.remove_suffix(1);
  return Error(Errc::invalid_argument,
               base::text("The SPIR-V is not valid at word {}: {}.", diagnostic->position.index, what));
}

#else

Result<void> validate(std::span<const std::uint32_t>) { return {}; }

#endif

}  // namespace kernel
}  // namespace v0
}  // namespace wye
