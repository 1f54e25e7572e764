#pragma once
/// Small kernels in every language of a device, for tests below the kernel room.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/artefact.hpp"
#include "device/device.hpp"
#include "device/executable.hpp"

namespace wye::test {

/// How a GPU kernel receives its buffers. Host functions are not affected.
enum class Twin {
  descriptors,  ///< bound at set 0
  addresses,    ///< {address, count} members of the push constants
};

/// The artefact of one of the test kernels. All are over 32-bit elements:
///   add    (read_write uint x, uint by)               x[i] += by
///   mix    (read uint from, read_write uint to, uint by)  to[i] = to[i] * 3 + from[i] + by
///   iota   (write uint to, uint first)                to[i] = first + i
///   axpy   (read float x, read_write float y, float a)    y[i] += a * x[i]
///   paint  (write uint to, uint width, uint height, uint depth)  to[(z * height + y) * width + x] = x + 1000 y + 1000000 z
/// Errors: unsupported if this build has no compiler for `language`; compile_failed.
Result<device::Artefact> test_kernel(std::string_view name, std::string_view language, Twin twin);

/// Returns the artefact of a test kernel for a device, in its preferred language except native
/// functions.
/// Errors: as above; unavailable if there is no compiler of CUDA C++.
Result<device::Artefact> test_kernel(std::string_view name, const device::DeviceBase& device, Twin twin);

/// Returns why there are no test kernels for CUDA devices; empty if there are.
std::string no_cuda_kernels();

/// Returns the path of the stand-in for CUDA's driver; empty if this build is without CUDA.
std::string stand_in_cuda();

/// The passings that differ on a device.
std::vector<Twin> twins(const device::DeviceBase& device);

/// Returns a test kernel on `device`, in its preferred language. Fails the test if there is none.
std::shared_ptr<device::ExecutableBase> test_executable(device::DeviceBase& device, std::string_view name,
                                                        Twin twin);

using HostFunction = std::function<void(Range, std::span<const Operand>, const StopToken&)>;

/// Returns the artefact of a host function.
device::Artefact host_artefact(std::string name, ParamSchema schema, HostFunction function, Extent3 tile = 1);

Slot buffer_slot(std::string name, Access access, ElementType element = ElementType::uint32);
Slot scalar_slot(std::string name, ElementType element = ElementType::uint32);

/// Returns the operand of a host function in slot `i`.
template <class T>
std::span<T> elements(std::span<const Operand> operands, std::size_t i) {
  return {static_cast<T*>(operands[i].data), static_cast<std::size_t>(operands[i].count)};
}
template <class T>
T scalar(std::span<const Operand> operands, std::size_t i) {
  T value;
  std::memcpy(&value, operands[i].value().data(), sizeof(T));
  return value;
}

}  // namespace wye::test
