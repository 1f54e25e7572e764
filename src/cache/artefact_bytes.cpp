#include "cache/artefact_bytes.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "kernel/key.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

// A record is: magic, format version, key, size of the payload, checksum of all of that and the payload,
// payload. Numbers are little endian; strings and lists begin with their length.
struct RecordKind {
  std::string_view magic;
  std::uint64_t format;
};
constexpr RecordKind kernel_record{"wye kernel", kernel::abi_version};
constexpr RecordKind driver_record{"wye driver", 1};
constexpr std::size_t magic_bytes = 10;
static_assert(kernel_record.magic.size() == magic_bytes && driver_record.magic.size() == magic_bytes);
constexpr std::size_t checksum_bytes = sizeof(Digest::bytes);
constexpr std::size_t header_bytes = magic_bytes + 8 + sizeof(Digest::bytes) + 8;

class Writer {
 public:
  void number(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) out_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  void bytes(std::span<const std::byte> value) { out_.insert(out_.end(), value.begin(), value.end()); }
  void list(std::span<const std::byte> value) {
    number(value.size(), 8);
    bytes(value);
  }
  void text(std::string_view value) { list(std::as_bytes(std::span(value))); }
  template <class Enum>
  void word(Enum value) {
    number(static_cast<std::uint64_t>(value), 1);
  }
  void extent(Extent3 value) {
    number(value.x, 8);
    number(value.y, 8);
    number(value.z, 8);
  }
  std::vector<std::byte> take() { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
};

/// Reads what `Writer` wrote. After the first thing that is not there, everything reads as zero and `good` is
/// false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::uint64_t number(unsigned bytes) {
    std::uint64_t value = 0;
    const auto field = take(bytes);
    for (std::size_t i = 0; i < field.size(); ++i)
      value |= std::to_integer<std::uint64_t>(field[i]) << (8 * i);
    return value;
  }
  std::uint32_t number32() { return static_cast<std::uint32_t>(number(4)); }
  std::span<const std::byte> take(std::uint64_t bytes) {
    if (bytes > rest_.size()) good_ = false, rest_ = {};
    if (!good_) return {};
    const auto field = rest_.first(static_cast<std::size_t>(bytes));
    rest_ = rest_.subspan(field.size());
    return field;
  }
  std::span<const std::byte> list() { return take(number(8)); }
  std::string text() {
    const auto field = list();
    return std::string(reinterpret_cast<const char*>(field.data()), field.size());
  }
  template <class Enum>
  Enum word(Enum last) {
    const std::uint64_t value = number(1);
    if (value > static_cast<std::uint64_t>(last)) good_ = false;
    return good_ ? static_cast<Enum>(value) : Enum{};
  }
  Extent3 extent() {
    const std::uint64_t x = number(8), y = number(8);
    return Extent3(x, y, number(8));
  }
  /// How many entries of at least `least` bytes follow; fewer than what is left has room for.
  std::size_t count(std::size_t least) {
    const std::uint64_t n = number(8);
    if (n > rest_.size() / least) good_ = false;
    return good_ ? static_cast<std::size_t>(n) : 0;
  }
  bool good() const { return good_; }
  bool at_end() const { return good_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool good_ = true;
};

constexpr unsigned feature_bits = 64;

std::vector<std::byte> encode_payload(const device::Artefact& a) {
  Writer out;
  out.text(a.kernel);
  out.text(a.language);
  out.text(a.entry);
  out.list(a.code);
  out.number(a.specialization.size(), 8);
  for (const device::Specialization& s : a.specialization) {
    out.number(s.id, 4);
    out.number(s.size, 4);
    out.number(s.bits, 8);
  }
  out.number(a.schema.slots.size(), 8);
  for (const Slot& slot : a.schema.slots) {
    out.text(slot.name);
    out.word(slot.kind);
    out.word(slot.access);
    out.word(slot.element);
    out.number(slot.size, 4);
  }
  out.number(a.passing.size(), 8);
  for (const device::Passing& passing : a.passing) {
    out.word(passing.kind);
    out.number(passing.binding, 4);
    out.number(passing.offset, 4);
  }
  out.number(a.parameter_bytes, 4);
  out.extent(a.workgroup);
  out.extent(a.tile);
  std::uint64_t needs = 0;
  for (unsigned bit = 0; bit < feature_bits; ++bit)
    if (a.needs.has(static_cast<Feature>(bit))) needs |= std::uint64_t{1} << bit;
  out.number(needs, 8);
  out.number(a.dynamic_shared, 4);
  return out.take();
}

