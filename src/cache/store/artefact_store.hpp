#pragma once
/// The disk tier: artefacts in a store of blobs that nothing is expected of.
#include <wye/base/blob_store.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "base/logger.hpp"
#include "cache/store/build_marks.hpp"
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

/// A build that is marked until this ends, for those who come after a process that it ended.
class MarkedBuild {
 public:
  MarkedBuild() = default;
  MarkedBuild(BuildMarks* marks, const Digest& what, unsigned deaths)
      : marks_(marks), what_(what), deaths_(deaths) {}
  MarkedBuild(MarkedBuild&& other) noexcept { *this = std::move(other); }
  MarkedBuild& operator=(MarkedBuild&& other) noexcept {
    std::swap(marks_, other.marks_);
    std::swap(what_, other.what_);
    std::swap(deaths_, other.deaths_);
    return *this;
  }
  ~MarkedBuild() {
    if (marks_ && !refused()) marks_->end(what_);
  }
  /// How many processes have died of it.
  unsigned deaths() const noexcept { return deaths_; }
  /// Too many for another try.
  bool refused() const noexcept { return deaths_ >= BuildMarks::most_deaths; }

 private:
  BuildMarks* marks_ = nullptr;
  Digest what_;
  unsigned deaths_ = 0;
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
  /// Blobs that are no artefacts.
  std::optional<std::vector<std::byte>> get(const Digest& key);
  void put(const Digest& key, std::span<const std::byte> blob);
  /// Removes what is stored under `key`, and forgets who died of it.
  void drop(const Digest& key);
  /// Whether an artefact is stored under `key`. Changes nothing.
  bool holds(const Digest& key);
  /// Waits for `key` until `until` of the steady clock.
  Claim claim(const Digest& key, Instant until);
  /// Marks that `what` is being built under `claim`, where that is a lock.
  MarkedBuild mark(const Digest& what, const Claim& claim);
  /// How many processes are known to have died of building `what`.
  unsigned deaths(const Digest& what);
  /// Forgets all of them.
  void forgive();
  /// `claim` is what the artefact was built under.
  void save(const device::Artefact& artefact, const Claim& claim);

 private:
  BuildMarks* marks();
  void say_once(std::string_view what, const Error& error);
  std::shared_ptr<BlobStore> blobs_;
  std::string locks_;
  base::Logger log_;
  std::atomic<bool> said_{false};
  std::mutex mutex_;
  std::optional<BuildMarks> marks_;  ///< made when first needed, under `mutex_`
};

}  // namespace cache
}  // namespace v0
}  // namespace wye
