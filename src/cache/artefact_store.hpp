#pragma once
/// The disk tier: artefacts in a store of blobs that nothing is expected of.
#include <wye/base/blob_store.hpp>

#include <atomic>
#include <memory>
#include <optional>

#include "base/logger.hpp"
#include "device/artefact.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

/// Keeps artefacts between processes as well as it can. A store that fails costs nothing but its use: that is
/// said once, in the log.
/// Threads: thread-safe.
class ArtefactStore {
 public:
  ArtefactStore(std::shared_ptr<BlobStore> blobs, base::Logger log)
      : blobs_(std::move(blobs)), log_(std::move(log)) {}

  struct Loaded {
    std::optional<device::Artefact> artefact;
    bool corrupt = false;  ///< there was something else, which is removed
  };
  Loaded load(const Digest& key);
  void save(const device::Artefact& artefact);

 private:
  void say_once(const Error& error);
  std::shared_ptr<BlobStore> blobs_;
  base::Logger log_;
  std::atomic<bool> said_{false};
};

}  // namespace cache
}  // namespace v0
}  // namespace wye
