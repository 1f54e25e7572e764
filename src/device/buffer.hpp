#pragma once
/// Memory of a device, and the bytes of it that an operand names.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/operand.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/memory_account.hpp"

namespace wye {
inline namespace v0 {
namespace device {

class DeviceBase;

/// What memory is for.
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

/// Errors: out_of_memory where `bytes` is more than any buffer of this adapter can be.
Result<void> fits(Bytes bytes, const AdapterInfo& adapter);

/// Memory of one device.
/// Threads: thread-safe to read its properties; its contents are ordered by lanes.
class BufferBase : public Retained {
 public:
  /// `charge` ends with the buffer. Memory that wye does not own is charged to no account.
  BufferBase(std::shared_ptr<DeviceBase> device, Bytes bytes, MemoryCharge charge = {});
  ~BufferBase() override;
  Bytes bytes() const noexcept { return bytes_; }
  /// Different for every buffer of this process.
  std::uint64_t id() const noexcept { return id_; }
  const std::shared_ptr<DeviceBase>& device() const noexcept { return device_; }
  /// The address kernels see; 0 where the device has none.
  virtual std::uint64_t address() const noexcept = 0;
  /// Where the host may read and write it while no submission uses it; null where it cannot.
  virtual std::byte* host() const noexcept = 0;

 private:
  std::shared_ptr<DeviceBase> device_;
  MemoryCharge charge_;
  Bytes bytes_;
  std::uint64_t id_;
};

/// The buffer of an operand that is one, or an address in one; null where it holds none.
inline const BufferBase* buffer_of(const Operand& operand) noexcept {
  return static_cast<const BufferBase*>(operand.object.get());
}

/// Bytes of a buffer, which somebody else keeps.
struct BufferView {
  BufferBase* buffer = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  /// Where they begin on the device.
  std::uint64_t address() const noexcept { return buffer->address() + offset; }
};

/// The bytes that an operand given to a lane of `device` means.
/// Errors: invalid_argument: it is no buffer, one of another device, or ends outside its buffer.
Result<BufferView> view_of(const Operand& operand, const DeviceBase& device);

}  // namespace device
}  // namespace v0
}  // namespace wye
