// The words for values of the device room in messages.
#include <wye/device/adapter.hpp>
#include <wye/device/executable.hpp>
#include <wye/device/schema.hpp>

#include "base/text.hpp"

namespace wye::inline v0 {

std::string_view name(AdapterType type) noexcept {
  switch (type) {
    case AdapterType::cpu: return "cpu";
    case AdapterType::integrated: return "integrated";
    case AdapterType::discrete: return "discrete";
    case AdapterType::virtual_gpu: return "virtual_gpu";
    case AdapterType::other: return "other";
  }
  return "unknown";
}

std::string_view name(Access access) noexcept {
  switch (access) {
    case Access::none: return "none";
    case Access::read: return "read";
    case Access::write: return "write";
    case Access::read_write: return "read_write";
  }
  return "unknown";
}

std::string_view name(SlotKind kind) noexcept {
  switch (kind) {
    case SlotKind::buffer: return "buffer";
    case SlotKind::scalar: return "scalar";
    case SlotKind::structure: return "structure";
    case SlotKind::address: return "address";
  }
  return "unknown";
}

std::string_view name(ElementType type) noexcept {
  switch (type) {
    case ElementType::opaque: return "opaque";
    case ElementType::float16: return "float16";
    case ElementType::float32: return "float32";
    case ElementType::float64: return "float64";
    case ElementType::int8: return "int8";
    case ElementType::int16: return "int16";
    case ElementType::int32: return "int32";
    case ElementType::int64: return "int64";
    case ElementType::uint8: return "uint8";
    case ElementType::uint16: return "uint16";
    case ElementType::uint32: return "uint32";
    case ElementType::uint64: return "uint64";
    case ElementType::bfloat16: return "bfloat16";
    case ElementType::boolean: return "boolean";
  }
  return "unknown";
}

std::string_view name(Feature feature) noexcept {
  switch (feature) {
    case Feature::float16: return "float16";
    case Feature::float64: return "float64";
    case Feature::int8: return "int8";
    case Feature::int16: return "int16";
    case Feature::int64: return "int64";
    case Feature::storage8: return "storage8";
    case Feature::storage16: return "storage16";
    case Feature::subgroups: return "subgroups";
    case Feature::atomics_int64: return "atomics_int64";
    case Feature::atomics_float32: return "atomics_float32";
    case Feature::host_memory: return "host_memory";
    case Feature::scalar_layout: return "scalar_layout";
    case Feature::parameters8: return "parameters8";
    case Feature::parameters16: return "parameters16";
    case Feature::subgroups_clustered: return "subgroups_clustered";
    case Feature::memory_model: return "memory_model";
    case Feature::cooperative_matrix: return "cooperative_matrix";
  }
  return "unknown";
}

std::string_view name(CacheTier tier) noexcept {
  switch (tier) {
    case CacheTier::none: return "none";
    case CacheTier::memory: return "memory";
    case CacheTier::disk: return "disk";
    case CacheTier::built: return "built";
    case CacheTier::bundle: return "bundle";
  }
  return "unknown";
}

std::string to_string(Features features) {
  std::string list;
  for (unsigned i = 0; i < 64; ++i) {
    const auto feature = static_cast<Feature>(i);
    if (!features.has(feature)) continue;
    if (!list.empty()) list += ", ";
    list += name(feature);
  }
  return list;
}

std::string to_string(const Uuid& uuid) {
  std::string text;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += base::text("{:02x}", uuid[i]);
  }
  return text;
}

std::string to_string(const ParamSchema& schema) {
  std::string list = "(";
  for (const Slot& slot : schema.slots) {
    if (list.size() > 1) list += ", ";
    list += name(slot.kind);
    if (slot.kind == SlotKind::buffer || slot.kind == SlotKind::address) {
      list += ' ';
      list += name(slot.access);
    }
    if (slot.kind != SlotKind::address) {
      list += ' ';
      list += slot.element == ElementType::opaque ? base::text("{}-byte", slot.size)
                                                  : std::string(name(slot.element));
    }
    if (!slot.name.empty()) list += ' ' + slot.name;
  }
  return list + ')';
}

}  // namespace wye
