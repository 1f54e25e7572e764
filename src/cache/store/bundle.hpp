#pragma once
/// Artefacts in one file, for shipping.
#include <wye/base/result.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "base/file.hpp"
#include "device/artefact.hpp"

namespace wye::inline v0::cache {

/// A file of artefacts, open for reading. It has a magic, a version, an index (key, offset and size
/// of each artefact) with a digest, and the artefacts as `encode` writes them, each with a
/// checksum. `open` reads only the index.
/// Threads: thread-safe.
class Bundle {
 public:
  struct Found {
    std::optional<device::Artefact> artefact;
    bool corrupt = false;  ///< the index lists it, but it is damaged
  };

  /// Errors: not_found, io; unsupported (a newer version); corrupt (truncated, damaged, or not a
  ///         bundle). Each names the path.
  static Result<Bundle> open(const std::string& path);
  /// Writes the file atomically. `records` are the output of `encode`.
  /// Errors: io.
  static Result<void> write(const std::string& path, const std::map<Digest, std::vector<std::byte>>& records);

  Found find(const Digest& key) const;
  std::size_t size() const noexcept { return entries_.size(); }
  const std::string& path() const noexcept { return path_; }

 private:
  struct Entry {
    Digest key;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  Bundle(base::RandomFile file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  base::RandomFile file_;
  std::string path_;
  std::vector<Entry> entries_;  ///< sorted by key, unique
};

}  // namespace wye::cache
