#include "process/entry_file.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_fields.hpp"
#include "base/checksum.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

namespace wye::inline v0::process {
namespace {

constexpr std::string_view magic = "wye entries 1\n\0\0";
constexpr std::uint64_t lock_place = std::uint64_t{1} << 62;  // behind the content
constexpr std::uint64_t head_bytes = 16, checksum_bytes = sizeof(base::Checksum);
/// A description is short: a longer one is damage.
constexpr std::uint64_t most_identity = 65536;

/// Returns the head of an entry: its size, and a checksum of that and of the entry's place.
std::vector<std::byte> head_of(std::uint64_t at, std::uint64_t size) {
  base::ByteWriter out;
  out.number(size);
  out.number(at);
  const base::Checksum sum = base::checksum(out.take());
  base::ByteWriter head;
  head.number(size);
  head.bytes(std::span(sum).first(head_bytes - sizeof(size)));
  return head.take();
}

std::vector<std::byte> beginning_of(const std::string& identity) {
  base::ByteWriter out;
  out.bytes(std::as_bytes(std::span(magic)));
  out.text(identity);
  std::vector<std::byte> bytes = out.take();
  const base::Checksum sum = base::checksum(bytes);
  bytes.insert(bytes.end(), sum.begin(), sum.end());
  return bytes;
}

Error corrupt(const std::string& path, std::uint64_t at) {
  return Error(Errc::corrupt,
               base::text("File '{}' is damaged at byte {}. Remove it to begin anew.", path, at));
}

}  // namespace

struct EntryFile::State {
  std::string path;
  base::FileLock lock;
  base::RandomFile file;
  std::uint64_t end = 0;  // of the last whole entry

  /// Reads exactly as many bytes.
  Result<void> read(std::uint64_t at, std::span<std::byte> to) const {
    const auto got = file.read(at, to);
    if (!got) return got.error();
    if (*got != to.size()) return corrupt(path, at);
    return {};
  }

  /// Reads the beginning of the file, or writes it to an empty one, or one whose creation was
  /// interrupted.
  Result<void> begin(const std::string& identity, std::uint64_t size) {
    const std::vector<std::byte> expected = beginning_of(identity);
    std::vector<std::byte> found(static_cast<std::size_t>(std::min<std::uint64_t>(size, expected.size())));
    if (auto ok = read(0, found); !ok) return ok;
    end = expected.size();
    if (std::ranges::equal(found, std::span(expected).first(found.size()))) {
      if (found.size() == expected.size()) return {};
      return file.write(0, expected);
    }
    // Another work, or damage.
    std::vector<std::byte> start(magic.size() + sizeof(std::uint64_t));
    if (size < start.size() || !read(0, start)) return corrupt(path, 0);
    base::ByteReader in(start);
    if (!std::ranges::equal(in.take(magic.size()), std::as_bytes(std::span(magic)))) return corrupt(path, 0);
    const std::uint64_t length = in.number();
    if (length > most_identity || size < start.size() + length + checksum_bytes)
      return corrupt(path, magic.size());
    std::vector<std::byte> whole(static_cast<std::size_t>(start.size() + length + checksum_bytes));
    if (auto ok = read(0, whole); !ok) return ok;
    const auto text = std::span(whole).subspan(start.size(), static_cast<std::size_t>(length));
    const std::string other(reinterpret_cast<const char*>(text.data()), text.size());
    if (beginning_of(other) != whole) return corrupt(path, magic.size());
    return base::invalid(
        base::text("File '{}' belongs to another work ({}), not to this one ({}).", path, other, identity));
  }

  Result<void> read_entries(std::uint64_t size, const Each& each) {
    std::vector<std::byte> entry;
    while (size - end >= head_bytes) {
      std::array<std::byte, head_bytes> head{};
      if (auto ok = read(end, head); !ok) return ok;
      base::ByteReader in(head);
      const std::uint64_t length = in.number();
      if (!std::ranges::equal(head, head_of(end, length))) return corrupt(path, end);
      const std::uint64_t left = size - end - head_bytes;
      if (left < checksum_bytes || left - checksum_bytes < length) break;  // interrupted
      entry.resize(static_cast<std::size_t>(length + checksum_bytes));
      if (auto ok = read(end + head_bytes, entry); !ok) return ok;
      const auto content = std::span(entry).first(static_cast<std::size_t>(length));
      if (!std::ranges::equal(base::checksum(head, content), std::span(entry).subspan(content.size()))) {
        if (left == length + checksum_bytes) break;  // the last one
        return corrupt(path, end);
      }
      if (auto ok = each(content); !ok) return ok;
      end += head_bytes + length + checksum_bytes;
    }
    return size == end ? Result<void>() : file.resize(Bytes{end});
  }
};

Result<EntryFile> EntryFile::open(const std::string& path, const std::string& identity, const Each& each) {
  if (identity.size() > most_identity)
    return base::invalid(base::text("The description of the work in file '{}' has {} bytes, more than {}.",
                                    path, identity.size(), most_identity));
  auto file = base::RandomFile::open(path, base::RandomFile::For::writing);
  if (!file) return std::move(file).error();
  auto lock = base::FileLock::acquire(path, lock_place, Instant{});
  if (!lock) return std::move(lock).error();
  if (!*lock)
    return Error(Errc::unavailable, base::text("File '{}' is in use by another process or call.", path));
  const auto size = file->size();
  if (!size) return size.error();
  auto state = std::unique_ptr<State>(new State{path, **std::move(lock), *std::move(file)});
  if (auto ok = state->begin(identity, size->count); !ok) return std::move(ok).error();
  if (auto ok = state->read_entries(std::max(size->count, state->end), each); !ok)
    return std::move(ok).error();
  return EntryFile(std::move(state));
}

EntryFile::EntryFile(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
EntryFile::EntryFile(EntryFile&&) noexcept = default;
EntryFile::~EntryFile() = default;

Result<void> EntryFile::append(std::span<const std::byte> head, std::span<const std::byte> rest) {
  std::vector<std::byte> entry = head_of(state_->end, head.size() + rest.size());
  entry.reserve(head_bytes + head.size() + rest.size() + checksum_bytes);
  entry.insert(entry.end(), head.begin(), head.end());
  entry.insert(entry.end(), rest.begin(), rest.end());
  const base::Checksum sum =
      base::checksum(std::span(entry).first(head_bytes), std::span(entry).subspan(head_bytes));
  entry.insert(entry.end(), sum.begin(), sum.end());
  // One write: a process that is killed leaves a beginning of it.
  if (auto written = state_->file.write(state_->end, entry); !written) {
    (void)state_->file.resize(Bytes{state_->end}).has_value();
    return written;
  }
  state_->end += entry.size();
  return {};
}

std::string checksum_of(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte one : base::checksum(bytes))
    text += base::text("{:02x}", std::to_integer<unsigned>(one));
  return text;
}

}  // namespace wye::process
