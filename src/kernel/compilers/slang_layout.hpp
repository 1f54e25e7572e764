#pragma once
/// Compares the layouts of structs that Slang generates for Vulkan and for CUDA.
#include <wye/base/dynamic_library.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernel/compilers/slang_abi.hpp"

namespace wye::inline v0::kernel {

/// The reflection functions of Slang's library.
struct SlangLayouts {
  /// Finds the functions. Returns the name of the first missing function, or null.
  const char* open(DynamicLibrary& library);

  /// Returns the first difference between the layouts of an entry point's parameters, with a
  /// remedy, as a clause: "'b' of struct 'Q' is at byte 4 on Vulkan and at byte 8 on CUDA; add 4
  /// bytes of padding before it". Empty if the layouts agree.
  std::string difference(slang::Layout* vulkan, slang::Layout* cuda) const;

  slang::Entry* (*entry)(slang::Layout*, std::uint64_t index) = nullptr;
  slang::Variable* (*variable)(slang::Parameter*) = nullptr;
  const char* (*variable_name)(slang::Variable*) = nullptr;

 private:
  /// A type with its layout for one target.
  struct Side {
    slang::Layout* layout;
    slang::TypeLayout* type;
  };
  std::string between(const std::string& name, Side vulkan, Side cuda, int depth) const;
  std::string between_structs(Side vulkan, Side cuda, int depth) const;
  Side element(Side of) const;
  std::string name_of(slang::Parameter* parameter) const;

  unsigned (*parameters_)(slang::Entry*) = nullptr;
  slang::Parameter* (*parameter_)(slang::Entry*, unsigned index) = nullptr;
  slang::TypeLayout* (*type_)(slang::Parameter*) = nullptr;
  std::size_t (*offset_)(slang::Parameter*, std::int32_t category) = nullptr;
  std::int32_t (*kind_)(slang::TypeLayout*) = nullptr;
  std::size_t (*stride_)(slang::TypeLayout*, std::int32_t category) = nullptr;
  std::uint32_t (*fields_)(slang::TypeLayout*) = nullptr;
  slang::Parameter* (*field_)(slang::TypeLayout*, unsigned index) = nullptr;
  slang::TypeLayout* (*element_)(slang::TypeLayout*) = nullptr;
  slang::TypeLayout* (*type_layout_)(slang::Layout*, slang::Type*, std::uint32_t rules) = nullptr;
  slang::Type* (*type_of_)(slang::TypeLayout*) = nullptr;
  const char* (*type_name_)(slang::Type*) = nullptr;
};

}  // namespace wye::kernel
