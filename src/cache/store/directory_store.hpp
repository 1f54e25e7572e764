#pragma once
/// A directory as a store of blobs.
#include <wye/base/blob_store.hpp>
#include <wye/base/bytes.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"

namespace wye::inline v0::cache {

struct DiskBounds {
  Bytes bytes{1ull << 30};
  std::uint64_t files = 100'000;
};

/// One file per blob, "ab/abcd...", in 256 directories by the first two digits of the key. The
/// empty file "locks" has the places that are locked. The file "builds" has the marks of builds in
/// progress. The directory "checks" is another store, for the reports of checked devices
/// and the times of jobs.
///
/// Keeps the directory within bounds, approximately least recently used first: the time of change
/// of a file is the time of its last write or lookup, to the hour. A large store consists of up to
/// 64 groups of directories, each with its share of the bounds, so that no call lists the whole
/// store. `put` lists one group. If the group is too large, one process removes files until it is
/// at 90 %.
/// Threads: thread-safe, also among processes: a file appears complete.
class DirectoryStore final : public BlobStore {
 public:
  using Bounds = DiskBounds;
  /// Errors: io (the directory cannot be created, belongs to another user, or other users may write
  ///         to it).
  static Result<std::shared_ptr<DirectoryStore>> open(
      std::string directory, Bounds bounds = {}, base::Durability durability = base::Durability::process);

  /// Returns the store of reports and times in `directory`, which a cache has opened. It has bounds of
  /// its own: these are no kernels, so kernels do not displace them. Its first `put` creates a directory.
  static std::shared_ptr<DirectoryStore> of_reports(const std::string& directory);

  Result<std::optional<std::vector<std::byte>>> get(const Digest& key) override;
  /// Stores `blob`, unless it is larger than the bounds, which is no error.
  /// Errors: io (the blob is not stored, or an older file cannot be removed).
  Result<void> put(const Digest& key, std::span<const std::byte> blob) override;
  Result<void> remove(const Digest& key) override;

  /// Returns the number of files that this object has removed to stay within the bounds.
  std::uint64_t displaced() const noexcept { return displaced_.load(std::memory_order_relaxed); }
  /// Returns the path of the file whose places are locked.
  static std::string lock_file(const std::string& directory) { return directory + "/locks"; }
  /// Returns the path of the file of marks.
  static std::string mark_file(const std::string& directory) { return directory + "/builds"; }

  /// The directory of reports in a cache directory.
  static constexpr std::string_view reports = "checks";

  /// Larger files do not belong to the cache: the largest kernels have some hundred KB.
  static constexpr Bytes most_bytes{256ull << 20};
  /// A file of the store, or a temporary file of a writer.
  struct Listed {
    std::string path;  ///< in the directory
    Digest key;        ///< of no meaning for a temporary file
    bool is_temporary = false;
    base::FileEntry entry;
  };
  /// The number of directories that files lie in.
  static constexpr std::size_t shards = 256;
  /// Returns the files of `count` shards from `first` on, most recently used first. Reads none.
  /// Errors: io.
  static Result<std::vector<Listed>> list(const std::string& directory, std::size_t first = 0,
                                          std::size_t count = shards);

 private:
  struct Tally {
    std::uint64_t bytes = 0;
    std::uint64_t files = 0;
  };
  struct Group {
    Tally held;   ///< in the last listing, plus later puts
    Tally since;  ///< later puts; other processes put as well, so the group is listed again now and then
    bool seen = false;
  };

  DirectoryStore(std::string directory, Bounds bounds, base::Durability durability);
  std::string shard(std::string_view hex) const { return directory_ + "/" + std::string(hex.substr(0, 2)); }
  std::string file(const Digest& key) const;
  Result<void> make_room(const Digest& key, std::uint64_t added);
  Result<Tally> trim(std::size_t group, const std::string& newest);

  std::string directory_;
  const Bounds bounds_;
  const base::Durability durability_;
  const Tally bound_;  ///< of each group
  std::mutex mutex_;
  std::vector<Group> groups_;  ///< under `mutex_`
  std::atomic<std::uint64_t> displaced_{0};
};

}  // namespace wye::cache
