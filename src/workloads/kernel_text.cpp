#include "kernel_text.hpp"

namespace wye {
inline namespace v0 {
namespace workloads {

Glsl glsl_source(const KernelText& text, std::optional<Extent3> tile) {
  return {.text = std::string(text.glsl), .file = std::string(text.name) + ".comp", .tile = tile};
}

CudaCpp cuda_source(const KernelText& text, std::optional<Extent3> tile) {
  return {.text = std::string(text.cuda),
          .file = std::string(text.name) + ".cu",
          .entry = std::string("wye_") + text.name,
          .tile = tile};
}

Ptx ptx_source(const KernelText& text, std::optional<Extent3> tile) {
  return {.text = std::string(text.ptx), .entry = std::string("wye_") + text.name, .tile = tile};
}

Cubin cubin_source(const KernelText& text, std::span<const unsigned char> code, std::optional<Extent3> tile) {
  const auto bytes = std::as_bytes(code);
  return {.bytes = {bytes.begin(), bytes.end()}, .entry = std::string("wye_") + text.name, .tile = tile};
}

}  // namespace workloads
}  // namespace v0
}  // namespace wye
