#pragma once
/// A store of blobs for tests, which counts its calls.
#include <wye/base/blob_store.hpp>

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace wye::test {

/// Blobs in memory. Each call fails if its error is set.
class MemoryStore final : public BlobStore {
 public:
  Result<std::optional<std::vector<std::byte>>> get(const Digest& key) override {
    const std::lock_guard lock(mutex_);
    ++gets;
    if (get_error) return *get_error;
    const auto found = blobs.find(key);
    if (found == blobs.end()) return std::optional<std::vector<std::byte>>();
    return std::optional(found->second);
  }
  Result<void> put(const Digest& key, std::span<const std::byte> blob) override {
    const std::lock_guard lock(mutex_);
    ++puts;
    if (put_error) return *put_error;
    blobs[key].assign(blob.begin(), blob.end());
    return {};
  }
  Result<void> remove(const Digest& key) override {
    const std::lock_guard lock(mutex_);
    ++removes;
    if (remove_error) return *remove_error;
    blobs.erase(key);
    return {};
  }

  std::map<Digest, std::vector<std::byte>> blobs;
  int gets = 0, puts = 0, removes = 0;
  std::optional<Error> get_error, put_error, remove_error;

 private:
  std::mutex mutex_;
};

}  // namespace wye::test
