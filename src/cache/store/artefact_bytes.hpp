#pragma once
/// Artefacts, and bytes about builds of drivers, for storage.
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/artefact.hpp"

namespace wye::inline v0::cache {

/// Encodes `artefact`, which must not be a function of this process. The bytes are the same on
/// every machine and include magic, format version, key, size and a checksum.
std::vector<std::byte> encode(const device::Artefact& artefact);

/// Decodes the output of `encode` for `key`. Returns nothing for all other bytes. Reads nothing
/// outside `bytes`.
std::optional<device::Artefact> decode(std::span<const std::byte> bytes, const Digest& key);

/// Bytes that are valid for one build of a driver: the code that it generated, or the result of its
/// checks.
struct DriverRecord {
  std::string device;
  std::string driver;
  std::vector<std::byte> bytes;
};

/// The same for these.
std::vector<std::byte> encode(const DriverRecord& driver, const Digest& key);
std::optional<DriverRecord> decode_driver(std::span<const std::byte> bytes, const Digest& key);

}  // namespace wye::cache
