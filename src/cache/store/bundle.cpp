#include "cache/store/bundle.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/byte_fields.hpp"
#include "base/checksum.hpp"
#include "base/text.hpp"
#include "cache/store/artefact_bytes.hpp"

namespace wye::inline v0::cache {

namespace {

constexpr std::string_view bundle_magic = "wye bundle";
constexpr std::uint64_t bundle_version = 2;
constexpr std::size_t title_bytes = bundle_magic.size() + 8 + 8;
constexpr std::size_t line_bytes = sizeof(Digest::bytes) + 8 + 8;

Error damaged_bundle(const std::string& path, std::string_view how) {
  return Error(Errc::corrupt, base::text("Bundle '{}' {}.", path, how));
}

}  // namespace

Result<Bundle> Bundle::open(const std::string& path) {
  auto file = base::RandomFile::open(path, base::RandomFile::For::reading);
  if (!file) return std::move(file).error();
  const auto size = file->size();
  if (!size) return size.error();
  std::vector<std::byte> title(title_bytes);
  const auto got = file->read(0, title);
  if (!got) return got.error();
  if (*got != title.size() || std::memcmp(title.data(), bundle_magic.data(), bundle_magic.size()) != 0)
    return damaged_bundle(path, "is no bundle");
  base::ByteReader sizes(std::span(std::as_const(title)).subspan(bundle_magic.size()));
  const std::uint64_t version = sizes.number();
  if (version != bundle_version)
    return Error(Errc::unsupported,
                 base::text("Bundle '{}' has version {}, and this build of wye reads version {}.", path,
                            version, bundle_version));
  const std::uint64_t count = sizes.number();
  if (count > size->count / line_bytes) return damaged_bundle(path, "is truncated");

  std::vector<std::byte> list(static_cast<std::size_t>(count) * line_bytes + sizeof(base::Checksum));
  const auto listed = file->read(title_bytes, list);
  if (!listed) return listed.error();
  if (*listed != list.size()) return damaged_bundle(path, "is truncated");
  const std::span<const std::byte> lines =
      std::span(std::as_const(list)).first(list.size() - sizeof(base::Checksum));
  const base::Checksum sum = base::checksum(title, lines);
  if (std::memcmp(sum.data(), list.data() + lines.size(), sum.size()) != 0)
    return damaged_bundle(path, "is damaged: the checksum of its index does not match");

  Bundle bundle(std::move(*file), path);
  bundle.entries_.resize(static_cast<std::size_t>(count));
  base::ByteReader in(lines);
  for (std::size_t i = 0; i < bundle.entries_.size(); ++i) {
    Entry& entry = bundle.entries_[i];
    in.bytes(entry.key.bytes);
    in.number(entry.offset);
    in.number(entry.bytes);
    if (i > 0 && !(bundle.entries_[i - 1].key < entry.key))
      return damaged_bundle(path, base::text("is damaged: its index is not sorted at entry {}", i));
    if (entry.offset > size->count || entry.bytes > size->count - entry.offset)
      return damaged_bundle(path, base::text("is truncated before its entry {}", i));
  }
  return bundle;
}

Result<void> Bundle::write(const std::string& path, const std::map<Digest, std::vector<std::byte>>& records) {
  base::ByteWriter head;
  head.bytes(std::as_bytes(std::span(bundle_magic)));
  head.number(bundle_version);
  head.number(records.size());
  std::uint64_t offset = title_bytes + records.size() * line_bytes + sizeof(base::Checksum);
  for (const auto& [key, record] : records) {
    head.bytes(key.bytes);
    head.number(offset);
    head.number(record.size());
    offset += record.size();
  }
  std::vector<std::byte> content = head.take();
  const base::Checksum sum = base::checksum(content);
  content.insert(content.end(), sum.begin(), sum.end());
  for (const auto& [key, record] : records) content.insert(content.end(), record.begin(), record.end());
  return base::write_file(path, content);
}

Bundle::Found Bundle::find(const Digest& key) const {
  const auto entry = std::lower_bound(entries_.begin(), entries_.end(), key,
                                      [](const Entry& e, const Digest& wanted) { return e.key < wanted; });
  if (entry == entries_.end() || entry->key != key) return {};
  std::vector<std::byte> record(static_cast<std::size_t>(entry->bytes));
  const auto got = file_.read(entry->offset, record);
  if (!got || *got != record.size()) return {std::nullopt, true};
  auto artefact = decode(record, key);
  const bool corrupt = !artefact;
  return {std::move(artefact), corrupt};
}

}  // namespace wye::cache
