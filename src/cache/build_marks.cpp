#include "cache/build_marks.hpp"

#include <array>
#include <cstring>

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

constexpr std::uint64_t places = 4096;
/// A divisor of a page: a mark is written at once or not at all.
constexpr std::size_t mark_bytes = 64;
constexpr std::string_view mark_magic = "wye mark";

std::uint64_t mark_place(const Digest& what) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, what.bytes.data() + 8, sizeof(bits));
  return bits % places * mark_bytes;
}

}  // namespace

struct BuildMarks::Mark {
  unsigned deaths = 0;
  bool is_set = false;  ///< somebody is building it, or died of it
};

Result<BuildMarks> BuildMarks::open(const std::string& path) {
  auto file = base::RandomFile::open(path, base::RandomFile::For::writing);
  if (!file) return std::move(file).error();
  return BuildMarks(std::move(*file));
}

/// The mark of `what`; nothing where its place is free, another's or damaged.
Result<std::optional<BuildMarks::Mark>> BuildMarks::read(const Digest& what) const {
  std::array<std::byte, mark_bytes> bytes{};
  auto got = file_.read(mark_place(what), bytes);
  if (!got) return std::move(got).error();
  if (std::memcmp(bytes.data(), mark_magic.data(), mark_magic.size()) != 0 ||
      std::memcmp(bytes.data() + mark_magic.size(), what.bytes.data(), what.bytes.size()) != 0)
    return std::optional<Mark>();
  const std::size_t at = mark_magic.size() + what.bytes.size();
  return std::optional(Mark{std::to_integer<unsigned>(bytes[at]), bytes[at + 1] != std::byte{0}});
}

Result<void> BuildMarks::write(const Digest& what, const Mark& mark) {
  std::array<std::byte, mark_bytes> bytes{};
  if (mark.is_set || mark.deaths != 0) {
    std::memcpy(bytes.data(), mark_magic.data(), mark_magic.size());
    std::memcpy(bytes.data() + mark_magic.size(), what.bytes.data(), what.bytes.size());
    const std::size_t at = mark_magic.size() + what.bytes.size();
    bytes[at] = static_cast<std::byte>(mark.deaths);
    bytes[at + 1] = static_cast<std::byte>(mark.is_set);
  }
  return file_.write(mark_place(what), bytes);
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
  if (auto written = write(what, {deaths, deaths < most_deaths}); !written) return std::move(written).error();
  return deaths;
}

void BuildMarks::end(const Digest& what) noexcept {
  if (const auto mark = read(what); mark && *mark) (void)write(what, {}).has_value();
}

Result<void> BuildMarks::clear() { return file_.clear(); }

}  // namespace cache
}  // namespace v0
}  // namespace wye
