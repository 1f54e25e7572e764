#pragma once
/// The interface of a backend, and the table of backends, which the build generates from the
/// folders in src/backend.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/log.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/native.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wye::inline v0::device {

class DeviceBase;

/// A device that can be opened.
/// Threads: thread-safe.
class Adapter {
 public:
  virtual ~Adapter();
  virtual const AdapterInfo& info() const noexcept = 0;
  /// Errors: unavailable, unsupported, out_of_memory, with the error of the driver.
  virtual Result<std::shared_ptr<DeviceBase>> open() = 0;
  /// Returns whether `open` may be called again after the device was lost.
  virtual bool can_reopen() const noexcept { return false; }
};

/// Options of a backend.
struct BackendOptions {
  unsigned cpu_threads = 0;      ///< size of the CPU team; 0: one per processor
  bool validate = false;         ///< enables the driver's own checks, if there are any
  LogSink log;                   ///< receives their messages
  std::string cuda_driver = {};  ///< the library to open as CUDA's driver; empty: the system's
  /// `Adapter::open` fails with `partition` if the device cannot be divided. The CPU is divided by
  /// its threads.
  Isolation isolation = Isolation::shared;
  Partition partition = {};  ///< checked: at most one member is set
  /// Memory of freed buffers that each device keeps. The rest returns to the system, which takes
  /// hundreds of microseconds to provide it again.
  Bytes kept_memory = Bytes{512ull << 20};
  /// Pinned memory that the transfers of a device use at a time. Larger transfers take turns; each
  /// lane has one part of 8 MiB even above it. It is kept until `release_spare_memory`.
  Bytes pinned_memory = Bytes{64ull << 20};
  /// The longest time that a thread polls for a device before it sleeps; zero: it sleeps at once.
  Duration poll_limit = std::chrono::microseconds(300);
};

/// An adapter that a backend found, usable or not. A missing driver is one entry with its reason.
struct Discovered {
  AdapterInfo info;
  std::shared_ptr<Adapter> adapter;  ///< null if not usable
  bool is_adopted = false;           ///< the application has opened the device
};

/// The devices of one vendor's driver.
/// Threads: thread-safe.
class Backend {
 public:
  virtual ~Backend();
  virtual std::string_view name() const noexcept = 0;
  /// Finds adapters. Never fails and never prints: a failure is the reason in an entry.
  virtual std::vector<Discovered> discover(const BackendOptions& options) = 0;
  /// Adopts a device that the host has opened, as the adapter `id`. The host keeps it open until
  /// all its objects have ended.
  /// Errors: unsupported (names the missing feature), invalid_argument, unavailable.
  virtual Result<Discovered> adopt(const NativeDevice& device, std::string id, const BackendOptions& options);
};

/// The kind of a backend's devices. The default orders of devices depend only on kinds and ranks.
enum class BackendKind : std::uint8_t {
  gpu,
  cpu,
  none,  ///< in no default order: only opened by name
};

/// Describes a backend. It stands in src/backend/<name>/descriptor.hpp and is compiled even if the
/// backend is not.
struct BackendDescriptor {
  BackendKind kind = BackendKind::none;
  std::uint8_t rank = 0;  ///< position among the backends of its kind, lowest first
};

struct BackendEntry {
  std::string_view name;
  BackendDescriptor descriptor;
  std::unique_ptr<Backend> (*make)();  ///< null if it is not compiled
};

/// Returns all backends, in alphabetical order.
std::span<const BackendEntry> backend_table() noexcept;

/// Returns the entry of a backend, or null.
const BackendEntry* find_backend(std::string_view name) noexcept;

/// Returns the names of all backends in the default order, including backends that are not
/// compiled: the backends of kind `first`, by rank, then the others.
std::vector<std::string_view> backend_order(BackendKind first);

/// Returns whether an adapter of a GPU backend runs on the CPU. Such a device is correct and slow.
bool is_emulated(const AdapterInfo& info) noexcept;

}  // namespace wye::device
