#include "cache/store/driver_code.hpp"

#include <utility>
#include <vector>

#include "device/lane.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

namespace {

/// Returns an empty operand of the kind that `slot` takes. An address names all of its buffer, so each has its own.
Result<Operand> nothing_for(const Slot& slot, device::DeviceBase& device) {
  if (slot.kind == SlotKind::scalar || slot.kind == SlotKind::structure)
    return Operand::of_bytes(std::vector<std::byte>(slot.size));
  Operand operand;
  operand.kind = slot.kind == SlotKind::address ? Operand::Kind::address : Operand::Kind::buffer;
  operand.access = slot.access;
  operand.element = slot.element;
  operand.size = slot.size;
  auto memory =
      device.create_buffer({.bytes = Bytes{256}, .use = device::MemoryUse::device, .account = nullptr});
  if (!memory) return std::move(memory).error();
  operand.object = *std::move(memory);
  return operand;
}

}  // namespace

void make_all_code(const std::shared_ptr<device::ExecutableBase>& executable) {
  device::DeviceBase& device = *executable->device();
  auto lane = device::Lane::create(device);
  if (!lane) return;
  Arguments arguments;
  for (const Slot& slot : executable->artefact().schema.slots) {
    auto operand = nothing_for(slot, device);
    if (!operand) return;
    arguments.push_back(*std::move(operand));
  }
  (*lane)->dispatch(executable, arguments, Extent3(0));
  (void)(*lane)->wait(Instant::max()).has_value();
}

}  // namespace cache
}  // namespace v0
}  // namespace wye
