#include <wye/cache/shader_cache.hpp>

#include <charconv>
#include <limits>
#include <new>
#include <optional>
#include <span>

#include "base/digest.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "cache/manifest_text.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

constexpr std::string_view manifest_title = "wye manifest ";
constexpr std::uint64_t manifest_version = 1;
/// Some 500,000 kernels.
constexpr Bytes most_manifest{64ull << 20};

std::string escaped_word(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string word;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte != 0x7f && c != '%')
      word += c;
    else
      word.append({'%', digits[byte / 16], digits[byte % 16]});
  }
  return word;
}

/// Reads the words of a line in order. After the first missing word, `good` is false.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  std::string_view word() {
    if (ended_) return good_ = false, std::string_view();
    const std::size_t space = rest_.find(' ');
    ended_ = space == rest_.npos;
    const std::string_view found = rest_.substr(0, space);
    if (!ended_) rest_.remove_prefix(space + 1);
    return found;
  }
  std::uint64_t number(std::uint64_t most) {
    const std::string_view text = word();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool padded = text.size() > 1 && text.front() == '0';
    if (error != std::errc() || end != text.data() + text.size() || value > most || padded) good_ = false;
    return value;
  }
  std::string name() {
    const std::string_view text = word();
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '%') {
        plain += text[i];
        continue;
      }
      const auto byte = i + 2 < text.size() ? hex(text.substr(i + 1, 2)) : std::nullopt;
      if (!byte) return good_ = false, std::string();
      plain += static_cast<char>(*byte);
      i += 2;
    }
    if (escaped_word(plain) != text) good_ = false;  // there is one way to write a name
    return plain;
  }
  Digest digest() {
    const std::string_view text = word();
    Digest value;
    if (text.size() != 2 * value.bytes.size()) return good_ = false, value;
    for (std::size_t i = 0; i < value.bytes.size(); ++i) {
      const auto byte = hex(text.substr(2 * i, 2));
      if (!byte) return good_ = false, value;
      value.bytes[i] = static_cast<std::byte>(*byte);
    }
    return value;
  }
  bool at_end() const { return good_ && ended_; }

 private:
  static std::optional<unsigned> hex(std::string_view two) {
    unsigned value = 0;
    for (const char c : two) {
      if (c >= '0' && c <= '9')
        value = value * 16 + static_cast<unsigned>(c - '0');
      else if (c >= 'a' && c <= 'f')
        value = value * 16 + static_cast<unsigned>(c - 'a' + 10);
      else
        return std::nullopt;
    }
    return value;
  }

  std::string_view rest_;
  bool ended_ = false;
  bool good_ = true;
};

std::string last_line(std::string_view body, std::size_t entries) {
  return base::text("end {} {}\n", entries, digest(std::as_bytes(std::span(body))).hex());
}

Error damaged_manifest(const std::string& path, std::string_view how) {
  return Error(Errc::corrupt, base::text("Manifest '{}' {}.", path, how));
}

}  // namespace

std::string to_text(const Manifest& manifest) {
  std::string text = base::text("{}{}\n", manifest_title, manifest_version);
  for (const ManifestEntry& entry : manifest.entries)
    text += base::text("{} {} {} {} {} {}\n", entry.key.hex(), escaped_word(entry.backend), entry.uses,
                       entry.took.count() < 0 ? 0 : entry.took.count(), escaped_word(entry.device),
                       escaped_word(entry.kernel));
  return text + last_line(text, manifest.entries.size());
}

Result<Manifest> from_text(std::string_view text, const std::string& path) {
  if (!text.starts_with(manifest_title)) return damaged_manifest(path, "is no manifest");
  Words title(text.substr(manifest_title.size(), text.find('\n') - manifest_title.size()));
  const std::uint64_t version = title.number(std::numeric_limits<std::uint64_t>::max());
  if (!title.at_end() || text.find('\n') == text.npos) return damaged_manifest(path, "is no manifest");
  if (version > manifest_version)
    return Error(Errc::unsupported,
                 base::text("Manifest '{}' has version {}, and this build of wye reads version {}.", path,
                            version, manifest_version));
  if (text.back() != '\n') return damaged_manifest(path, "is truncated");
  const std::size_t last = text.rfind('\n', text.size() - 2) + 1;
  if (!text.substr(last).starts_with("end ")) return damaged_manifest(path, "is truncated");

  Manifest manifest;
  std::size_t number = 1;
  for (std::size_t at = text.find('\n') + 1; at < last; ++number) {
    const std::size_t end = text.find('\n', at);
    Words line(text.substr(at, end - at));
    ManifestEntry entry;
    entry.key = line.digest();
    entry.backend = line.name();
    entry.uses = line.number(std::numeric_limits<std::uint64_t>::max());
    entry.took = Duration(static_cast<Duration::rep>(line.number(std::numeric_limits<std::int64_t>::max())));
    entry.device = line.name();
    entry.kernel = line.name();
    if (!line.at_end()) return damaged_manifest(path, base::text("is malformed in line {}", number + 1));
    manifest.entries.push_back(std::move(entry));
    at = end + 1;
  }
  if (version != manifest_version ||
      text.substr(last) != last_line(text.substr(0, last), manifest.entries.size()))
    return damaged_manifest(path, "is damaged: its digest does not match");
  return manifest;
}

}  // namespace cache

Result<Manifest> Manifest::read(const std::string& path) {
  try {
    const auto content = base::read_file(path, cache::most_manifest);
    if (!content) return content.error();
    if (!*content) return Error(Errc::not_found, base::text("There is no manifest '{}'.", path));
    const std::string_view text(reinterpret_cast<const char*>((*content)->data()), (*content)->size());
    return cache::from_text(text, path);
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory left to read a manifest.");
  }
}

Result<void> Manifest::write(const std::string& path) const {
  try {
    const std::string text = cache::to_text(*this);
    return base::write_file(path, std::as_bytes(std::span(text)));
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory left to write a manifest.");
  }
}

}  // namespace v0
}  // namespace wye
