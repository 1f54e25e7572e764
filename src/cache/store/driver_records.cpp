#include "cache/store/driver_records.hpp"

#include <chrono>
#include <utility>

#include "cache/store/artefact_bytes.hpp"

namespace wye::inline v0::cache {

Result<std::optional<std::vector<std::byte>>> StoredDriverRecords::load(const Digest& key) {
  const auto bytes = store_.get_report(key);
  if (!bytes) return std::optional<std::vector<std::byte>>();
  auto record = decode_driver(*bytes, key);
  if (!record) return Error(Errc::corrupt, "The bytes of the record fail its checksum.");
  return std::optional(std::move(record->bytes));
}

bool StoredDriverRecords::update(const Digest& key, const Subject& subject, const Update& update) {
  constexpr auto longest_wait = std::chrono::seconds(1);  // an update takes some milliseconds
  const Claim claim = store_.claim(key, Clock::steady().now() + longest_wait);
  if (claim.waited && !claim.lock) return false;
  const auto stored = load(key);
  std::vector<std::byte> bytes =
      update(stored && *stored ? std::span<const std::byte>(**stored) : std::span<const std::byte>());
  if (bytes.empty()) return store_.drop_report(key), true;
  return store_.put_report(key, encode(DriverRecord{subject.device, subject.driver, std::move(bytes)}, key));
}

}  // namespace wye::cache
