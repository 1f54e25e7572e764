#include <wye/kernel/kernel.hpp>

#include "device/provider.hpp"

namespace wye::inline v0 {

namespace {

bool is_memory(const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::host:
    case Operand::Kind::buffer:
    case Operand::Kind::array:
    case Operand::Kind::scratch: return true;
    default: return false;
  }
}

}  // namespace

std::string_view Call::name() const noexcept {
  return programs_[0] ? programs_[0]->name() : std::string_view("call");
}

Extent3 Call::default_items() const noexcept {
  const Operand* first = nullptr;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const Operand& operand = arguments_[i];
    if (!is_memory(operand)) continue;
    if (writes(operand.access)) return Extent3(operand.count);
    if (!first) first = &operand;
  }
  return first ? Extent3(first->count) : Extent3(1);
}

}  // namespace wye
