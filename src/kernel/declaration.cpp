#include "kernel/declaration.hpp"

#include <string_view>

#include "base/text.hpp"
#include "kernel/source.hpp"

namespace wye::inline v0::kernel {

Result<void> check_schema(const std::string& kernel, const ParamSchema& schema) {
  for (std::size_t i = 0; i < schema.slots.size(); ++i) {
    const Slot& slot = schema.slots[i];
    const auto refuse = [&](std::string_view why) {
      return base::invalid(base::text("Parameter {}{} of kernel '{}' {}.", i + 1,
                                      slot.name.empty() ? "" : base::text(" '{}'", slot.name), kernel, why));
    };
    const bool memory = slot.kind == SlotKind::buffer || slot.kind == SlotKind::address;
    if (memory && slot.access == Access::none) return refuse("is neither read nor written");
    if (slot.kind != SlotKind::address && slot.size == 0) return refuse("has no size");
    if (slot.kind == SlotKind::scalar && slot.element == ElementType::opaque)
      return refuse("is a scalar without a type");
    if (slot.element != ElementType::opaque && slot.kind != SlotKind::address &&
        slot.size != size_of(slot.element))
      return refuse(base::text("has {} bytes, but is declared as {}", slot.size, wye::name(slot.element)));
  }
  return {};
}

Result<std::uint32_t> batchable_bits(const std::string& kernel, const ParamSchema& schema,
                                     const std::vector<std::size_t>& batchable) {
  const auto refuse = [&](std::size_t i, std::string_view why) {
    return base::invalid(
        base::text("Parameter {} of kernel '{}' {}, so it cannot be batchable.", i + 1, kernel, why));
  };
  std::uint32_t bits = 0;
  for (const std::size_t i : batchable) {
    if (i >= schema.slots.size())
      return refuse(i, base::text("does not exist (it has {})", schema.slots.size()));
    if (i >= 32) return refuse(i, "is beyond the first 32");
    if (schema.slots[i].kind != SlotKind::buffer) return refuse(i, "is not a buffer");
    bits |= std::uint32_t{1} << i;
  }
  for (std::size_t i = 0; bits != 0 && i < schema.slots.size(); ++i) {
    const Slot& slot = schema.slots[i];
    const bool is_memory = slot.kind == SlotKind::buffer || slot.kind == SlotKind::address;
    if (is_memory && writes(slot.access) && (i >= 32 || (bits >> i & 1) == 0))
      return base::invalid(base::text(
          "Kernel '{}' has batchable parameters and writes parameter {}, which must be batchable too.",
          kernel, i + 1));
  }
  return bits;
}

}  // namespace wye::kernel
