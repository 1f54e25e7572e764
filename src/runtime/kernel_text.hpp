#pragma once
/// The embedded texts of the kernels that check devices.
#include <string_view>

namespace wye {
inline namespace v0 {
namespace runtime {

/// The contents of shaders/qualification/<name>.*. The CUDA function is named wye_<name>.
struct KernelText {
  const char* name;
  std::string_view glsl = {};
  std::string_view cuda = {};
};

}  // namespace runtime
}  // namespace v0
}  // namespace wye
