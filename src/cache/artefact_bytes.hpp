#pragma once
/// Artefacts and what drivers make of them as bytes, for storage.
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/artefact.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

/// `artefact`, which is no code of this process, as bytes: the same on every machine, with what is needed to
/// see that they are still what was written (magic, format version, key, size, BLAKE2b-256 of it all).
std::vector<std::byte> encode(const device::Artefact& artefact);

/// The artefact stored under `key` in `bytes`, or nothing where they are not exactly what `encode` wrote for
/// that key. Reads nothing outside `bytes`, whatever they are.
std::optional<device::Artefact> decode(std::span<const std::byte> bytes, const Digest& key);

/// What a driver made of kernels, and which driver that was, in words.
struct DriverCode {
  std::string device;
  std::string driver;
  std::vector<std::byte> code;
};

/// The same for what a driver made.
std::vector<std::byte> encode(const DriverCode& driver, const Digest& key);
std::optional<DriverCode> decode_driver(std::span<const std::byte> bytes, const Digest& key);

}  // namespace cache
}  // namespace v0
}  // namespace wye
