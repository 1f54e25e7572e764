#pragma once
/// The embedded texts of the library's kernels, and the kernels made from them.
#include <wye/base/half.hpp>
#include <wye/kernel/kernel.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace wye::inline v0::workloads {

/// The contents of `shaders/<workload>/<name>.*`. The CUDA function is named wye_<name>, in text
/// and in compiled code. Members that the build could not make are empty.
struct KernelText {
  const char* name;
  std::string_view glsl = {};
  std::string_view cuda = {};
  std::span<const std::string_view> ptx = {};     ///< of one architecture each
  std::span<const std::string_view> cubins = {};  ///< of one architecture each
};

/// Items per workgroup, unless each invocation has one.
struct Tiles {
  std::optional<Extent3> glsl = std::nullopt;
  std::optional<Extent3> cuda = std::nullopt;
};

/// Returns the text for elements of T: float, half or bfloat16.
template <class T>
const KernelText& text_for(const KernelText& floats, const KernelText& halves, const KernelText& bfloats) {
  if constexpr (std::is_same_v<T, half>) return halves;
  if constexpr (std::is_same_v<T, bfloat16>) return bfloats;
  return floats;
}

/// Makes a source of a text. The kernel room prefers a cubin that the device runs, then CUDA C++ if
/// it can be compiled for the device. Otherwise it uses the PTX, which the driver compiles.
inline Glsl glsl_source(const KernelText& text, std::optional<Extent3> tile) {
  return {.text = std::string(text.glsl), .file = std::string(text.name) + ".comp", .tile = tile};
}
inline CudaCpp cuda_source(const KernelText& text, std::optional<Extent3> tile) {
  return {.text = std::string(text.cuda),
          .file = std::string(text.name) + ".cu",
          .entry = std::string("wye_") + text.name,
          .tile = tile};
}
inline Ptx ptx_source(const KernelText& text, std::string_view code, std::optional<Extent3> tile) {
  return {.text = std::string(code), .entry = std::string("wye_") + text.name, .tile = tile};
}
inline Cubin cubin_source(const KernelText& text, std::string_view code, std::optional<Extent3> tile) {
  const auto bytes = std::as_bytes(std::span(code));
  return {.bytes = {bytes.begin(), bytes.end()}, .entry = std::string("wye_") + text.name, .tile = tile};
}

/// Makes a kernel with the name and sources of `text`, and `others`, for example a host function.
/// If `adapters` is not empty, only adapters of these types run it. `macros` are those of the GLSL
/// text.
template <class... P>
Result<Kernel<P...>> make_kernel(const KernelText& text, std::vector<std::string> parameters, Tiles tiles,
                                 std::vector<typename Kernel<P...>::Source> others,
                                 std::vector<AdapterType> adapters = {}, std::vector<Macro> macros = {}) {
  if (!text.glsl.empty()) {
    Glsl source = glsl_source(text, tiles.glsl);
    source.macros = std::move(macros);
    others.push_back(std::move(source));
  }
  if (!text.cuda.empty()) others.push_back(cuda_source(text, tiles.cuda));
  for (const std::string_view code : text.cubins) others.push_back(cubin_source(text, code, tiles.cuda));
  for (const std::string_view code : text.ptx) others.push_back(ptx_source(text, code, tiles.cuda));
  return Kernel<P...>::make({.name = text.name,
                             .sources = std::move(others),
                             .parameters = std::move(parameters),
                             .adapters = std::move(adapters),
                             .has_short_loops = true});
}

}  // namespace wye::workloads
