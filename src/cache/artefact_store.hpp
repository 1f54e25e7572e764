#pragma once
/// The disk tier: artefacts in a store of blobs that nothing is expected of.
#include <wye/base/blob_store.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "base/file.hpp"
#include "base/logger.hpp"
#include "device/artefact.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

/// The right to build what one key names, among all processes that share a store; given back when it ends.
struct Claim {
  std::optional<base::FileLock>
      lock;                      ///< nothing where another one had it for too long, or there are no locks
  bool waited = false;           ///< somebody else had it first
  std::optional<Error> failure;  ///< why there are no locks
};

/// Keeps artefacts between processes as well as it can. A store that fails costs nothing but its use: that is
/// said once, in the log.
/// Threads: thread-safe.
class ArtefactStore {
 public:
  /// Claims are places of the file `locks`; where it is empty, everybody may build.
  ArtefactStore(std::shared_ptr<BlobStore> blobs, std::string locks, base::Logger log)
      : blobs_(std::move(blobs)), locks_(std::move(locks)), log_(std::move(log)) {}

  struct Loaded {
    std::optional<device::Artefact> artefact;
    bool corrupt = false;  ///< there was something else, which is removed
  };
  Loaded load(const Digest& key);
  /// Whether an artefact is stored under `key`. Changes nothing.
  bool holds(const Digest& key);
  /// Waits for `key` until `until` of the steady clock.
  Claim claim(const Digest& key, Instant until);
  /// `claim` is what the artefact was built under.
  void save(const device::Artefact& artefact, const Claim& claim);

 private:
  void say_once(std::string_view what, const Error& error);
  std::shared_ptr<BlobStore> blobs_;
  std::string locks_;
  base::Logger log_;
  std::atomic<bool> said_{false};
};

}  // namespace cache
}  // namespace v0
}  // namespace wye
