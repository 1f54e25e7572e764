#pragma once
/// Kernels of a test, run on a real Vulkan device.
#include <wye/wye.hpp>

#include <optional>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/skip.hpp"

namespace wye::test {

/// Opens a runtime with a Vulkan device; reports a skip if there is none.
inline std::optional<Runtime> open_vulkan() {
  auto opened = Runtime::open({.pool = {.backends = {"vulkan"}}});
  if (opened) return std::move(*opened);
  skip(opened.error().sentence());
  return std::nullopt;
}

/// Whether the device lacks `feature`; reports a skip if it does.
inline bool lacks(const Runtime& on, Feature feature) {
  if (on.devices().front().info().features.has(feature)) return false;
  skip("the device has no " + std::string(name(feature)));
  return true;
}

inline void run(Runtime& on, Call call) {
  const auto done = on.run(std::move(call));
  if (!done) FAIL(done.error().describe());
  CHECK(done->backend() == "vulkan");
}

template <class... P>
Kernel<P...> in_slang(const char* text, std::vector<LinkConstant> constants = {}) {
  auto made =
      Kernel<P...>::make({.name = "k", .sources = {Slang{.text = text, .constants = std::move(constants)}}});
  if (!made) FAIL(made.error().describe());
  return *made;
}

}  // namespace wye::test
