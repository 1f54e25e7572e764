#include "shaders.hpp"

#include "kernel/compilers/glsl.hpp"
#include "support/catch.hpp"

#if WYE_WITH_GLSL
#include <spirv-tools/libspirv.h>

namespace wye::test {

Words compile(const std::string& glsl) {
  auto words = kernel::GlslCompiler::share()->compile(Glsl{.text = glsl}, "test");
  if (!words) FAIL(words.error().describe());
  return *words;
}

Words assemble(const std::string& text) {
  spv_context context = spvContextCreate(SPV_ENV_UNIVERSAL_1_6);
  spv_binary binary = nullptr;
  spv_diagnostic said = nullptr;
  const spv_result_t result = spvTextToBinary(context, text.data(), text.size(), &binary, &said);
  const std::string error = said ? std::string(said->error) : std::string();
  Words words;
  if (result == SPV_SUCCESS) words.assign(binary->code, binary->code + binary->wordCount);
  spvDiagnosticDestroy(said);
  spvBinaryDestroy(binary);
  spvContextDestroy(context);
  if (result != SPV_SUCCESS) FAIL("assembler: " << error << "\n" << text);
  words[1] = 0x00010500;
  return words;
}

Words module(const std::string& annotations, const std::string& declarations, const std::string& body,
             const std::string& entry, const std::string& mode) {
  return assemble("OpCapability Shader\nOpMemoryModel Logical GLSL450\n" + entry + "\n" + mode + "\n" +
                  annotations +
                  R"(
%void = OpTypeVoid
%code = OpTypeFunction %void
%uint = OpTypeInt 32 0
%float = OpTypeFloat 32
%u0 = OpConstant %uint 0
%u1 = OpConstant %uint 1
%u2 = OpConstant %uint 2
%u3 = OpConstant %uint 3
%v3 = OpTypeVector %uint 3
)" + declarations +
                  R"(
%main = OpFunction %void None %code
%start = OpLabel
)" + body + R"(
OpReturn
OpFunctionEnd
)");
}

}  // namespace wye::test
#endif
