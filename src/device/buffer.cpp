#include "device/buffer.hpp"

#include <atomic>
#include <cassert>
#include <utility>

#include "base/text.hpp"
#include "device/device.hpp"

namespace wye::inline v0::device {

Result<void> fits(Bytes bytes, const AdapterInfo& adapter) {
  if (bytes <= adapter.limits.buffer) return {};
  return Error(Errc::out_of_memory,
               base::text("Buffer size ({} bytes) exceeds the largest buffer of '{}' ({} bytes).",
                          bytes.count, adapter.id, adapter.limits.buffer.count));
}

BufferBase::BufferBase(std::shared_ptr<DeviceBase> device, Bytes bytes, MemoryCharge charge)
    : device_(std::move(device)), charge_(std::move(charge)), bytes_(bytes) {
  static std::atomic<std::uint64_t> last{0};
  id_ = last.fetch_add(1, std::memory_order_relaxed) + 1;
}

BufferBase::~BufferBase() = default;

BufferView view_of(const Operand& operand) noexcept {
  assert(operand.object && (operand.kind == Operand::Kind::buffer || operand.kind == Operand::Kind::address));
  BufferView view{.buffer = static_cast<BufferBase*>(operand.object.get())};
  if (operand.kind == Operand::Kind::address) {
    view.bytes = view.buffer->bytes().count;
  } else {
    view.offset = operand.offset * operand.size;
    view.bytes = operand.bytes().count;
  }
  return view;
}

}  // namespace wye::device
