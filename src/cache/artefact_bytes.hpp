#pragma once
/// Artefacts as bytes, for storage.
#include <cstddef>
#include <optional>
#include <span>
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

}  // namespace cache
}  // namespace v0
}  // namespace wye
