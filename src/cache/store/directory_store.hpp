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

namespace wye {
inline namespace v0 {
namespace cache {

struct DiskBounds {
  Bytes bytes{1ull << 30};
  std::uint64_t files = 100'000;
};

/// One file per blob, "ab/abcd...", in 256 directories by the first two digits of the key; "locks", an
/// empty file whose places are locked; and "builds", where builds that may end their process are marked.
///
/// Kept within bounds, used longest ago first out, as far as that is cheap to know: a file's time of change
/// says when it was written or last found, to the hour. A large store is bounded in up to 64 groups of
/// directories, each with its part of the bounds, so that nobody has to look at all of it: what is put looks
/// at its group, and where that is too large one process removes until it is at 90 %.
/// Threads: thread-safe, and so are several processes: a file is put in its place whole.
class DirectoryStore final : public BlobStore {
 public:
  using Bounds = DiskBounds;
  /// Errors: io (the directory can't be made, is another user's, or others may write to it).
  static Result<std::shared_ptr<DirectoryStore>> open(
      std::string directory, Bounds bounds = {}, base::Durability durability = base::Durability::process);

  Result<std::optional<std::vector<std::byte>>> get(const Digest& key) override;
  /// A blob larger than all bounds is not stored, and that is no error.
  /// Errors: io: it is not stored, or what it should have displaced cannot be removed.
  Result<void> put(const Digest& key, std::span<const std::byte> blob) override;
  Result<void> remove(const Digest& key) override;

  /// How many files this one has removed to stay within the bounds.
  std::uint64_t displaced() const noexcept { return displaced_.load(std::memory_order_relaxed); }
  /// The file whose places are locked, in `directory`.
  static std::string lock_file(const std::string& directory) { return directory + "/locks"; }
  /// The file of the marks.
  static std::string mark_file(const std::string& directory) { return directory + "/builds"; }

  /// Larger files are none of ours: the largest kernels are some hundred KB.
  static constexpr Bytes most_bytes{256ull << 20};
  /// Whether a directory of this name holds files of ours.
  static bool is_shard(std::string_view name);
  static bool is_temporary(std::string_view name);
  /// The key that a file of this name in `shard` is stored under; nothing where it is none of ours.
  static std::optional<Digest> key_of(std::string_view name, std::string_view shard);

 private:
  struct Tally {
    std::uint64_t bytes = 0;
    std::uint64_t files = 0;
  };
  struct Group {
    Tally held;   ///< as last seen, and what was put since
    Tally since;  ///< what was put since: others put as well, so that now and then one has to look
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

}  // namespace cache
}  // namespace v0
}  // namespace wye
