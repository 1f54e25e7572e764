#pragma once
/// Memory of a device, and the bytes of it that an operand names.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/memory_account.hpp"
#include "device/operand.hpp"

namespace wye {
inline namespace v0 {
namespace device {

class DeviceBase;

/// Says how memory is used.
enum class MemoryUse : std::uint8_t {
  device,    ///< kernels read and write it; the host through uploads and downloads
  transfer,  ///< the host writes or reads it directly, copies move it: staging
};

struct BufferRequest {
  Bytes bytes;
  MemoryUse use = MemoryUse::device;
  /// Charged while the buffer lives, with its ancestors up to the account of the device's silicon. Null: that account.
  std::shared_ptr<MemoryAccount> account;
};

/// Checks `bytes` against the largest buffer of an adapter.
/// Errors: out_of_memory.
Result<void> fits(Bytes bytes, const AdapterInfo& adapter);

/// Memory of one device.
/// Threads: thread-safe to read its properties; its contents are ordered by lanes.
class BufferBase : public Retained {
 public:
  /// `charge` ends with the buffer. Memory that wye does not own is charged to no account.
  BufferBase(std::shared_ptr<DeviceBase> device, Bytes bytes, MemoryCharge charge = {});
  ~BufferBase() override;
  Bytes bytes() const noexcept { return bytes_; }
  /// Returns a number that differs for every buffer of this process.
  std::uint64_t id() const noexcept { return id_; }
  const std::shared_ptr<DeviceBase>& device() const noexcept { return device_; }
  /// Returns the address that kernels use; 0 if the device has none.
  virtual std::uint64_t address() const noexcept = 0;
  /// Returns where the host may read and write it while no submission uses it; null if it cannot.
  virtual std::byte* host() const noexcept = 0;

 private:
  std::shared_ptr<DeviceBase> device_;
  MemoryCharge charge_;
  Bytes bytes_;
  std::uint64_t id_;
};

/// Returns the buffer of an operand that is a buffer or an address; null otherwise.
inline const BufferBase* buffer_of(const Operand& operand) noexcept {
  return static_cast<const BufferBase*>(operand.object.get());
}

/// Bytes of a buffer, which it does not keep alive.
struct BufferView {
  BufferBase* buffer = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  /// Returns the device address of the first byte.
  std::uint64_t address() const noexcept { return buffer->address() + offset; }
};

/// Returns the bytes that an operand of a checked recording names: it is a buffer or an address.
BufferView view_of(const Operand& operand) noexcept;

}  // namespace device
}  // namespace v0
}  // namespace wye
