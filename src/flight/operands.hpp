#pragma once
/// Operands of calls: the memory that they name, and that memory on a device.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "device/device.hpp"
#include "flight/calls.hpp"

namespace wye::inline v0::flight {

/// Returns whether the operand is memory of the host, which must outlive its job. An operand
/// without elements is none.
inline bool borrows_memory(const Operand& operand) {
  return operand.kind == Operand::Kind::host && operand.count != 0;
}

inline std::byte* begin_of(const Operand& operand) { return static_cast<std::byte*>(operand.data); }
inline std::byte* end_of(const Operand& operand) { return begin_of(operand) + operand.bytes().count; }

template <class F>
void each_operand(const Calls& calls, F f) {
  for (std::size_t c = 0; c < calls.size(); ++c)
    for (const Operand& operand : calls[c].arguments()) f(operand);
}

/// Returns the first operand with `is_wanted`, or null.
template <class F>
const Operand* find_operand(const Calls& calls, F is_wanted) {
  for (std::size_t c = 0; c < calls.size(); ++c)
    for (const Operand& operand : calls[c].arguments())
      if (is_wanted(operand)) return &operand;
  return nullptr;
}

/// Checks operands that callers filled in themselves: no number wraps, no operand ends outside of
/// its memory.
/// Errors: invalid_argument.
Result<void> check_operands(const Calls& calls);

/// Returns the bytes of all operands, each counted once, without scratch.
Bytes size_of(const Calls& calls);

/// A range of host memory, with its buffer.
struct Region {
  std::byte* first = nullptr;
  std::byte* last = nullptr;
  bool upload = false;  ///< a kernel reads it, or writes a part of it
  bool download = false;
  bool is_set = false;              ///< another job of the launch uploads or clears it
  std::uint32_t copies = 1;         ///< of the range in `buffer`, one for each job of a launch
  std::uint64_t buffer_offset = 0;  ///< of the range, in bytes
  std::shared_ptr<device::BufferBase> buffer = nullptr;

  std::uint64_t bytes() const noexcept { return static_cast<std::uint64_t>(last - first); }
  /// Returns the element of the buffer at which an operand in this range begins.
  /// Errors: invalid_argument (the operand begins between two elements).
  Result<std::uint64_t> element_of(const Operand& operand) const;
};

/// Names a buffer as the memory of an operand.
void set_buffer(Operand& operand, std::shared_ptr<device::BufferBase> buffer, std::uint64_t first_element);

/// Replaces the memory of an operand, which is of the host or an array, by its memory on a device.
/// The other kinds stay. `regions`: those of the host memory, in ascending order; not read on a
/// device with Feature::host_memory. `charges`: the accounts of a buffer for an operand without
/// elements.
/// Errors: invalid_argument (`Region::element_of`), over_budget, out_of_memory, device_lost.
Result<void> bind_operand(Operand& operand, device::DeviceBase& device, std::span<const Region> regions,
                          const device::BufferRequest& charges);

}  // namespace wye::flight
