#include "cache/store/build_marks.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_fields.hpp"
#include "base/checksum.hpp"

namespace wye::inline v0::cache {

namespace {

constexpr std::uint64_t places = 4096;
/// A divisor of a page, so that a mark is written completely or not at all.
constexpr std::size_t mark_bytes = 64;
constexpr std::string_view mark_magic = "wye mk 2";
constexpr std::size_t deaths_at = mark_magic.size() + sizeof(Digest::bytes);
/// Interruptions are counted up to this number.
constexpr unsigned most_counted = 100;

std::uint64_t mark_place(const Digest& what) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, what.bytes.data() + 8, sizeof(bits));
  return bits % places * mark_bytes;
}

}  // namespace

struct BuildMarks::Mark {
  Deaths deaths;
  bool is_set = false;  ///< a process is building it, or ended while it did

  /// Returns the bytes: magic, key, fields, a checksum of these, zeros. A damaged mark must not
  /// count as a death.
  std::array<std::byte, mark_bytes> bytes_for(const Digest& what) const {
    base::ByteWriter out;
    out.bytes(std::as_bytes(std::span(mark_magic)));
    out.bytes(what.bytes);
    out.number(deaths.interrupted, 1);
    out.number(deaths.crash.value_or(base::Crash{}).how, 1);
    out.number(deaths.step, 1);
    out.number(is_set, 1);
    out.number(deaths.minute);
    std::vector<std::byte> fields = out.take();
    std::array<std::byte, mark_bytes> bytes{};
    static_assert(deaths_at + 4 + sizeof(deaths.minute) + sizeof(base::Checksum) <= mark_bytes);
    std::ranges::copy(fields, bytes.begin());
    std::ranges::copy(base::checksum(fields), bytes.begin() + static_cast<std::ptrdiff_t>(fields.size()));
    return bytes;
  }
};

std::uint32_t Deaths::pause() const noexcept {
  if (interrupted < 2) return 0;
  return std::min(BuildMarks::minutes_kept, 1u << std::min(interrupted - 2, 6u));
}

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
  base::ByteReader in(std::span(std::as_const(bytes)).subspan(deaths_at));
  Mark mark;
  base::Crash crash;
  in.number(mark.deaths.interrupted, 1);
  in.number(crash.how, 1);
  in.number(mark.deaths.step, 1);
  in.number(mark.is_set, 1);
  in.number(mark.deaths.minute);
  if (crash != base::Crash{}) mark.deaths.crash = crash;
  if (bytes != mark.bytes_for(what)) return std::optional<Mark>();
  const std::uint32_t now = now_(), then = mark.deaths.minute;
  if (std::max(now, then) - std::min(now, then) >= minutes_kept) return std::optional<Mark>();
  return std::optional(mark);
}

Result<void> BuildMarks::write(const Digest& what, const Mark& mark) {
  const bool is_one = mark.is_set || mark.deaths.interrupted != 0 || mark.deaths.crash;
  return file_.write(mark_place(what), is_one ? mark.bytes_for(what) : std::array<std::byte, mark_bytes>{});
}

Result<Deaths> BuildMarks::deaths(const Digest& what) const {
  auto mark = read(what);
  if (!mark) return std::move(mark).error();
  return *mark ? (*mark)->deaths : Deaths{};
}

Result<Deaths> BuildMarks::settle(const Digest& what) {
  auto found = read(what);
  if (!found) return std::move(found).error();
  if (!*found) return Deaths{};
  Mark mark = **found;
  if (!std::exchange(mark.is_set, false)) return mark.deaths;
  mark.deaths.interrupted = std::min(mark.deaths.interrupted + 1, most_counted);
  if (auto written = write(what, mark); !written) return std::move(written).error();
  return mark.deaths;
}

void BuildMarks::reach(const Digest& what, const Deaths& before, std::uint8_t step) noexcept {
  Mark mark{before, true};
  mark.deaths.step = step;
  mark.deaths.minute = now_();
  (void)write(what, mark).has_value();
}

void BuildMarks::note_crash(const Digest& what, const Deaths& deaths) noexcept {
  Mark mark{deaths, false};
  mark.deaths.minute = now_();
  (void)write(what, mark).has_value();
}

bool BuildMarks::is_paused(const Deaths& deaths) const noexcept {
  const std::uint32_t now = now_();
  return deaths.pause() != 0 && now >= deaths.minute && now - deaths.minute <= deaths.pause();
}

void BuildMarks::end(const Digest& what) noexcept {
  if (const auto mark = read(what); mark && *mark) (void)write(what, {}).has_value();
}

Result<void> BuildMarks::clear() { return file_.clear(); }

}  // namespace wye::cache
