#include "flight/operands.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "data/array_state.hpp"

namespace wye::inline v0::flight {
namespace {

const data::ArrayState& array_of(const Operand& operand) {
  return static_cast<const data::ArrayState&>(*operand.object);
}

/// Returns whether the bytes of an operand, or their addresses, exceed the largest number.
bool wraps(const Operand& operand) {
  std::uint64_t first = 0, bytes = 0, last = 0;
  const std::uint64_t begin = operand.kind == Operand::Kind::host
                                  ? std::uint64_t{reinterpret_cast<std::uintptr_t>(operand.data)}
                                  : std::uint64_t{0};
  return __builtin_mul_overflow(operand.offset, std::uint64_t{operand.size}, &first) ||
         __builtin_mul_overflow(operand.count, std::uint64_t{operand.size}, &bytes) ||
         __builtin_add_overflow(first, bytes, &last) || __builtin_add_overflow(begin, last, &last) ||
         bytes > static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max());
}

/// Returns why an operand does not fit its array, as `operand_error`.
std::optional<std::string> array_error(const Operand& operand) {
  const data::ArrayState& array = array_of(operand);
  if (operand.size != array.element_size())
    return base::text(" has an element size of {} bytes; the elements of its array have {}.", operand.size,
                      array.element_size());
  if (operand.offset > array.count() || operand.count > array.count() - operand.offset)
    return base::text(" ({} elements from element {}) exceeds its array ({} elements).", operand.count,
                      operand.offset, array.count());
  return std::nullopt;
}

/// Returns why an operand of memory is invalid, as `operand_error`.
std::optional<std::string> memory_error(const Operand& operand) {
  const bool is_array = operand.kind == Operand::Kind::array;
  if (is_array && !operand.object) return " is an empty array handle.";
  if (is_array && operand.count == AnyArray::beyond)
    return base::text(" is a slice that ends beyond its array ({} elements).", array_of(operand).count());
  if (operand.size == 0) return " has an element size of 0 bytes; expected at least 1.";
  if (wraps(operand))
    return base::text(" ({} elements of {} bytes from element {}) exceeds the address space.", operand.count,
                      operand.size, operand.offset);
  if (operand.kind == Operand::Kind::host && !operand.data && operand.count != 0)
    return base::text(" ({} elements of host memory) is a null pointer.", operand.count);
  return is_array ? array_error(operand) : std::nullopt;
}

/// Returns why an operand is invalid, as the rest of a sentence that begins with its name.
std::optional<std::string> operand_error(const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::none: return " has no kind; expected an operand.";
    case Operand::Kind::address:
      if (!operand.object) return " is the address of an empty buffer handle.";
      return std::nullopt;
    case Operand::Kind::value:
      if (operand.value().data() || operand.size == 0) return std::nullopt;
      return base::text(" is a value of {} bytes with a null pointer.", operand.size);
    case Operand::Kind::host:
    case Operand::Kind::buffer:
    case Operand::Kind::array:
    case Operand::Kind::scratch: return memory_error(operand);
  }
  return base::text(" has an unknown kind ({}).", static_cast<unsigned>(operand.kind));
}

}  // namespace

Result<void> check_operands(const Calls& calls) {
  for (std::size_t c = 0; c < calls.size(); ++c)
    for (std::size_t i = 0; i < calls[c].arguments().size(); ++i)
      if (auto wrong = operand_error(calls[c].arguments()[i]))
        return base::invalid(base::text("Argument {} of '{}'{}", i + 1, calls[c].name(), *wrong));
  return {};
}

Bytes size_of(const Calls& calls) {
  Bytes sum;
  each_operand(calls, [&](const Operand& operand) {
    const bool host = operand.kind == Operand::Kind::host;
    if (!host && operand.kind != Operand::Kind::array && operand.kind != Operand::Kind::buffer) return;
    // Jobs have few operands: comparing each with those before it is cheaper than a set.
    const bool is_first = &operand == find_operand(calls, [&](const Operand& other) {
      return other.kind == operand.kind &&
             (host ? other.data == operand.data
                   : other.object == operand.object && other.offset == operand.offset);
    });
    if (is_first && __builtin_add_overflow(sum.count, operand.bytes().count, &sum.count))
      sum.count = ~std::uint64_t{0};
  });
  return sum;
}

Result<std::uint64_t> Region::element_of(const Operand& operand) const {
  const auto offset = static_cast<std::uint64_t>(begin_of(operand) - first);
  if (offset % operand.size == 0) return offset / operand.size;
  return Error(
      Errc::invalid_argument,
      base::text("The argument overlaps another argument at an offset ({} bytes) that is not a multiple of "
                 "its element size ({} bytes).",
                 offset, operand.size));
}

void set_buffer(Operand& operand, std::shared_ptr<device::BufferBase> buffer, std::uint64_t first_element) {
  operand.kind = Operand::Kind::buffer;
  operand.object = std::move(buffer);
  operand.offset = first_element;
  operand.data = nullptr;
}

Result<void> bind_operand(Operand& operand, device::DeviceBase& device, std::span<const Region> regions,
                          const device::BufferRequest& charges) {
  const bool is_in_place = device.info().features.has(Feature::host_memory);
  if (operand.kind == Operand::Kind::array) {
    auto& array = static_cast<data::ArrayState&>(*operand.object);
    if (is_in_place) {
      operand.kind = Operand::Kind::host;
      operand.data = array.host_memory() + operand.offset * operand.size;
      operand.offset = 0;
      operand.object.reset();
      return {};
    }
    auto placed = array.on_device(device, {});
    if (!placed) return std::move(placed).error();
    set_buffer(operand, std::move(placed->buffer), operand.offset);
    return {};
  }
  if (operand.kind != Operand::Kind::host || is_in_place) return {};
  if (operand.count == 0) {
    device::BufferRequest request = charges;
    request.bytes = {};
    request.is_overwritten = true;
    auto empty = device.allocate(request);
    if (!empty) return std::move(empty).error();
    set_buffer(operand, *std::move(empty), 0);
    return {};
  }
  const auto region = std::find_if(regions.begin(), regions.end(),
                                   [&](const Region& r) { return begin_of(operand) < r.last; });
  const auto element = region->element_of(operand);
  if (!element) return element.error();
  set_buffer(operand, region->buffer, *element);
  return {};
}

}  // namespace wye::flight
