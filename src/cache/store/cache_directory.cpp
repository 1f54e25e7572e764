#include <wye/cache/cache_directory.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"
#include "base/with_memory.hpp"
#include "cache/store/artefact_bytes.hpp"
#include "cache/store/build_marks.hpp"
#include "cache/store/bundle.hpp"
#include "cache/store/directory_store.hpp"

namespace wye::inline v0 {
namespace cache {

namespace {

using namespace std::chrono_literals;

using Listed = DirectoryStore::Listed;

/// Returns all files of `directory`, most recently used first. Reads none.
Result<std::vector<Listed>> list_all(const std::string& directory) {
  if (auto names = base::list_directory(directory); !names) {
    if (names.error().native() && names.error().native()->name == "ENOENT")
      return Error(Errc::not_found, base::text("There is no directory '{}'.", directory));
    return std::move(names).error();
  }
  auto files = DirectoryStore::list(directory);
  if (!files) return files;
  const std::string below(DirectoryStore::reports);
  auto found = DirectoryStore::list(base::text("{}/{}", directory, below));
  if (!found) return found;
  for (Listed& report : *found) {
    report.path = base::text("{}/{}", below, report.path);
    files->push_back(std::move(report));
  }
  std::stable_sort(files->begin(), files->end(),
                   [](const Listed& a, const Listed& b) { return a.entry.changed > b.entry.changed; });
  return files;
}

/// Returns whether it is the report of a device's checks. Kernels do not displace it.
bool is_report(const Listed& file) { return file.path.starts_with(DirectoryStore::reports); }

/// Reads `file` and completes its description. Returns whether it still exists.
bool describe(const std::string& directory, StoredFile& file) {
  const auto content = base::read_file(directory + "/" + file.path, DirectoryStore::most_bytes);
  if (!content) return true;
  if (!*content) return false;
  if (auto artefact = decode(**content, file.key)) {
    file.kind = StoredFile::Kind::kernel;
    file.name = std::move(artefact->kernel);
    file.made_for = std::move(artefact->language);
  } else if (auto driver = decode_driver(**content, file.key)) {
    file.kind = StoredFile::Kind::driver;
    file.name = std::move(driver->device);
    file.made_for = std::move(driver->driver);
  }
  return true;
}

Result<std::vector<StoredFile>> list_files(const std::string& directory) {
  auto all = list_all(directory);
  if (!all) return std::move(all).error();
  std::vector<StoredFile> files;
  for (const Listed& listed : *all) {
    StoredFile file;
    file.path = listed.path;
    file.bytes = listed.entry.bytes;
    file.unused = std::max(listed.entry.age, Duration{});
    file.key = listed.key;
    if (listed.is_temporary) file.kind = StoredFile::Kind::temporary;
    if (listed.is_temporary || describe(directory, file)) files.push_back(std::move(file));
  }
  return files;
}

Result<void> remove_listed(const std::string& directory, const Listed& listed, RemovedFiles& removed) {
  auto gone = base::remove_unchanged(directory + "/" + listed.path, listed.entry);
  if (!gone) return std::move(gone).error();
  if (*gone) ++removed.files, removed.bytes += listed.entry.bytes;
  return {};
}

Result<RemovedFiles> trim_files(const std::string& directory, Bytes bytes, std::uint64_t files) {
  auto all = list_all(directory);
  if (!all) return std::move(all).error();
  RemovedFiles removed;
  Bytes kept;
  std::uint64_t count = 0;
  bool full = false;
  std::stable_partition(all->begin(), all->end(), is_report);
  for (const Listed& listed : *all) {  // reports, then most recently used first
    bool is_removed = listed.is_temporary && listed.entry.age >= 1h;
    if (!listed.is_temporary) {
      full = full || count + 1 > files || kept + listed.entry.bytes > bytes;
      is_removed = full;
      if (!full) ++count, kept += listed.entry.bytes;
    }
    if (is_removed)
      if (auto gone = remove_listed(directory, listed, removed); !gone) return std::move(gone).error();
  }
  return removed;
}

Result<RemovedFiles> clear_files(const std::string& directory) {
  auto all = list_all(directory);
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
  auto all = list_all(directory);
  if (!all) return std::move(all).error();
  std::set<Digest> wanted;
  if (only)
    for (const ManifestEntry& entry : only->entries) wanted.insert(entry.key);
  std::map<Digest, std::vector<std::byte>> kernels;
  for (const Listed& listed : *all) {
    if (listed.is_temporary || (only && !wanted.contains(listed.key))) continue;
    auto record = base::read_file(directory + "/" + listed.path, DirectoryStore::most_bytes);
    if (record && *record && decode(**record, listed.key)) kernels.emplace(listed.key, *std::move(*record));
  }
  if (only)
    for (const ManifestEntry& entry : only->entries)
      if (!kernels.contains(entry.key))
        return Error(Errc::not_found, base::text("Kernel '{}' of the manifest is not in directory '{}'.",
                                                 entry.kernel, directory));
  if (auto written = Bundle::write(path, kernels); !written) return std::move(written).error();
  return std::uint64_t{kernels.size()};
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
  return base::with_memory("list a cache directory", [&] { return cache::list_files(directory); });
}

Result<RemovedFiles> trim_cache(const std::string& directory, Bytes bytes, std::uint64_t files) {
  return base::with_memory("list a cache directory",
                           [&] { return cache::trim_files(directory, bytes, files); });
}

Result<RemovedFiles> clear_cache(const std::string& directory) {
  return base::with_memory("list a cache directory", [&] { return cache::clear_files(directory); });
}

Result<std::uint64_t> bundle_cache(const std::string& directory, const std::string& bundle,
                                   const Manifest* only) {
  return base::with_memory("list a cache directory",
                           [&] { return cache::pack_bundle(directory, bundle, only); });
}

}  // namespace wye
