#include <wye/cache/cache_directory.hpp>

#include <algorithm>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"
#include "cache/store/artefact_bytes.hpp"
#include "cache/store/build_marks.hpp"
#include "cache/store/bundle.hpp"
#include "cache/store/directory_store.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

using namespace std::chrono_literals;

/// A file of a listing, not yet read.
struct Listed {
  StoredFile file;  ///< `damaged` until it is read, unless it is temporary
  base::FileEntry entry;
};

/// Returns all files of the shards of `directory`, most recently used first. Reads none.
Result<std::vector<Listed>> list_shards(const std::string& directory) {
  auto names = base::list_directory(directory);
  if (!names) {
    if (names.error().native() && names.error().native()->name == "ENOENT")
      return Error(Errc::not_found, base::text("There is no directory '{}'.", directory));
    return std::move(names).error();
  }
  std::vector<Listed> all;
  for (const std::string& shard : *names) {
    if (!DirectoryStore::is_shard(shard)) continue;
    auto files = base::list_files(directory + "/" + shard);
    if (!files) return std::move(files).error();
    for (base::FileEntry& entry : *files) {
      Listed listed;
      listed.file.path = shard + "/" + entry.name;
      listed.file.bytes = entry.bytes;
      listed.file.unused = std::max(entry.age, Duration{});
      if (DirectoryStore::is_temporary(entry.name)) {
        listed.file.kind = StoredFile::Kind::temporary;
      } else if (const auto key = DirectoryStore::key_of(entry.name, shard)) {
        listed.file.key = *key;
      } else {
        continue;  // not a file of the cache
      }
      listed.entry = std::move(entry);
      all.push_back(std::move(listed));
    }
  }
  std::sort(all.begin(), all.end(), [](const Listed& a, const Listed& b) {
    return std::tie(a.file.unused, a.file.path) < std::tie(b.file.unused, b.file.path);
  });
  return all;
}

/// Reads `file` and completes its description. Returns its content, or nothing if the file was removed meanwhile.
std::optional<std::vector<std::byte>> describe(const std::string& directory, StoredFile& file) {
  auto content = base::read_file(directory + "/" + file.path, DirectoryStore::most_bytes);
  if (!content) return std::vector<std::byte>();
  if (!*content) return std::nullopt;
  if (auto artefact = decode(**content, file.key)) {
    file.kind = StoredFile::Kind::kernel;
    file.name = std::move(artefact->kernel);
    file.made_for = std::move(artefact->language);
  } else if (auto driver = decode_driver(**content, file.key)) {
    file.kind = StoredFile::Kind::driver;
    file.name = std::move(driver->device);
    file.made_for = std::move(driver->driver);
  }
  return std::move(*content);
}

Result<std::vector<StoredFile>> list_files(const std::string& directory) {
  auto all = list_shards(directory);
  if (!all) return std::move(all).error();
  std::vector<StoredFile> files;
  for (Listed& listed : *all)
    if (listed.file.kind == StoredFile::Kind::temporary || describe(directory, listed.file))
      files.push_back(std::move(listed.file));
  return files;
}

Result<void> remove_listed(const std::string& directory, const Listed& listed, RemovedFiles& removed) {
  auto gone = base::remove_unchanged(directory + "/" + listed.file.path, listed.entry);
  if (!gone) return std::move(gone).error();
  if (*gone) ++removed.files, removed.bytes += listed.file.bytes;
  return {};
}

Result<RemovedFiles> trim_files(const std::string& directory, Bytes bytes, std::uint64_t files) {
  auto all = list_shards(directory);
  if (!all) return std::move(all).error();
  RemovedFiles removed;
  Bytes kept;
  std::uint64_t count = 0;
  bool full = false;
  for (const Listed& listed : *all) {  // most recently used first
    bool is_removed = false;
    if (listed.file.kind == StoredFile::Kind::temporary) {
      is_removed = listed.file.unused >= 1h;
    } else {
      full = full || count + 1 > files || kept + listed.file.bytes > bytes;
      is_removed = full;
      if (!is_removed) ++count, kept += listed.file.bytes;
    }
    if (is_removed)
      if (auto gone = remove_listed(directory, listed, removed); !gone) return std::move(gone).error();
  }
  return removed;
}

