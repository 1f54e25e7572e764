#include "cache/store/build_marks.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checksum.hpp"
#include "cache/store/byte_fields.hpp"

namespace wye::inline v0::cache {

namespace {

constexpr std::uint64_t places = 4096;
/// A divisor of a page, so that a mark is written completely or not at all.
constexpr std::size_t mark_bytes = 64;
constexpr std::string_view mark_magic = "wye mark";
constexpr std::size_t deaths_at = mark_magic.size() + sizeof(Digest::bytes);

std::uint64_t mark_place(const Digest& what) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, what.bytes.data() + 8, sizeof(bits));
  return bits % places * mark_bytes;
}

/// Returns the bytes of a mark: magic, key, deaths, whether it is set, the time, a checksum of
/// these, zeros. A damaged mark must not count as a death.
std::array<std::byte, mark_bytes> mark_of(const Digest& what, unsigned deaths, bool is_set,
                                          std::uint32_t minute) {
  ByteWriter out;
  out.bytes(std::as_bytes(std::span(mark_magic)));
  out.bytes(what.bytes);
  out.number(deaths, 1);
  out.number(is_set, 1);
  out.number(minute);
  std::vector<std::byte> fields = out.take();
  std::array<std::byte, mark_bytes> bytes{};
  std::ranges::copy(fields, bytes.begin());
  std::ranges::copy(base::checksum(fields), bytes.begin() + static_cast<std::ptrdiff_t>(fields.size()));
  return bytes;
}

}  // namespace

struct BuildMarks::Mark {
  unsigned deaths = 0;
  bool is_set = false;       ///< a process is building it, or ended while it did
  std::uint32_t minute = 0;  ///< of the last set, since 1970
};

Result<BuildMarks> BuildMarks::open(const std::string& path, std::uint32_t (*now)()) {
  auto file = base::RandomFile::open(path, base::RandomFile::For::writing);
  if (!file) return std::move(file).error();
  return BuildMarks(std::move(*file), now);
}

/// Returns the mark of `what`. Returns nothing if its place is free, damaged or holds another mark,
/// or if it has expired.
Result<std::optional<BuildMarks::Mark>> BuildMarks::read(const Digest& what) const {
  std::array<std::byte, mark_bytes> bytes{};
  auto got = file_.read(mark_place(what), bytes);
  if (!got) return std::move(got).error();
  ByteReader in(std::span(std::as_const(bytes)).subspan(deaths_at));
  Mark mark;
  in.number(mark.deaths, 1);
  in.number(mark.is_set, 1);
  in.number(mark.minute);
  if (mark.deaths > most_deaths || bytes != mark_of(what, mark.deaths, mark.is_set, mark.minute))
    return std::optional<Mark>();
  const std::uint32_t now = now_();
  if (std::max(now, mark.minute) - std::min(now, mark.minute) >= minutes_kept) return std::optional<Mark>();
  return std::optional(mark);
}

Result<void> BuildMarks::write(const Digest& what, const Mark& mark) {
  const bool is_one = mark.is_set || mark.deaths != 0;
  return file_.write(mark_place(what), is_one ? mark_of(what, mark.deaths, mark.is_set, mark.minute)
                                              : std::array<std::byte, mark_bytes>{});
}

Result<unsigned> BuildMarks::deaths(const Digest& what) const {
  auto mark = read(what);
  if (!mark) return std::move(mark).error();
  return *mark ? (*mark)->deaths : 0u;
}

Result<unsigned> BuildMarks::begin(const Digest& what) {
  auto found = read(what);
  if (!found) return std::move(found).error();
  const unsigned deaths = *found ? (*found)->deaths + ((*found)->is_set ? 1 : 0) : 0;
  const bool tried = deaths < most_deaths;  // a build that is refused keeps the time of its last try
  if (auto written = write(what, {deaths, tried, tried ? now_() : (*found)->minute}); !written)
    return std::move(written).error();
  return deaths;
}

void BuildMarks::end(const Digest& what) noexcept {
  if (const auto mark = read(what); mark && *mark) (void)write(what, {}).has_value();
}

Result<void> BuildMarks::clear() { return file_.clear(); }

}  // namespace wye::cache
