#pragma once
/// Which kernels a run used, to be shipped with an application.
#include <wye/base/clock.hpp>
#include <wye/base/config.hpp>
#include <wye/base/digest.hpp>
#include <wye/base/result.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace wye {
inline namespace v0 {

/// One kernel on one device of a run.
struct ManifestEntry {
  Digest key;              ///< of its source, options, constants and compiler: its variant
  std::string kernel;      ///< its name
  std::string backend;     ///< "vulkan"
  std::string device;      ///< as its driver calls it
  std::uint64_t uses = 0;  ///< how often it was asked for
  Duration took{};         ///< to make it ready, at most
  friend bool operator==(const ManifestEntry&, const ManifestEntry&) = default;
};

/// What `ShaderCache::manifest` has recorded, and `ShaderCache::prewarm` makes ready again.
struct Manifest {
  std::vector<ManifestEntry> entries;  ///< in the order of their first use

  /// Errors: not_found, io; unsupported (a newer version, named); corrupt (cut, damaged, or no manifest), each with
  ///         the path.
  WYE_API static Result<Manifest> read(const std::string& path);
  /// Writes the file whole or not at all: lines of text, and a digest of them.
  /// Errors: io.
  WYE_API Result<void> write(const std::string& path) const;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

}  // namespace v0
}  // namespace wye
