#include "cache/directory_store.hpp"

#include "base/file.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

/// Larger files are none of ours: the largest kernels are some hundred KB.
constexpr Bytes most_bytes{256ull << 20};

}  // namespace

Result<std::shared_ptr<DirectoryStore>> DirectoryStore::open(std::string directory) {
  if (auto made = base::make_private_directory(directory); !made) return std::move(made).error();
  return std::shared_ptr<DirectoryStore>(new DirectoryStore(std::move(directory)));
}

std::string DirectoryStore::file(const Digest& key) const {
  const std::string hex = key.hex();
  return shard(hex) + "/" + hex;
}

Result<std::optional<std::vector<std::byte>>> DirectoryStore::get(const Digest& key) {
  return base::read_file(file(key), most_bytes);
}

Result<void> DirectoryStore::put(const Digest& key, std::span<const std::byte> blob) {
  const std::string hex = key.hex();
  if (auto made = base::make_private_directory(shard(hex)); !made) return made;
  return base::write_file(shard(hex) + "/" + hex, blob);
}

Result<void> DirectoryStore::remove(const Digest& key) { return base::remove_file(file(key)); }

}  // namespace cache
}  // namespace v0
}  // namespace wye
