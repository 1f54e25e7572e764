#if WYE_WITH_SLANG_HEADER
#include "kernel/compilers/slang_abi.hpp"

#include <slang.h>

#include <cstddef>
#include <cstring>

#include "support/catch.hpp"

namespace own = wye::kernel::slang;

#define SAME_PLACE(a, b, c, d) static_assert(offsetof(own::a, b) == offsetof(::slang::c, d))
SAME_PLACE(Target, format, TargetDesc, format);
SAME_PLACE(Target, flags, TargetDesc, flags);
SAME_PLACE(Target, scalar_layout, TargetDesc, forceGLSLScalarBufferLayout);
SAME_PLACE(Target, options, TargetDesc, compilerOptionEntries);
SAME_PLACE(Target, option_count, TargetDesc, compilerOptionEntryCount);
SAME_PLACE(SessionOptions, targets, SessionDesc, targets);
SAME_PLACE(SessionOptions, matrix_layout, SessionDesc, defaultMatrixLayoutMode);
SAME_PLACE(SessionOptions, search_paths, SessionDesc, searchPaths);
SAME_PLACE(SessionOptions, macros, SessionDesc, preprocessorMacros);
SAME_PLACE(SessionOptions, file_system, SessionDesc, fileSystem);
SAME_PLACE(SessionOptions, options, SessionDesc, compilerOptionEntries);
SAME_PLACE(SessionOptions, option_count, SessionDesc, compilerOptionEntryCount);
SAME_PLACE(Option, kind, CompilerOptionEntry, value);
#undef SAME_PLACE
static_assert(sizeof(own::Option) == sizeof(slang::CompilerOptionEntry));
static_assert(sizeof(own::Macro) == sizeof(slang::PreprocessorMacroDesc));
static_assert(sizeof(own::Target) == sizeof(slang::TargetDesc));
static_assert(sizeof(own::SessionOptions) == sizeof(slang::SessionDesc));
static_assert(sizeof(own::GlobalOptions) == sizeof(SlangGlobalSessionDesc));
static_assert(own::not_found == SLANG_E_NOT_FOUND && own::no_interface == SLANG_E_NO_INTERFACE);
static_assert(own::format_spirv == SLANG_SPIRV && own::format_cuda == SLANG_CUDA_SOURCE);
static_assert(own::compiler_glslang == SLANG_PASS_THROUGH_GLSLANG &&
              own::compiler_spirv_opt == SLANG_PASS_THROUGH_SPIRV_OPT);
static_assert(own::stage_compute == SLANG_STAGE_COMPUTE && own::language_cuda == SLANG_SOURCE_LANGUAGE_CUDA);
static_assert(own::kind_struct == SLANG_TYPE_KIND_STRUCT && own::kind_matrix == SLANG_TYPE_KIND_MATRIX &&
              own::kind_vector == SLANG_TYPE_KIND_VECTOR && own::kind_scalar == SLANG_TYPE_KIND_SCALAR &&
              own::kind_resource == SLANG_TYPE_KIND_RESOURCE && own::kind_pointer == SLANG_TYPE_KIND_POINTER);
static_assert(own::rules_of_buffers == SLANG_LAYOUT_RULES_DEFAULT_STRUCTURED_BUFFER);
static_assert(own::category_bytes == SLANG_PARAMETER_CATEGORY_UNIFORM);
static_assert(own::no_line_directives == SLANG_LINE_DIRECTIVE_MODE_NONE);
static_assert(own::Target().flags == kDefaultTargetFlags);
static_assert(own::option_c_layout == static_cast<int>(slang::CompilerOptionName::ForceCLayout));
static_assert(own::option_disable_warnings == static_cast<int>(slang::CompilerOptionName::DisableWarnings));
static_assert(own::option_tabular ==
              static_cast<int>(slang::CompilerOptionName::EnableMachineReadableDiagnostics));

namespace {

/// The place of a virtual function in its table: a pointer to it has it, in the binary interface of
/// Linux.
template <class Function>
std::size_t place_of(Function function) {
  std::size_t bits = 0;
  std::memcpy(&bits, &function, sizeof bits);
  return (bits - 1) / sizeof(void*);
}

}  // namespace

TEST_CASE("Slang's tables have their functions at the indices that wye calls", "[kernel][slang]") {
  using namespace slang;
  CHECK(own::release.place() == place_of(&ISlangUnknown::release));
  CHECK(own::data.place() == place_of(&ISlangBlob::getBufferPointer));
  CHECK(own::size.place() == place_of(&ISlangBlob::getBufferSize));
  CHECK(own::create_session.place() == place_of(&IGlobalSession::createSession));
  CHECK(own::set_compiler_path.place() == place_of(&IGlobalSession::setDownstreamCompilerPath));
  CHECK(own::set_prelude.place() == place_of(&IGlobalSession::setLanguagePrelude));
  CHECK(own::prelude.place() == place_of(&IGlobalSession::getLanguagePrelude));
  CHECK(own::check_compiler.place() == place_of(&IGlobalSession::checkPassThroughSupport));
  CHECK(own::compose.place() == place_of(&ISession::createCompositeComponentType));
  CHECK(own::load_module.place() == place_of(&ISession::loadModuleFromIRBlob));
  CHECK(own::load_text.place() == place_of(&ISession::loadModuleFromSourceString));
  CHECK(own::layout.place() == place_of(&IComponentType::getLayout));
  CHECK(own::entry_point_code.place() == place_of(&IComponentType::getEntryPointCode));
  CHECK(own::link.place() == place_of(&IComponentType::link));
  CHECK(own::entry_point_count.place() == place_of(&IModule::getDefinedEntryPointCount));
  CHECK(own::entry_point.place() == place_of(&IModule::getDefinedEntryPoint));
  CHECK(own::serialize.place() == place_of(&IModule::serialize));
  CHECK(own::find_entry_point.place() == place_of(&IModule::findAndCheckEntryPoint));
}
#endif
