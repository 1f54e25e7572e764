#pragma once
/// What lies in a cache directory, for those who look after one. Caches may use it meanwhile.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/config.hpp>
#include <wye/base/digest.hpp>
#include <wye/base/result.hpp>
#include <wye/cache/manifest.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wye {
inline namespace v0 {

/// A file of a cache directory.
struct StoredFile {
  enum class Kind : std::uint8_t {
    kernel,     ///< the artefact of a kernel
    driver,     ///< what a driver made of kernels
    temporary,  ///< being written, or left by a process that died
    damaged,    ///< not what was stored; it is removed when it is next looked for
  };
  Kind kind = Kind::damaged;
  Digest key;            ///< of kernels and drivers
  std::string path;      ///< below the directory
  std::string name;      ///< the kernel's or the device's
  std::string made_for;  ///< "spirv", or the driver's name and version
  Bytes bytes;
  Duration unused{};  ///< since it was written or last found, to the hour
};
/// "kernel".
WYE_API std::string_view name(StoredFile::Kind kind) noexcept;

/// What was removed.
struct RemovedFiles {
  std::uint64_t files = 0;
  Bytes bytes;
};

/// Every file of a cache directory, used last first. Each is read and checked.
/// Errors: not_found, io.
WYE_API Result<std::vector<StoredFile>> list_cache(const std::string& directory);

/// Removes what was used longest ago until `bytes` and `files` hold, and what processes left that died more than an hour
/// ago.
/// Errors: not_found, io.
WYE_API Result<RemovedFiles> trim_cache(const std::string& directory, Bytes bytes, std::uint64_t files);

/// Removes everything, and forgets which builds ended their process.
/// Errors: not_found, io.
WYE_API Result<RemovedFiles> clear_cache(const std::string& directory);

/// Packs the kernels of a cache directory into the file `bundle`, for `CacheOptions::bundles`; with a manifest only those
/// that it names. Returns how many there are.
/// Errors: not_found (the directory; or a kernel of the manifest, named), io.
WYE_API Result<std::uint64_t> bundle_cache(const std::string& directory, const std::string& bundle,
                                           const Manifest* only = nullptr);

}  // namespace v0
}  // namespace wye
