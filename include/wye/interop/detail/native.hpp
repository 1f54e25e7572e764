#pragma once
/// The functions of the library that the headers of `interop` call. Objects of drivers are numbers
/// here.
#include <wye/base/result.hpp>
#include <wye/device/buffer.hpp>
#include <wye/device/detail/native_objects.hpp>
#include <wye/device/device.hpp>
#include <wye/device/native.hpp>
#include <wye/device/sequence.hpp>

#include <cstdint>
#include <string_view>

namespace wye::inline v0::interop::detail {

using wye::detail::handle_of;
using wye::detail::NativeMemory;
using wye::detail::NativePoint;
using wye::detail::number_of;

/// Returns the driver's object of a handle, valid as long as the handle.
/// Errors: invalid_argument (an empty handle, or one of another backend), device_lost.
WYE_API Result<NativeDevice> native_device(std::string_view backend, const Device& device);
WYE_API Result<NativeMemory> native_memory(std::string_view backend, const Buffer& buffer);
WYE_API Result<NativePoint> native_point(std::string_view backend, const SyncPoint& point);

/// Returns a buffer over memory of the application. Does not call `release` if it fails.
/// Errors: invalid_argument, out_of_memory, device_lost.
WYE_API Result<Buffer> adopt(const Device& device, const NativeMemory& memory, ElementType element,
                             std::uint32_t element_size, Release release);
/// Makes later work of the application on its queue (CUDA: CUstream) wait for `point`.
/// Errors: invalid_argument, unsupported, unavailable, device_lost.
WYE_API Result<void> follow(std::string_view backend, std::uint64_t queue, const SyncPoint& point);
/// Returns a point of the application that lanes of `device` can wait for.
/// Errors: invalid_argument, unsupported, device_lost.
WYE_API Result<SyncPoint> adopt(const Device& device, const NativePoint& point);

}  // namespace wye::interop::detail
