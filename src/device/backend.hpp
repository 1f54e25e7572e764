#pragma once
/// A vendor's driver as a backend implements it, and the table of backends, which the build writes from the folders in
/// src/backend.
#include <wye/base/bytes.hpp>
#include <wye/base/log.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/native.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wye {
inline namespace v0 {
namespace device {

class DeviceBase;

/// A device that could be opened.
/// Threads: thread-safe.
class Adapter {
 public:
  virtual ~Adapter();
  virtual const AdapterInfo& info() const noexcept = 0;
  /// Errors: unavailable, unsupported, out_of_memory, with the error of the driver.
  virtual Result<std::shared_ptr<DeviceBase>> open() = 0;
};

/// Options of a backend.
struct BackendOptions {
  unsigned cpu_threads = 0;      ///< size of the CPU team; 0: one per processor
  bool validate = false;         ///< turns the driver's own checks on, if there are any
  LogSink log;                   ///< receives their messages
  std::string cuda_driver = {};  ///< the library to open as CUDA's driver; empty: the system's
  /// Opening a device that cannot be divided fails with `partition`. The CPU is divided by its threads.
  Isolation isolation = Isolation::shared;
  Partition partition = {};  ///< checked: one of its members at most, within the device
  /// Device memory that the driver keeps per account after its buffers ended, within the account's limit. The rest goes back
  /// to the system. A driver that returns memory at each wait takes hundreds of microseconds to allocate it again.
  Bytes kept_memory = Bytes{512ull << 20};
};

/// An adapter that a backend found, usable or not. A missing driver is one entry with its reason.
struct Discovered {
  AdapterInfo info;
  std::shared_ptr<Adapter> adapter;  ///< null if not usable
};

/// The devices of one vendor's driver.
/// Threads: thread-safe.
class Backend {
 public:
  virtual ~Backend();
  virtual std::string_view name() const noexcept = 0;
  /// Finds adapters. Never fails and never prints: a failure is the reason in an entry.
  virtual std::vector<Discovered> discover(const BackendOptions& options) = 0;
  /// Adopts a device that the host has opened, as the adapter `id`. The host keeps it open until all its objects have ended.
  /// Errors: unsupported (names the missing feature), invalid_argument, unavailable.
  virtual Result<Discovered> adopt(const NativeDevice& device, std::string id, const BackendOptions& options);
};

/// What the devices of a backend are: the default orders of devices are made of this, and of nothing else.
enum class BackendKind : std::uint8_t {
  gpu,
  cpu,
  none,  ///< in no default order: only opened by name
};

/// What a backend says of itself in src/backend/<name>/descriptor.hpp, also to a build that leaves it out.
struct BackendDescriptor {
  BackendKind kind = BackendKind::none;
  std::uint8_t rank = 0;  ///< among the backends of its kind: lowest first
};

struct BackendEntry {
  std::string_view name;
  BackendDescriptor descriptor;
  std::unique_ptr<Backend> (*make)();  ///< null: this build leaves it out
};

/// Returns all backends, in alphabetical order.
std::span<const BackendEntry> backend_table() noexcept;

/// Returns the entry of a backend, or null.
const BackendEntry* find_backend(std::string_view name) noexcept;

/// Returns the names of all backends in the default order, those that this build leaves out too: the backends of kind
/// `first`, by rank, then the others.
std::vector<std::string_view> backend_order(BackendKind first);

/// Returns whether an adapter is a GPU driver's whose device is the CPU. Such a device is correct and slow.
bool is_emulated(const AdapterInfo& info) noexcept;

}  // namespace device
}  // namespace v0
}  // namespace wye
