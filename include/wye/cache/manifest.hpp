#pragma once
/// The kernels that a run used, to be shipped with an application.
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
  Digest key;              ///< of source, options, constants and compiler
  std::string kernel;      ///< name
  std::string backend;     ///< "vulkan"
  std::string device;      ///< the driver's name of it
  std::uint64_t uses = 0;  ///< requests
  Duration took{};         ///< the longest build or load
  friend bool operator==(const ManifestEntry&, const ManifestEntry&) = default;
};

/// Recorded by `ShaderCache::manifest`; `ShaderCache::prewarm` builds its kernels again.
struct Manifest {
  std::vector<ManifestEntry> entries;  ///< in the order of their first use

  /// Errors: not_found, io; unsupported (a newer version); corrupt (truncated, damaged, or not a manifest). Each names the
  ///         path.
  WYE_API static Result<Manifest> read(const std::string& path);
  /// Writes lines of text and their digest, atomically.
  /// Errors: io.
  WYE_API Result<void> write(const std::string& path) const;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

}  // namespace v0
}  // namespace wye
