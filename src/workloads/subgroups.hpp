#pragma once
/// Kernels with a variant that uses subgroups.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernel_text.hpp"
#include "variants.hpp"

namespace wye::inline v0::workloads {

/// Makes the variant `<name>_subgroups` of a GLSL text: the same text with SUBGROUPS defined, which
/// adds in the same order, except scan.glsl. Only `adapters` that have subgroup operations run it.
/// Tests define other macros. `tile` is the items of a workgroup, unless each invocation has one.
template <class... P>
Result<Kernel<P...>> make_subgroups_kernel(const KernelText& text, std::vector<std::string> parameters,
                                           std::vector<AdapterType> adapters = tiled_adapters(),
                                           std::vector<Macro> macros = {},
                                           std::optional<Extent3> tile = std::nullopt) {
  Glsl source = glsl_source(text, tile);
  source.macros = std::move(macros);
  source.macros.push_back({.name = "SUBGROUPS", .value = ""});
  return Kernel<P...>::make({.name = std::string(text.name) + "_subgroups",
                             .sources = {std::move(source)},
                             .parameters = std::move(parameters),
                             .adapters = std::move(adapters),
                             .features = {Feature::subgroups},
                             .has_short_loops = true});
}

/// Makes a kernel of `text` and of a host function. GPUs choose between the GLSL text with and
/// without subgroups.
template <class... P>
Result<Kernel<P...>> make_kernel_with_subgroups(const KernelText& text, std::vector<std::string> parameters,
                                                typename Kernel<P...>::Source host_function) {
  auto kernel = make_kernel<P...>(text, parameters, {}, {std::move(host_function)});
  return with_variant(std::move(kernel), make_subgroups_kernel<P...>(text, std::move(parameters)));
}

/// The same for texts whose invocations exchange the values they read. The text with subgroups
/// names all types of adapters: CPUs prefer it, too, because lavapipe reads memory one lane at a
/// time, but exchanges values of lanes in one instruction. Both texts have `macros`, the one with
/// subgroups also `others`.
template <class... P>
Result<Kernel<P...>> make_kernel_with_shared_reads(const KernelText& text,
                                                   std::vector<std::string> parameters, Tiles tiles,
                                                   typename Kernel<P...>::Source host_function,
                                                   std::vector<Macro> macros = {},
                                                   const std::vector<Macro>& others = {}) {
  auto kernel = make_kernel<P...>(text, parameters, tiles, {std::move(host_function)}, {}, macros);
  macros.insert(macros.end(), others.begin(), others.end());
  std::vector<AdapterType> adapters = tiled_adapters();
  adapters.push_back(AdapterType::cpu);
  return with_variant(std::move(kernel),
                      make_subgroups_kernel<P...>(text, std::move(parameters), std::move(adapters),
                                                  std::move(macros), tiles.glsl));
}

}  // namespace wye::workloads
