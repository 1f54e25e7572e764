#include "device/buffer.hpp"

#include <atomic>
#include <utility>

#include "base/text.hpp"
#include "device/device.hpp"

namespace wye {
inline namespace v0 {
namespace device {

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

Result<BufferView> view_of(const Operand& operand, const DeviceBase& device) {
  const auto refused = [&](std::string what) {
    return Error(Errc::invalid_argument,
                 base::text("An operand given to a lane of device '{}' {}.", device.info().id, what));
  };
  if ((operand.kind != Operand::Kind::buffer && operand.kind != Operand::Kind::address) || !operand.object)
    return refused("is not a buffer");
  BufferView view{.buffer = static_cast<BufferBase*>(operand.object.get())};
  if (view.buffer->device().get() != &device) return refused("is a buffer of another device");
  const std::uint64_t size = view.buffer->bytes().count;
  if (operand.kind == Operand::Kind::address) {
    view.bytes = size;
  } else if (__builtin_mul_overflow(operand.offset, std::uint64_t{operand.size}, &view.offset) ||
             __builtin_mul_overflow(operand.count, std::uint64_t{operand.size}, &view.bytes) ||
             view.offset > size || view.bytes > size - view.offset) {
    return refused(base::text("ends outside its buffer ({} bytes)", size));
  }
  return view;
}

}  // namespace device
}  // namespace v0
}  // namespace wye
