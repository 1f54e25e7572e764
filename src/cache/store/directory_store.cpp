#include "cache/store/directory_store.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <tuple>

#include "base/file.hpp"
#include "base/text.hpp"

namespace wye::inline v0::cache {

namespace {

using namespace std::chrono_literals;

/// Listing a group of this size takes 2 ms.
constexpr std::uint64_t group_bytes = 16ull << 20, group_files = 400;
/// The largest number of files that one `put` removes: it takes 50 ms.
constexpr std::size_t most_removed = 256;
/// A place that no key uses.
constexpr std::uint64_t trim_place = 1ull << 62;

std::size_t groups_for(const DirectoryStore::Bounds& bounds) {
  const std::uint64_t wanted = std::min(bounds.bytes.count / group_bytes, bounds.files / group_files);
  return std::bit_floor(std::clamp<std::size_t>(wanted, 1, 64));
}

std::string digits(std::size_t shard) {
  constexpr std::string_view hex = "0123456789abcdef";
  return {hex[shard / 16], hex[shard % 16]};
}

std::optional<unsigned> digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  return std::nullopt;
}

/// Returns the key of the file of this name in `shard`, or nothing if it does not belong to the
/// store.
std::optional<Digest> key_of(std::string_view name, std::string_view shard) {
  Digest key;
  if (name.size() != 2 * key.bytes.size() || !name.starts_with(shard)) return std::nullopt;
  for (std::size_t i = 0; i < key.bytes.size(); ++i) {
    const auto high = digit(name[2 * i]), low = digit(name[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    key.bytes[i] = static_cast<std::byte>(*high * 16 + *low);
  }
  return key;
}

}  // namespace

Result<std::vector<DirectoryStore::Listed>> DirectoryStore::list(const std::string& directory,
                                                                 std::size_t first, std::size_t count) {
  std::vector<Listed> all;
  for (std::size_t shard = first; shard < first + count; ++shard) {
    const std::string name = digits(shard);
    auto files = base::list_files(directory + "/" + name);
    if (!files) return std::move(files).error();
    for (base::FileEntry& entry : *files) {
      const bool is_temporary = entry.name.starts_with(".") && entry.name.ends_with(".tmp");
      const auto key = key_of(entry.name, name);
      if (!is_temporary && !key) continue;  // not a file of the store
      std::string path = name + "/" + entry.name;
      all.push_back({std::move(path), key.value_or(Digest{}), is_temporary, std::move(entry)});
    }
  }
  std::sort(all.begin(), all.end(), [](const Listed& a, const Listed& b) {
    return std::tie(b.entry.changed, b.path) < std::tie(a.entry.changed, a.path);
  });
  return all;
}

DirectoryStore::DirectoryStore(std::string directory, Bounds bounds, base::Durability durability)
    : directory_(std::move(directory)),
      bounds_(bounds),
      durability_(durability),
      bound_{bounds.bytes.count / groups_for(bounds), bounds.files / groups_for(bounds)},
      groups_(groups_for(bounds)) {}

Result<std::shared_ptr<DirectoryStore>> DirectoryStore::open(std::string directory, Bounds bounds,
                                                             base::Durability durability) {
  if (auto made = base::make_private_directory(directory); !made) return std::move(made).error();
  return std::shared_ptr<DirectoryStore>(new DirectoryStore(std::move(directory), bounds, durability));
}

std::shared_ptr<DirectoryStore> DirectoryStore::of_reports(const std::string& directory) {
  // Each build of a driver has a report of 2 to 3 KB, and times of at most 2 MB.
  const Bounds bounds{.bytes = Bytes{16ull << 20}, .files = 256};
  return std::shared_ptr<DirectoryStore>(
      new DirectoryStore(base::text("{}/{}", directory, reports), bounds, base::Durability::process));
}

std::string DirectoryStore::file(const Digest& key) const {
  const std::string hex = key.hex();
  return shard(hex) + "/" + hex;
}

Result<std::optional<std::vector<std::byte>>> DirectoryStore::get(const Digest& key) {
  const std::string path = file(key);
  auto read = base::read_file(path, most_bytes);
  // Many file systems update access times once a day or never. A file that cannot be freshened is
  // read-only, and so is not trimmed either.
  if (read && *read) (void)base::freshen(path, 1h).has_value();
  return read;
}

Result<void> DirectoryStore::put(const Digest& key, std::span<const std::byte> blob) {
  if (blob.size() > bounds_.bytes.count || bounds_.files == 0) return {};
  const std::string hex = key.hex();
  if (auto made = base::make_private_directory(shard(hex)); !made) return made;
  if (auto written = base::write_file(shard(hex) + "/" + hex, blob, durability_); !written) return written;
  return make_room(key, blob.size());
}

Result<void> DirectoryStore::remove(const Digest& key) { return base::remove_file(file(key)); }

Result<void> DirectoryStore::make_room(const Digest& key, std::uint64_t added) {
  const std::size_t number = std::to_integer<std::size_t>(key.bytes[0]) * groups_.size() / shards;
  {
    const std::lock_guard lock(mutex_);
    Group& group = groups_[number];
    for (Tally* tally : {&group.held, &group.since}) tally->bytes += added, ++tally->files;
    if (group.seen && group.held.bytes <= bound_.bytes && group.held.files <= bound_.files &&
        group.since.bytes <= bound_.bytes / 16 && group.since.files <= bound_.files / 16)
      return {};
  }
  // One process at a time; the others do not wait. If the file system has no locks, several
  // processes may trim: each removes only files that were the oldest in its own listing.
  const auto trimming = base::FileLock::acquire(lock_file(directory_), trim_place, Instant{});
  if (trimming && !*trimming) return {};
  auto held = trim(number, key.hex());
  if (!held) return std::move(held).error();
  const std::lock_guard lock(mutex_);
  groups_[number] = {.held = *held, .since = {}, .seen = true};
  return {};
}

/// Lists a group. Removes temporary files of dead writers and the files beyond the bounds, but
/// never `newest`.
Result<DirectoryStore::Tally> DirectoryStore::trim(std::size_t group, const std::string& newest) {
  const std::size_t per_group = shards / groups_.size();
  const auto files = list(directory_, group * per_group, per_group);
  if (!files) return files.error();
  Tally held;
  for (const Listed& file : *files) {
    if (!file.is_temporary) {
      held.bytes += file.entry.bytes.count;
      ++held.files;
    } else if (file.entry.age >= 1h) {
      if (auto removed = base::remove_unchanged(directory_ + "/" + file.path, file.entry); !removed)
        return std::move(removed).error();
    }
  }
  if (held.bytes <= bound_.bytes && held.files <= bound_.files) return held;
  const Tally goal{bound_.bytes - bound_.bytes / 10, bound_.files - bound_.files / 10};
  std::size_t tries = 0;
  for (auto file = files->rbegin(); file != files->rend() && tries < most_removed; ++file) {
    if (held.bytes <= goal.bytes && held.files <= goal.files) break;
    if (file->is_temporary || file->entry.name == newest) continue;
    ++tries;
    auto removed = base::remove_unchanged(directory_ + "/" + file->path, file->entry);
    if (!removed) return std::move(removed).error();
    if (!*removed) continue;
    held.bytes -= file->entry.bytes.count;
    --held.files;
    displaced_.fetch_add(1, std::memory_order_relaxed);
  }
  return held;
}

}  // namespace wye::cache
