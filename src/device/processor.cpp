#include "device/processor.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "base/text.hpp"

namespace wye::inline v0::device {
namespace {

/// Returns `ProcessorInfo::memory` of the processor that `adapter` reaches.
std::optional<Bytes> memory_of(const AdapterInfo& adapter) {
  if (adapter.type != AdapterType::cpu) return Bytes{};  // its driver keeps a limit
  // A driver that emulates a GPU states the size of a heap. The memory of the machine is read from
  // files: not once more.
  if (!adapter.features.has(Feature::host_memory)) return std::nullopt;
  return adapter.memory;
}

/// Returns `ProcessorInfo::key` of the processor that `adapter` reaches.
std::string key_of(const AdapterInfo& adapter) {
  if (adapter.type == AdapterType::cpu) return std::string(wye::name(adapter.type));
  std::string key;
  if (adapter.device_uuid != Uuid{})
    for (const std::uint8_t byte : adapter.device_uuid) key += base::text("{:02x}", byte);
  return key;
}

}  // namespace

std::uint32_t default_slots(const AdapterInfo& adapter) noexcept {
  constexpr std::uint32_t least = 4, multiprocessors_each = 8;
  const std::uint32_t processors =
      adapter.type == AdapterType::cpu ? adapter.processors : adapter.processors / multiprocessors_each;
  return std::max({least, processors, adapter.queues});
}

std::shared_ptr<silicon::Silicon> silicon_of(const AdapterInfo& adapter) {
  return silicon::Silicon::of({.name = adapter.name.empty() ? adapter.id : adapter.name,
                               .key = key_of(adapter),
                               .slots = default_slots(adapter),
                               .memory = memory_of(adapter)});
}

}  // namespace wye::device
