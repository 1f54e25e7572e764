#include "cache/store/artefact_bytes.hpp"

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "base/byte_fields.hpp"
#include "base/checksum.hpp"

namespace wye::inline v0::cache {

namespace {

// A record consists of magic, format version, key, size of the payload, checksum of all these and
// the payload, payload.
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

std::uint64_t bits_of(Features features) {
  std::uint64_t bits = 0;
  for (unsigned bit = 0; bit < 64; ++bit)
    if (features.has(static_cast<Feature>(bit))) bits |= std::uint64_t{1} << bit;
  return bits;
}
Features features_of(std::uint64_t bits) {
  Features features;
  for (unsigned bit = 0; bit < 64; ++bit)
    if (bits >> bit & 1) features.add(static_cast<Feature>(bit));
  return features;
}

/// Writes or reads the fields of an artefact.
template <class Fields, class Artefact>
void payload(Fields& fields, Artefact& a) {
  fields.text(a.kernel);
  fields.text(a.language);
  fields.text(a.entry);
  fields.list(a.code);
  fields.each(a.specialization, 16, [&](auto& constant) {
    fields.number(constant.id);
    fields.number(constant.size);
    fields.number(constant.bits);
  });
  fields.each(a.schema.slots, 15, [&](auto& slot) {
    fields.text(slot.name);
    fields.word(slot.kind, SlotKind::address);
    fields.word(slot.access, Access::read_write);
    fields.word(slot.element, ElementType::boolean);
    fields.number(slot.size);
  });
  fields.each(a.passing, 9, [&](auto& passing) {
    fields.word(passing.kind, device::Passing::Kind::span);
    fields.number(passing.binding);
    fields.number(passing.offset);
  });
  fields.number(a.parameter_bytes);
  fields.extent(a.workgroup);
  fields.extent(a.tile);
  std::uint64_t needs = bits_of(a.needs);
  fields.number(needs);
  fields.number(a.dynamic_shared);
  // Default launch options are not stored, so that such records keep their earlier format. No
  // cluster is an empty one.
  Extent3 cluster = a.launch.cluster.value_or(Extent3(0));
  std::uint32_t cooperative = a.launch.cooperative,
                carveout = a.launch.shared_carveout ? *a.launch.shared_carveout + 1 : 0;
  if (fields.more(a.launch != LaunchOptions())) {
    fields.extent(cluster);
    fields.number(cooperative);
    fields.number(carveout);
  }
  if constexpr (!std::is_const_v<Artefact>) {
    a.needs = features_of(needs);
    if (cluster.count() != 0) a.launch.cluster = cluster;
    a.launch.cooperative = cooperative != 0;
    if (carveout != 0) a.launch.shared_carveout = carveout - 1;
  }
}

/// Writes or reads the fields of bytes about a driver.
template <class Fields, class Record>
void payload_of_driver(Fields& fields, Record& driver) {
  fields.text(driver.device);
  fields.text(driver.driver);
  fields.list(driver.bytes);
}

std::vector<std::byte> seal(const RecordKind& kind, const Digest& key, std::span<const std::byte> payload) {
  base::ByteWriter header;
  header.bytes(std::as_bytes(std::span(kind.magic)));
  header.number(kind.format);
  header.bytes(key.bytes);
  header.number(payload.size());
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

  base::ByteReader in(header);
  if (!std::ranges::equal(in.take(magic_bytes), std::as_bytes(std::span(kind.magic)))) return std::nullopt;
  if (in.number() != kind.format) return std::nullopt;
  if (!std::ranges::equal(in.take(key.bytes.size()), key.bytes)) return std::nullopt;
  if (in.number() != payload.size()) return std::nullopt;
  return payload;
}

}  // namespace

std::vector<std::byte> encode(const device::Artefact& artefact) {
  base::ByteWriter out;
  payload(out, artefact);
  return seal(kernel_record, artefact.key, out.take());
}

std::optional<device::Artefact> decode(std::span<const std::byte> bytes, const Digest& key) {
  const auto record = unseal(kernel_record, key, bytes);
  if (!record) return std::nullopt;
  base::ByteReader in(*record);
  device::Artefact artefact;
  payload(in, artefact);
  if (!in.at_end() || artefact.passing.size() != artefact.schema.slots.size()) return std::nullopt;
  artefact.key = key;
  return artefact;
}

std::vector<std::byte> encode(const DriverRecord& driver, const Digest& key) {
  base::ByteWriter out;
  payload_of_driver(out, driver);
  return seal(driver_record, key, out.take());
}

std::optional<DriverRecord> decode_driver(std::span<const std::byte> bytes, const Digest& key) {
  const auto record = unseal(driver_record, key, bytes);
  if (!record) return std::nullopt;
  base::ByteReader in(*record);
  DriverRecord driver;
  payload_of_driver(in, driver);
  if (!in.at_end()) return std::nullopt;
  return driver;
}

}  // namespace wye::cache
