#include "cache/store/driver_code.hpp"

#include <utility>
#include <vector>

#include "device/lane.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

/// Returns an empty operand of the kind that `slot` takes.
Operand nothing_for(const Slot& slot, const std::shared_ptr<device::BufferBase>& memory) {
  if (slot.kind == SlotKind::scalar || slot.kind == SlotKind::structure)
    return Operand::of_bytes(std::vector<std::byte>(slot.size));
  Operand operand;
  operand.kind = slot.kind == SlotKind::address ? Operand::Kind::address : Operand::Kind::buffer;
  operand.access = slot.access;
  operand.element = slot.element;
  operand.size = slot.size;
  operand.object = memory;
  return operand;
}

}  // namespace

void make_all_code(const std::shared_ptr<device::ExecutableBase>& executable) {
  const std::shared_ptr<device::DeviceBase>& device = executable->device();
  auto memory =
      device->create_buffer({.bytes = Bytes{256}, .use = device::MemoryUse::device, .account = nullptr});
  auto base = device->create_lane();
  if (!memory || !base) return;
  device::Lane lane(*std::move(base));
  Arguments arguments;
  for (const Slot& slot : executable->artefact().schema.slots)
    arguments.push_back(nothing_for(slot, *memory));
  lane.dispatch(executable, arguments, Extent3(0));
  (void)lane.wait(Instant::max()).has_value();
}

}  // namespace cache
}  // namespace v0
}  // namespace wye
