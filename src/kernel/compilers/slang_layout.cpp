#include "kernel/compilers/slang_layout.hpp"

#include <algorithm>
#include <type_traits>

#include "base/text.hpp"

namespace wye::inline v0::kernel {

namespace {

/// The largest depth of nested structs and arrays. Limits the recursion for a struct that points at
/// itself.
constexpr int most_deep = 32;

std::string bytes_text(std::size_t n) { return base::text("{} byte{}", n, n == 1 ? "" : "s"); }

}  // namespace

const char* SlangLayouts::open(DynamicLibrary& library) {
  const char* missing = nullptr;
  const auto find = [&](auto& function, const char* name) {
    function = library.function<std::remove_reference_t<decltype(function)>>(name);
    if (!function && !missing) missing = name;
  };
  find(entry, "spReflection_getEntryPointByIndex");
  find(variable, "spReflectionVariableLayout_GetVariable");
  find(variable_name, "spReflectionVariable_GetName");
  find(parameters_, "spReflectionEntryPoint_getParameterCount");
  find(parameter_, "spReflectionEntryPoint_getParameterByIndex");
  find(type_, "spReflectionVariableLayout_GetTypeLayout");
  find(offset_, "spReflectionVariableLayout_GetOffset");
  find(kind_, "spReflectionTypeLayout_getKind");
  find(stride_, "spReflectionTypeLayout_GetStride");
  find(fields_, "spReflectionTypeLayout_GetFieldCount");
  find(field_, "spReflectionTypeLayout_GetFieldByIndex");
  find(element_, "spReflectionTypeLayout_GetElementTypeLayout");
  find(type_layout_, "spReflection_GetTypeLayout");
  find(type_of_, "spReflectionTypeLayout_GetType");
  find(type_name_, "spReflectionType_GetName");
  return missing;
}

std::string SlangLayouts::difference(slang::Layout* vulkan, slang::Layout* cuda) const {
  slang::Entry *const there = entry(vulkan, 0), *const here = entry(cuda, 0);
  if (!there || !here) return {};
  const unsigned count = std::min(parameters_(there), parameters_(here));
  for (unsigned i = 0; i < count; ++i) {
    slang::Parameter* const parameter = parameter_(there, i);
    std::string found =
        between(name_of(parameter), {vulkan, type_(parameter)}, {cuda, type_(parameter_(here, i))}, 0);
    if (!found.empty()) return found;
  }
  return {};
}

std::string SlangLayouts::name_of(slang::Parameter* parameter) const {
  slang::Variable* const named = variable(parameter);
  const char* const name = named ? variable_name(named) : nullptr;
  return name ? name : "";
}

/// Returns the element of an array, a buffer or a pointer. Slang reports one layout of a pointee
/// for all targets, so this looks up the layout of the pointee again.
SlangLayouts::Side SlangLayouts::element(Side of) const {
  slang::TypeLayout* const element = element_(of.type);
  if (!element || kind_(of.type) != slang::kind_pointer) return {of.layout, element};
  return {of.layout, type_layout_(of.layout, type_of_(element), slang::rules_of_buffers)};
}

std::string SlangLayouts::between(const std::string& name, Side vulkan, Side cuda, int depth) const {
  if (!vulkan.type || !cuda.type || depth > most_deep) return {};
  switch (kind_(vulkan.type)) {
    case slang::kind_struct: return between_structs(vulkan, cuda, depth);
    case slang::kind_scalar:
    case slang::kind_vector:
    case slang::kind_matrix: break;
    default: return between(name, element(vulkan), element(cuda), depth + 1);
  }
  const std::size_t there = stride_(vulkan.type, slang::category_bytes),
                    here = stride_(cuda.type, slang::category_bytes);
  if (there == here) return {};
  return base::text("'{}' has {} on Vulkan and {} on CUDA; use scalars instead of the vector", name,
                    bytes_text(there), bytes_text(here));
}

std::string SlangLayouts::between_structs(Side vulkan, Side cuda, int depth) const {
  const char* const named = type_name_(type_of_(vulkan.type));
  const std::string name = named ? named : "";
  const std::uint32_t count = std::min(fields_(vulkan.type), fields_(cuda.type));
  for (std::uint32_t i = 0; i < count; ++i)
    if (kind_(type_(field_(vulkan.type, i))) == slang::kind_resource)
      return {};  // it is not plain bytes on Vulkan
  for (std::uint32_t i = 0; i < count; ++i) {
    slang::Parameter *const there = field_(vulkan.type, i), *const here = field_(cuda.type, i);
    const std::string field = name_of(there);
    const std::size_t at = offset_(there, slang::category_bytes),
                      on_cuda = offset_(here, slang::category_bytes);
    if (at < on_cuda)
      return base::text(
          "'{}' of struct '{}' is at byte {} on Vulkan and at byte {} on CUDA; add {} of padding before it",
          field, name, at, on_cuda, bytes_text(on_cuda - at));
    if (at > on_cuda)
      return base::text("'{}' of struct '{}' is at byte {} on Vulkan and at byte {} on CUDA", field, name, at,
                        on_cuda);
    std::string within = between(field, {vulkan.layout, type_(there)}, {cuda.layout, type_(here)}, depth + 1);
    if (!within.empty()) return within;
  }
  const std::size_t there = stride_(vulkan.type, slang::category_bytes),
                    here = stride_(cuda.type, slang::category_bytes);
  if (there == here) return {};
  return base::text("struct '{}' has {} on Vulkan and {} on CUDA; add {} of padding at its end", name,
                    bytes_text(there), bytes_text(here),
                    bytes_text(here > there ? here - there : there - here));
}

}  // namespace wye::kernel
