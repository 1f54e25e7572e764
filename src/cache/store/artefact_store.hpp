#pragma once
/// The disk tier: artefacts in a store of blobs that may fail.
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

namespace wye::inline v0::cache {

/// The right to build the artefact of one key, among all processes that share a store. Released on
/// destruction.
struct Claim {
  std::optional<base::FileLock>
      lock;             ///< nothing if another process held it for too long, or if there are no locks
  bool waited = false;  ///< another process held it first
  std::optional<Error> failure;  ///< set if there are no locks
};

/// Marks a build while it runs. If its process ends in the build, later processes find the mark.
class MarkedBuild {
 public:
  MarkedBuild() = default;
  MarkedBuild(BuildMarks* marks, const Digest& what, const Deaths& deaths)
      : marks_(marks), what_(what), deaths_(deaths) {}
  MarkedBuild(MarkedBuild&& other) noexcept { *this = std::move(other); }
  MarkedBuild& operator=(MarkedBuild&& other) noexcept {
    std::swap(marks_, other.marks_);
    std::swap(what_, other.what_);
    std::swap(deaths_, other.deaths_);
    std::swap(begun_, other.begun_);
    return *this;
  }
  ~MarkedBuild() {
    if (begun_) end();
  }
  /// Returns the processes that have ended in it.
  const Deaths& deaths() const noexcept { return deaths_; }
  /// Returns whether the last death is too recent for another try: see `Deaths::pause`.
  bool is_paused() const noexcept { return marks_ && marks_->is_paused(deaths_); }
  /// Sets the mark: this process begins `step`.
  void reach(std::uint8_t step) noexcept {
    if (!marks_) return;
    begun_ = true;
    marks_->reach(what_, deaths_, step);
  }
  /// Notes that a child process has crashed in the step in which an earlier process has ended.
  void note_crash(base::Crash crash) noexcept {
    deaths_.crash = crash;
    if (marks_) marks_->note_crash(what_, deaths_);
  }
  /// Clears the mark and forgets the deaths.
  void end() noexcept {
    begun_ = false;
    deaths_ = {};
    if (marks_) marks_->end(what_);
  }

 private:
  BuildMarks* marks_ = nullptr;
  Digest what_;
  Deaths deaths_;
  bool begun_ = false;
};

/// Stores artefacts between processes. If the store fails, the cache continues without it and logs
/// that once.
/// Threads: thread-safe.
class ArtefactStore {
 public:
  /// Claims are places of the file `locks`. If the path is empty, every process may build. `reports`
  /// keeps the reports of checked devices; if it is null, `blobs` does.
  ArtefactStore(std::shared_ptr<BlobStore> blobs, std::string locks, base::Logger log,
                std::shared_ptr<BlobStore> reports = nullptr)
      : blobs_(std::move(blobs)),
        reports_(reports ? std::move(reports) : blobs_),
        locks_(std::move(locks)),
        log_(std::move(log)) {}

  struct Loaded {
    std::optional<device::Artefact> artefact;
    bool corrupt = false;  ///< the stored bytes were no valid artefact and were removed
  };
  Loaded load(const Digest& key);
  /// Returns a blob that is no artefact.
  std::optional<std::vector<std::byte>> get(const Digest& key);
  /// Returns whether `blob` is stored.
  bool put(const Digest& key, std::span<const std::byte> blob);
  /// Removes the blob under `key` and its deaths.
  void drop(const Digest& key);
  /// The same for the reports of checked devices.
  std::optional<std::vector<std::byte>> get_report(const Digest& key);
  bool put_report(const Digest& key, std::span<const std::byte> report);
  void drop_report(const Digest& key);
  /// Returns whether an artefact is stored under `key`. Changes nothing.
  bool holds(const Digest& key);
  /// Waits for `key` until `clock` shows `until`.
  Claim claim(const Digest& key, Instant until, const Clock& clock = Clock::steady());
  /// Finds the deaths in the build of `key`, and marks it later, if `claim` holds a lock.
  MarkedBuild mark(const Digest& key, const Claim& claim);
  /// Returns the processes that have ended in the build of `key`.
  Deaths deaths(const Digest& key);
  /// Forgets all deaths.
  void clear_deaths();
  /// Stores `artefact`, which was built under `claim`.
  void save(const device::Artefact& artefact, const Claim& claim);

 private:
  BuildMarks* marks();
  void log_once(std::string_view what, const Error& error);
  std::optional<std::vector<std::byte>> get_from(BlobStore& store, const Digest& key);
  bool put_to(BlobStore& store, const Digest& key, std::span<const std::byte> blob);
  void drop_from(BlobStore& store, const Digest& key);
  std::shared_ptr<BlobStore> blobs_;
  std::shared_ptr<BlobStore> reports_;
  std::string locks_;
  base::Logger log_;
  std::atomic<bool> said_{false};
  std::mutex mutex_;
  std::optional<BuildMarks> marks_;  ///< made when first needed, under `mutex_`
};

}  // namespace wye::cache
