#include <wye/cache/shader_cache.hpp>

#include <charconv>
#include <optional>
#include <span>

#include "base/digest.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "base/with_memory.hpp"
#include "cache/manifest_text.hpp"

namespace wye::inline v0 {
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

/// Reads the words of a line in order. It takes some words that `to_text` does not write, such as
/// 007: `from_text` compares.
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
  template <class Number>
  void number(Number& value) {
    const std::string_view text = word();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) good_ = false;
  }
  std::string name() {
    std::string_view text = word();
    std::string plain;
    for (; !text.empty(); text.remove_prefix(1)) {
      plain += text.front();
      if (text.front() != '%') continue;
      const auto byte = hex(text.substr(1, 2));
      if (!byte) return good_ = false, std::string();
      plain.back() = static_cast<char>(*byte);
      text.remove_prefix(2);
    }
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
    const auto [end, error] = std::from_chars(two.data(), two.data() + two.size(), value, 16);
    if (two.size() != 2 || error != std::errc() || end != two.data() + 2) return std::nullopt;
    return value;
  }

  std::string_view rest_;
  bool ended_ = false;
  bool good_ = true;
};

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
  const Digest sum = digest(std::as_bytes(std::span(text)));
  return text + base::text("end {} {}\n", manifest.entries.size(), sum.hex());
}

Result<Manifest> from_text(std::string_view text, const std::string& path) {
  if (!text.starts_with(manifest_title)) return damaged_manifest(path, "is no manifest");
  const std::size_t title_end = text.find('\n');
  Words title(text.substr(manifest_title.size(), title_end - manifest_title.size()));
  std::uint64_t version = 0;
  title.number(version);
  if (!title.at_end() || title_end == text.npos ||
      text.substr(0, title_end) != base::text("{}{}", manifest_title, version))
    return damaged_manifest(path, "is no manifest");
  if (version > manifest_version)
    return Error(Errc::unsupported,
                 base::text("Manifest '{}' has version {}, and this build of wye reads version {}.", path,
                            version, manifest_version));
  if (text.back() != '\n') return damaged_manifest(path, "is truncated");
  const std::size_t last = text.rfind('\n', text.size() - 2) + 1;
  if (!text.substr(last).starts_with("end ")) return damaged_manifest(path, "is truncated");

  Manifest manifest;
  std::size_t number = 1;
  for (std::size_t at = title_end + 1; at < last; ++number) {
    const std::size_t end = text.find('\n', at);
    Words line(text.substr(at, end - at));
    ManifestEntry entry;
    entry.key = line.digest();
    entry.backend = line.name();
    line.number(entry.uses);
    Duration::rep took = 0;
    line.number(took);
    entry.took = Duration(took);
    entry.device = line.name();
    entry.kernel = line.name();
    if (!line.at_end()) return damaged_manifest(path, base::text("is malformed in line {}", number + 1));
    manifest.entries.push_back(std::move(entry));
    at = end + 1;
  }
  // There is one way to write a manifest.
  if (to_text(manifest) != text) return damaged_manifest(path, "is damaged: its digest does not match");
  return manifest;
}

}  // namespace cache

Result<Manifest> Manifest::read(const std::string& path) {
  return base::with_memory("read a manifest", [&]() -> Result<Manifest> {
    const auto content = base::read_file(path, cache::most_manifest);
    if (!content) return content.error();
    if (!*content) return Error(Errc::not_found, base::text("There is no manifest '{}'.", path));
    const std::string_view text(reinterpret_cast<const char*>((*content)->data()), (*content)->size());
    return cache::from_text(text, path);
  });
}

Result<void> Manifest::write(const std::string& path) const {
  return base::with_memory("write a manifest", [&] {
    const std::string text = cache::to_text(*this);
    return base::write_file(path, std::as_bytes(std::span(text)));
  });
}

}  // namespace wye
