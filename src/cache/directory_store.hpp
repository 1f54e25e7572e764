#pragma once
/// A directory as a store of blobs.
#include <wye/base/blob_store.hpp>

#include <memory>
#include <string>

namespace wye {
inline namespace v0 {
namespace cache {

/// One file per blob, "ab/abcd...", in 256 directories by the first two digits of the key.
/// Threads: thread-safe, and so are several processes: a file is put in its place whole.
class DirectoryStore final : public BlobStore {
 public:
  /// Errors: io (the directory can't be made, is another user's, or others may write to it).
  static Result<std::shared_ptr<DirectoryStore>> open(std::string directory);

  Result<std::optional<std::vector<std::byte>>> get(const Digest& key) override;
  Result<void> put(const Digest& key, std::span<const std::byte> blob) override;
  Result<void> remove(const Digest& key) override;

 private:
  explicit DirectoryStore(std::string directory) : directory_(std::move(directory)) {}
  std::string shard(const std::string& hex) const { return directory_ + "/" + hex.substr(0, 2); }
  std::string file(const Digest& key) const;
  std::string directory_;
};

}  // namespace cache
}  // namespace v0
}  // namespace wye
