#pragma once
/// The checks of a device, each with a known answer.
#include <wye/kernel/kernel.hpp>
#include <wye/runtime/qualification.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "runtime/kernel_text.hpp"

namespace wye::inline v0::runtime {

/// A sentence that describes a wrong answer; nothing if the answer is right.
using Mistake = std::optional<std::string>;

/// Input and output of a kernel, as the device has left them.
struct Answer {
  std::span<const std::byte> x, y;
  std::uint32_t n = 0;
  /// Returns element `i` of the input or output, as a type of its size.
  template <class T>
  T in(std::size_t i) const {
    return at<T>(x, i);
  }
  template <class T>
  T out(std::size_t i) const {
    return at<T>(y, i);
  }

 private:
  template <class T>
  static T at(std::span<const std::byte> bytes, std::size_t i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return value;
  }
};

/// A kernel (x, y, n, parameters) with n items, and the test of its answer.
struct KernelCheck {
  std::string_view name;
  const KernelText* text;
  std::optional<Feature> feature = {};
  std::uint32_t items = 1000;              ///< n: not a multiple of the workgroup
  ElementType from = ElementType::uint32;  ///< of x, which has n elements of random bits
  std::uint32_t struct_size = 0;           ///< of an element of x that is `opaque`
  ElementType to = ElementType::uint32;    ///< of y
  std::uint32_t results = 1;               ///< elements of y for each item
  std::uint32_t more = 0;                  ///< elements of y in addition
  bool is_zeroed = false;                  ///< y begins as zeros instead of a pattern
  std::vector<SpecializationConstant> constants = {};
  std::vector<std::uint32_t> parameters = {};  ///< values after n
  ElementType parameter = ElementType::uint32;
  Mistake (*find_mistake)(const Answer& answer) = nullptr;
  /// Returns `Limits::loop_iterations` as the answer shows it; null: the check does not measure it.
  std::uint64_t (*loop_iterations)(const Answer& answer) = nullptr;
};

/// Returns all checks by kernels, the most general first.
const std::vector<KernelCheck>& kernel_checks();

/// Returns the kernel of a check.
/// Errors: those of `AnyKernel::make`.
Result<AnyKernel> make_kernel(const KernelCheck& check);

/// Returns the input of a check: the same on each call.
std::vector<std::byte> input_of(const KernelCheck& check);

}  // namespace wye::runtime
