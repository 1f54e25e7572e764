#include <wye/interop/detail/native.hpp>

#include <new>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "device/device.hpp"
#include "device/native.hpp"

namespace wye::inline v0::interop::detail {
namespace {

/// Returns the access of `device` to the driver of `backend`.
/// Errors: invalid_argument, device_lost.
Result<device::NativeInterop*> native_access(std::string_view backend, device::DeviceBase* device) {
  if (!device)
    return Error(Errc::invalid_argument,
                 base::text("The handle is empty; expected an object of a '{}' device.", backend));
  if (device->info().backend != backend || !device->native_interop())
    return Error(Errc::invalid_argument,
                 base::text("Device '{}' has no objects of '{}'.", device->info().id, backend));
  if (const Error* lost = device->lost()) return *lost;
  return device->native_interop();
}

template <class F>
auto with_memory(const char* what, F f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, base::text("The host has no memory to {}.", what));
  }
}

}  // namespace

Result<NativeDevice> native_device(std::string_view backend, const Device& device) {
  return with_memory("describe a device", [&]() -> Result<NativeDevice> {
    auto access = native_access(backend, base::state_of(device).get());
    if (!access) return std::move(access).error();
    return (*access)->native_device();
  });
}

Result<NativeMemory> native_memory(std::string_view backend, const Buffer& buffer) {
  return with_memory("describe a buffer", [&]() -> Result<NativeMemory> {
    auto access =
        native_access(backend, base::state_of(buffer) ? base::state_of(buffer)->device().get() : nullptr);
    if (!access) return std::move(access).error();
    return (*access)->native_memory(*base::state_of(buffer));
  });
}

namespace {

/// Returns the access of the device whose lanes can wait for `point`. A timeline returns that
/// device as const, but the access does not change it.
Result<device::NativeInterop*> native_access(std::string_view backend, const SyncPoint& point) {
  return native_access(backend, base::state_of(point)
                                    ? const_cast<device::DeviceBase*>(base::state_of(point)->owner())
                                    : nullptr);
}

}  // namespace

Result<NativePoint> native_point(std::string_view backend, const SyncPoint& point) {
  return with_memory("describe a point", [&]() -> Result<NativePoint> {
    auto access = native_access(backend, point);
    if (!access) return std::move(access).error();
    return (*access)->native_point(*base::state_of(point), base::value_of(point));
  });
}

Result<void> follow(std::string_view backend, std::uint64_t queue, const SyncPoint& point) {
  return with_memory("follow a point", [&]() -> Result<void> {
    auto access = native_access(backend, point);
    if (!access) return std::move(access).error();
    return (*access)->follow(queue, *base::state_of(point), base::value_of(point));
  });
}

Result<Buffer> adopt(const Device& device, const NativeMemory& memory, ElementType element,
                     std::uint32_t element_size, Release release) {
  return with_memory("adopt memory", [&]() -> Result<Buffer> {
    auto access = native_access(memory.backend, base::state_of(device).get());
    if (!access) return std::move(access).error();
    if (element_size == 0 || memory.bytes.count % element_size != 0)
      return Error(Errc::invalid_argument,
                   base::text("The size of native memory for device '{}' ({} bytes) is not a multiple of "
                              "the element size ({} bytes).",
                              device.id(), memory.bytes.count, element_size));
    if (memory.address % element_size != 0)
      return Error(Errc::invalid_argument, base::text("The address of native memory for device '{}' is not a "
                                                      "multiple of the element size ({} bytes).",
                                                      device.id(), element_size));
    if (memory.bytes == Bytes{})
      return Error(Errc::invalid_argument,
                   base::text("Native memory for device '{}' has a size of 0 bytes.", device.id()));
    if (auto fits = device::fits(memory.bytes, device.info()); !fits) return std::move(fits).error();
    auto buffer = (*access)->adopt_memory(memory, std::move(release));
    if (!buffer) return std::move(buffer).error();
    return Buffer(*std::move(buffer), element, element_size);
  });
}

Result<SyncPoint> adopt(const Device& device, const NativePoint& point) {
  return with_memory("adopt a point", [&]() -> Result<SyncPoint> {
    auto access = native_access(point.backend, base::state_of(device).get());
    if (!access) return std::move(access).error();
    auto timeline = (*access)->adopt_timeline(point);
    if (!timeline) return std::move(timeline).error();
    return SyncPoint(*std::move(timeline), point.value);
  });
}

}  // namespace wye::interop::detail
