#include "cache/store/artefact_bytes.hpp"

#include <algorithm>
#include <string_view>

#include "base/checksum.hpp"
#include "cache/store/byte_fields.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

// A record consists of magic, format version, key, size of the payload, checksum of all these and the payload, payload.
struct RecordKind {
  std::string_view magic;
  std::uint64_t format;
};
constexpr RecordKind kernel_record{"wye kernel", 2};  // the kernel ABI is part of the key
constexpr RecordKind driver_record{"wye driver", 2};
constexpr std::size_t magic_bytes = 10;
static_assert(kernel_record.magic.size() == magic_bytes && driver_record.magic.size() == magic_bytes);
constexpr std::size_t checksum_bytes = sizeof(base::Checksum);
constexpr std::size_t header_bytes = magic_bytes + 8 + sizeof(Digest::bytes) + 8;

constexpr unsigned feature_bits = 64;

std::vector<std::byte> encode_payload(const device::Artefact& a) {
  ByteWriter out;
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
  // Default launch options are not stored, so that such records keep their earlier format.
  if (const LaunchOptions& launch = a.launch; launch != LaunchOptions()) {
    out.extent(launch.cluster.value_or(Extent3(0)));
    out.number(launch.cooperative ? 1 : 0, 4);
    out.number(launch.shared_carveout ? *launch.shared_carveout + 1 : 0, 4);
  }
  return out.take();
}

std::optional<device::Artefact> decode_payload(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
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
    slot.element = in.word(ElementType::boolean);
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
  if (!in.at_end()) {
    if (const Extent3 cluster = in.extent(); cluster.count() != 0) a.launch.cluster = cluster;
    a.launch.cooperative = in.number32() != 0;
    if (const std::uint32_t carveout = in.number32(); carveout != 0) a.launch.shared_carveout = carveout - 1;
  }
  if (!in.at_end() || a.passing.size() != a.schema.slots.size()) return std::nullopt;
  return a;
}

std::vector<std::byte> seal(const RecordKind& kind, const Digest& key, std::span<const std::byte> payload) {
  ByteWriter header;
  header.bytes(std::as_bytes(std::span(kind.magic)));
  header.number(kind.format, 8);
  header.bytes(key.bytes);
  header.number(payload.size(), 8);
  std::vector<std::byte> record = header.take();
  const base::Checksum sum = base::checksum(record, payload);
  record.reserve(record.size() + checksum_bytes + payload.size());
  record.insert(record.end(), sum.begin(), sum.end());
  record.insert(record.end(), payload.begin(), payload.end());
  return record;
}

/// Returns the payload of a complete record of this kind and key.
std::optional<std::span<const std::byte>> unseal(const RecordKind& kind, const Digest& key,
                                                 std::span<const std::byte> bytes) {
  if (bytes.size() < header_bytes + checksum_bytes) return std::nullopt;
  const auto header = bytes.first(header_bytes);
  const auto sum = bytes.subspan(header_bytes, checksum_bytes);
  const auto payload = bytes.subspan(header_bytes + checksum_bytes);
  if (!std::ranges::equal(base::checksum(header, payload), sum)) return std::nullopt;

  ByteReader in(header);
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
  ByteWriter payload;
  payload.text(driver.device);
  payload.text(driver.driver);
  payload.list(driver.code);
  return seal(driver_record, key, payload.take());
}

std::optional<DriverCode> decode_driver(std::span<const std::byte> bytes, const Digest& key) {
  const auto payload = unseal(driver_record, key, bytes);
  if (!payload) return std::nullopt;
  ByteReader in(*payload);
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