Result<RemovedFiles> clear_files(const std::string& directory) {
  auto all = list_shards(directory);
  if (!all) return std::move(all).error();
  RemovedFiles removed;
  for (const Listed& listed : *all)
    if (auto gone = remove_listed(directory, listed, removed); !gone) return std::move(gone).error();
  if (auto marks = BuildMarks::open(DirectoryStore::mark_file(directory)))
    if (auto cleared = marks->clear(); !cleared) return std::move(cleared).error();
  return removed;
}

Result<std::uint64_t> pack_bundle(const std::string& directory, const std::string& path,
                                  const Manifest* only) {
  auto all = list_shards(directory);
  if (!all) return std::move(all).error();
  std::set<Digest> wanted;
  if (only)
    for (const ManifestEntry& entry : only->entries) wanted.insert(entry.key);
  std::map<Digest, std::vector<std::byte>> kernels;
  for (Listed& listed : *all) {
    if (listed.file.kind == StoredFile::Kind::temporary || (only && !wanted.contains(listed.file.key)))
      continue;
    auto record = describe(directory, listed.file);
    if (record && listed.file.kind == StoredFile::Kind::kernel)
      kernels.emplace(listed.file.key, std::move(*record));
  }
  std::vector<Digest> keys;
  std::vector<std::vector<std::byte>> records;
  const auto pack = [&](std::map<Digest, std::vector<std::byte>>::iterator kernel) {
    keys.push_back(kernel->first);
    records.push_back(std::move(kernel->second));
    kernels.erase(kernel);
  };
  if (!only) {
    while (!kernels.empty()) pack(kernels.begin());
  } else {
    for (const ManifestEntry& entry : only->entries) {
      if (std::find(keys.begin(), keys.end(), entry.key) != keys.end())
        continue;  // an entry of another device
      const auto kernel = kernels.find(entry.key);
      if (kernel == kernels.end())
        return Error(Errc::not_found, base::text("Kernel '{}' of the manifest is not in directory '{}'.",
                                                 entry.kernel, directory));
      pack(kernel);
    }
  }
  if (auto written = Bundle::write(path, std::move(records), keys); !written)
    return std::move(written).error();
  return std::uint64_t{keys.size()};
}

Error no_memory_to_look() {
  return Error(Errc::out_of_memory, "The host has no memory left to list a cache directory.");
}

}  // namespace

}  // namespace cache

std::string_view name(StoredFile::Kind kind) noexcept {
  switch (kind) {
    case StoredFile::Kind::kernel: return "kernel";
    case StoredFile::Kind::driver: return "driver";
    case StoredFile::Kind::temporary: return "temporary";
    case StoredFile::Kind::damaged: return "damaged";
  }
  return "unknown";
}

Result<std::vector<StoredFile>> list_cache(const std::string& directory) {
  try {
    return cache::list_files(directory);
  } catch (const std::bad_alloc&) {
    return cache::no_memory_to_look();
  }
}

Result<RemovedFiles> trim_cache(const std::string& directory, Bytes bytes, std::uint64_t files) {
  try {
    return cache::trim_files(directory, bytes, files);
  } catch (const std::bad_alloc&) {
    return cache::no_memory_to_look();
  }
}

Result<RemovedFiles> clear_cache(const std::string& directory) {
  try {
    return cache::clear_files(directory);
  } catch (const std::bad_alloc&) {
    return cache::no_memory_to_look();
  }
}

Result<std::uint64_t> bundle_cache(const std::string& directory, const std::string& bundle,
                                   const Manifest* only) {
  try {
    return cache::pack_bundle(directory, bundle, only);
  } catch (const std::bad_alloc&) {
    return cache::no_memory_to_look();
  }
}

}  // namespace v0
}  // namespace wye
