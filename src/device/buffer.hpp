#pragma once
/// Buffers as a backend implements them, and the bytes that an operand names.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/operand.hpp"
#include "silicon/memory_account.hpp"

namespace wye::inline v0::device {

class DeviceBase;

// The accounts of memory are a part of the contract.
using silicon::MemoryAccount;
using silicon::MemoryCharge;

/// The use of a buffer.
enum class MemoryUse : std::uint8_t {
  device,    ///< kernels use it; the host uploads and downloads
  transfer,  ///< staging: the host and copies use it
};

struct BufferRequest {
  Bytes bytes;
  MemoryUse use = MemoryUse::device;
  /// Charged until the buffer ends, with its ancestors. Null: the account of the device's silicon.
  std::shared_ptr<MemoryAccount> account;
  std::shared_ptr<MemoryAccount> tag = nullptr;  ///< charged too; null: none
  MemoryCharge* reserved = nullptr;  ///< a charge of these accounts that the buffer takes its part of
  bool only_spare = false;  ///< take memory that the backend keeps already; the driver allocates none for it
  /// The caller overwrites all bytes before any other use. Otherwise they are zero: memory that was
  /// in another buffer, or in another part of the process, is cleared.
  bool is_overwritten = false;
};

/// Checks `bytes` against the largest buffer of an adapter.
/// Errors: out_of_memory.
Result<void> fits(Bytes bytes, const AdapterInfo& adapter);

/// Memory of one device.
/// Threads: its properties are thread-safe; lanes order access to its contents.
class BufferBase : public Retained {
 public:
  /// `charge` ends with the buffer. Memory of the application or of another driver is charged to no
  /// account.
  BufferBase(std::shared_ptr<DeviceBase> device, Bytes bytes, MemoryCharge charge = {});
  ~BufferBase() override;
  Bytes bytes() const noexcept { return bytes_; }
  /// Returns a number that differs for every buffer of this process.
  std::uint64_t id() const noexcept { return id_; }
  const std::shared_ptr<DeviceBase>& device() const noexcept { return device_; }
  /// Returns the address that kernels use; 0 if the device has none.
  virtual std::uint64_t address() const noexcept = 0;
  /// Returns its host address, valid while no submission uses it; null if the host cannot access
  /// it.
  virtual std::byte* host() const noexcept = 0;
  /// Returns whether it is to be moved: it is in an allocation that `DeviceBase::defragment`
  /// empties.
  virtual bool is_to_move() const noexcept { return false; }

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

/// Bytes of a buffer. It does not keep the buffer alive.
struct BufferView {
  BufferBase* buffer = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  /// Returns the device address of the first byte.
  std::uint64_t address() const noexcept { return buffer->address() + offset; }
};

/// Returns the bytes that an operand of a checked recording names: it is a buffer or an address.
BufferView view_of(const Operand& operand) noexcept;

}  // namespace wye::device
