#pragma once
/// The embedded texts of the kernels that check devices.
#include <span>
#include <string_view>

namespace wye::inline v0::runtime {

/// The contents of shaders/qualification/<name>.*. The CUDA function is named wye_<name>, in text
/// and in PTX. Members that the build could not make are empty.
struct KernelText {
  const char* name;
  std::string_view glsl = {};
  std::string_view cuda = {};
  std::span<const std::string_view> ptx = {};  ///< of one architecture each
};

}  // namespace wye::runtime