std::optional<device::Artefact> decode_payload(std::span<const std::byte> bytes) {
  Reader in(bytes);
  device::Artefact a;
  a.kernel = in.text();
  a.language = in.text();
  a.entry = in.text();
  const auto code = in.list();
  a.code.assign(code.begin(), code.end());
  a.specialization.resize(in.count(16));
  for (device::Specialization& s : a.specialization) {
    s.id = in.number32();
    s.size = in.number32();
    s.bits = in.number(8);
  }
  a.schema.slots.resize(in.count(15));
  for (Slot& slot : a.schema.slots) {
    slot.name = in.text();
    slot.kind = in.word(SlotKind::address);
    slot.access = in.word(Access::read_write);
    slot.element = in.word(ElementType::uint64);
    slot.size = in.number32();
  }
  a.passing.resize(in.count(9));
  for (device::Passing& passing : a.passing) {
    passing.kind = in.word(device::Passing::Kind::span);
    passing.binding = in.number32();
    passing.offset = in.number32();
  }
  a.parameter_bytes = in.number32();
  a.workgroup = in.extent();
  a.tile = in.extent();
  const std::uint64_t needs = in.number(8);
  for (unsigned bit = 0; bit < feature_bits; ++bit)
    if (needs >> bit & 1) a.needs.add(static_cast<Feature>(bit));
  a.dynamic_shared = in.number32();
  if (!in.at_end() || a.passing.size() != a.schema.slots.size()) return std::nullopt;
  return a;
}

Digest checksum(std::span<const std::byte> header, std::span<const std::byte> payload) {
  return Hasher().add(header).add(payload).finish();
}

std::vector<std::byte> seal(const RecordKind& kind, const Digest& key, std::span<const std::byte> payload) {
  Writer header;
  header.bytes(std::as_bytes(std::span(kind.magic)));
  header.number(kind.format, 8);
  header.bytes(key.bytes);
  header.number(payload.size(), 8);
  std::vector<std::byte> record = header.take();
  const Digest sum = checksum(record, payload);
  record.reserve(record.size() + checksum_bytes + payload.size());
  record.insert(record.end(), sum.bytes.begin(), sum.bytes.end());
  record.insert(record.end(), payload.begin(), payload.end());
  return record;
}

/// The payload of a whole record of this kind and key.
std::optional<std::span<const std::byte>> unseal(const RecordKind& kind, const Digest& key,
                                                 std::span<const std::byte> bytes) {
  if (bytes.size() < header_bytes + checksum_bytes) return std::nullopt;
  const auto header = bytes.first(header_bytes);
  const auto sum = bytes.subspan(header_bytes, checksum_bytes);
  const auto payload = bytes.subspan(header_bytes + checksum_bytes);
  if (!std::ranges::equal(checksum(header, payload).bytes, sum)) return std::nullopt;

  Reader in(header);
  if (!std::ranges::equal(in.take(magic_bytes), std::as_bytes(std::span(kind.magic)))) return std::nullopt;
  if (in.number(8) != kind.format) return std::nullopt;
  if (!std::ranges::equal(in.take(key.bytes.size()), key.bytes)) return std::nullopt;
  if (in.number(8) != payload.size()) return std::nullopt;
  return payload;
}

}  // namespace

std::vector<std::byte> encode(const device::Artefact& artefact) {
  return seal(kernel_record, artefact.key, encode_payload(artefact));
}

std::optional<device::Artefact> decode(std::span<const std::byte> bytes, const Digest& key) {
  const auto payload = unseal(kernel_record, key, bytes);
  if (!payload) return std::nullopt;
  auto artefact = decode_payload(*payload);
  if (artefact) artefact->key = key;
  return artefact;
}

std::vector<std::byte> encode(const DriverCode& driver, const Digest& key) {
  Writer payload;
  payload.text(driver.device);
  payload.text(driver.driver);
  payload.list(driver.code);
  return seal(driver_record, key, payload.take());
}

std::optional<DriverCode> decode_driver(std::span<const std::byte> bytes, const Digest& key) {
  const auto payload = unseal(driver_record, key, bytes);
  if (!payload) return std::nullopt;
  Reader in(*payload);
  DriverCode driver;
  driver.device = in.text();
  driver.driver = in.text();
  const auto code = in.list();
  if (!in.at_end()) return std::nullopt;
  driver.code.assign(code.begin(), code.end());
  return driver;
}

}  // namespace cache
}  // namespace v0
}  // namespace wye
