#include <wye/interop/detail/native.hpp>
#include <wye/interop/dlpack.hpp>

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "data/array_state.hpp"
#include "interop/dlpack_abi.hpp"

namespace wye::inline v0::interop {
namespace {

using data::ArrayState;

struct Row {
  ElementType element;
  std::uint8_t code;
  std::uint8_t bits;
};
constexpr Row types[] = {{ElementType::float16, dl::real, 16},
                         {ElementType::float32, dl::real, 32},
                         {ElementType::float64, dl::real, 64},
                         {ElementType::int8, dl::signed_integer, 8},
                         {ElementType::int16, dl::signed_integer, 16},
                         {ElementType::int32, dl::signed_integer, 32},
                         {ElementType::int64, dl::signed_integer, 64},
                         {ElementType::uint8, dl::unsigned_integer, 8},
                         {ElementType::uint16, dl::unsigned_integer, 16},
                         {ElementType::uint32, dl::unsigned_integer, 32},
                         {ElementType::uint64, dl::unsigned_integer, 64},
                         {ElementType::bfloat16, dl::bfloat, 16}};

const Row* row_of(ElementType element) {
  const auto* found =
      std::find_if(std::begin(types), std::end(types), [&](const Row& r) { return r.element == element; });
  return found == std::end(types) ? nullptr : found;
}

Error refused(std::string what) {
  return Error(Errc::invalid_argument, base::text("The DLPack tensor {}.", what));
}

Result<void> check_type(const DLDataType& type, ElementType element) {
  if (type.lanes != 1) return refused(base::text("has {} lanes per element; expected 1", type.lanes));
  const Row* row = row_of(element);
  if (!row) return refused(base::text("cannot be imported as an array of {}", name(element)));
  if (type.code != row->code || type.bits != row->bits)
    return refused(base::text("has elements of type code {} with {} bits; expected {} (code {}, {} bits)",
                              type.code, type.bits, name(element), row->code, row->bits));
  return {};
}

/// Returns the number of elements of a contiguous tensor.
Result<std::uint64_t> count_of(const DLTensor& tensor) {
  if (tensor.ndim < 0) return refused(base::text("has {} dimensions", tensor.ndim));
  if (tensor.ndim != 0 && !tensor.shape) return refused("has no shape");
  std::uint64_t count = 1;
  bool overflows = false;
  for (std::int32_t d = 0; d < tensor.ndim; ++d) {
    if (tensor.shape[d] < 0)
      return refused(base::text("has a negative size ({}) in dimension {}", tensor.shape[d], d));
    overflows |= __builtin_mul_overflow(count, static_cast<std::uint64_t>(tensor.shape[d]), &count);
  }
  // If one dimension is zero, the other dimensions and the strides have no effect.
  if (std::any_of(tensor.shape, tensor.shape + tensor.ndim, [](std::int64_t n) { return n == 0; }))
    return std::uint64_t{0};
  if (overflows) return refused("has a number of elements that overflows 64 bits");
  std::int64_t dense = 1;
  for (std::int32_t d = tensor.ndim - 1; tensor.strides && d >= 0; --d) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != dense)
      return refused(base::text("is not contiguous: the stride of dimension {} is {} elements; expected {}",
                                d, tensor.strides[d], dense));
    dense *= tensor.shape[d];
  }
  return count;
}

/// Returns the device of `runtime` that holds a tensor.
Result<Device> device_of(Runtime& runtime, const DLDevice& wanted) {
  const char* backend = wanted.device_type == dl::cuda     ? "cuda"
                        : wanted.device_type == dl::vulkan ? "vulkan"
                                                           : nullptr;
  if (!backend)
    return Error(Errc::unsupported, base::text("The device type of the DLPack tensor ({}) is not supported; "
                                               "expected 1 or 3 (host), 2 (CUDA) or 7 (Vulkan).",
                                               wanted.device_type));
  std::int64_t place = 0;
  for (const Device& device : runtime.devices()) {
    if (device.info().backend != backend) continue;
    std::int64_t id = place++;
    if (wanted.device_type == dl::cuda) {
      const auto native = detail::native_device(backend, device);
      if (!native) continue;
      id = static_cast<std::int64_t>(native->physical);
    }
    if (id == wanted.device_id) return device;
  }
  return Error(Errc::unsupported,
               base::text("The DLPack tensor is on device {} of '{}', which is not open in this runtime.",
                          wanted.device_id, backend));
}

Result<std::shared_ptr<ArrayState>> import_tensor(Runtime& runtime, const DLTensor& tensor, bool read_only,
                                                  ElementType element, std::uint32_t size,
                                                  const SyncPoint& ready, Release release) {
  if (auto ok = check_type(tensor.dtype, element); !ok) return std::move(ok).error();
  auto count = count_of(tensor);
  if (!count) return std::move(count).error();
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(*count, std::uint64_t{size}, &bytes))
    return refused("has a size that overflows 64 bits");
  if (*count != 0 && !tensor.data) return refused("has no data");
  const std::shared_ptr<pool::Pool>& pool = base::state_of(runtime.pool());
  std::shared_ptr<ArrayState> array;
  if (tensor.device.device_type == dl::cpu || tensor.device.device_type == dl::cuda_host) {
    auto* const first = static_cast<std::byte*>(tensor.data) + (tensor.data ? tensor.byte_offset : 0);
    if (reinterpret_cast<std::uintptr_t>(first) % size != 0)
      return refused(
          base::text("begins at an address that is not a multiple of the element size ({} bytes)", size));
    if (auto waited = ready.wait(); !waited) return std::move(waited).error();
    array = ArrayState::borrow(pool, std::span(first, bytes), *count, element, size);
    array->set_release(std::move(release), read_only);
    return array;
  }
  auto device = device_of(runtime, tensor.device);
  if (!device) return std::move(device).error();
  detail::NativeMemory memory{.backend = device->info().backend};
  memory.bytes = Bytes{bytes};
  if (tensor.device.device_type == dl::vulkan) {
    if (tensor.byte_offset != 0)
      return refused(base::text("has a byte offset ({}) in its VkBuffer; expected 0", tensor.byte_offset));
    memory.buffer = detail::number_of(tensor.data);
  } else {
    memory.address = detail::number_of(tensor.data) + tensor.byte_offset;
    if (memory.address % size != 0)
      return refused(
          base::text("begins at an address that is not a multiple of the element size ({} bytes)", size));
  }
  if (auto waited = ready.wait(); !waited) return std::move(waited).error();
  // The buffer releases the tensor, because a lane may still use the buffer after the array is
  // destroyed. If a later step fails, the buffer is destroyed without the call.
  const auto imported = std::make_shared<bool>(false);
  auto buffer = detail::adopt(*device, memory, element, size, [imported, release = std::move(release)] {
    if (*imported) release();
  });
  if (!buffer) return std::move(buffer).error();
  array = ArrayState::over(pool, base::state_of(*buffer), *count, element, size);
  if (auto failure = array->failure()) return *std::move(failure);
  array->set_release({}, read_only);
  *imported = true;
  return array;
}

/// Returns a function that calls the deleter of `tensor`, if it has one.
template <class Managed>
Release release_of(Managed* tensor) {
  return [tensor] {
    if (tensor->deleter) tensor->deleter(tensor);
  };
}

template <class F>
auto with_memory_for(const char* what, F f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, base::text("The host has no memory to {} a DLPack tensor.", what));
  }
}

/// An exported tensor, and the objects that it keeps.
template <class Managed>
struct Exported {
  Managed tensor{};
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::shared_ptr<ArrayState> array;
  std::shared_ptr<data::HostAccess> access;
  std::shared_ptr<device::BufferBase> buffer;  // on a device
};

Result<DLDevice> dl_device_of(const Device& device) {
  if (!device) return DLDevice{dl::cpu, 0};
  const std::string& backend = device.info().backend;
  if (backend == "cuda") {
    auto native = detail::native_device(backend, device);
    if (!native) return std::move(native).error();
    return DLDevice{dl::cuda, static_cast<std::int32_t>(native->physical)};
  }
  if (backend == "vulkan") return DLDevice{dl::vulkan, 0};  // `export_tensor` sets the index
  return Error(Errc::unsupported, base::text("DLPack has no device type for device '{}'.", device.id()));
}

/// Returns the index of `wanted` among the pool's devices of its backend; -1 if it is not in the
/// pool. Vulkan devices have no ordinals.
std::int32_t index_among(const std::vector<Device>& devices, const Device& wanted) {
  std::int32_t place = 0;
  for (const Device& device : devices) {
    if (device == wanted) return place;
    place += device.info().backend == wanted.info().backend;
  }
  return -1;
}

template <class Managed>
Result<Managed*> export_tensor(const AnyArray& handle, const DlpackExport& how) {
  const std::shared_ptr<ArrayState>& array = base::state_of(handle);
  if (!array) return Error(Errc::invalid_argument, "The array handle is empty.");
  const Row* row = row_of(array->element());
  if (!row)
    return Error(Errc::invalid_argument,
                 base::text("DLPack has no type code for elements of type {} ({} bytes).",
                            name(array->element()), array->element_size()));
  auto place = dl_device_of(how.on);
  if (!place) return std::move(place).error();
  const std::vector<Device> devices = array->pool()->fleet().devices();
  if (how.on && index_among(devices, how.on) < 0)
    return Error(Errc::invalid_argument,
                 base::text("Device '{}' does not belong to the array's runtime.", how.on.id()));
  if (place->device_type == dl::vulkan) place->device_id = index_among(devices, how.on);
  if (how.writable && array->is_read_only()) return array->read_only_error();

  auto out = std::make_unique<Exported<Managed>>();
  out->array = array;
  const Operand operand = handle.operand(Access::read);  // a slice, maybe
  if (operand.count == AnyArray::beyond) return array->beyond_error();
  const data::Interval elements{operand.offset, operand.offset + operand.count};
  const data::IntervalSet part(elements);
  out->shape =
      how.shape.empty() ? std::vector<std::int64_t>{static_cast<std::int64_t>(operand.count)} : how.shape;
  out->strides.resize(out->shape.size());
  DLTensor& tensor = out->tensor.dl_tensor;
  tensor.device = *place;
  tensor.ndim = static_cast<std::int32_t>(out->shape.size());
  tensor.dtype = {row->code, row->bits, 1};
  tensor.shape = out->shape.data();
  tensor.strides = out->strides.data();
  auto count = count_of({nullptr, *place, tensor.ndim, tensor.dtype, tensor.shape, nullptr, 0});
  if (!count || *count != operand.count)
    return Error(
        Errc::invalid_argument,
        base::text("The product of the shape ({} dimensions) is not the size of the array ({} elements).",
                   tensor.ndim, operand.count));
  std::int64_t dense = 1;
  for (std::size_t d = out->shape.size(); d-- > 0; dense *= std::max<std::int64_t>(out->shape[d], 1))
    out->strides[d] = dense;

  const Clock& clock = array->pool()->clock();
  const Instant until = base::parked_until(clock, how.deadline.at(clock));
  out->access =
      std::make_shared<data::HostAccess>(array, how.writable ? Access::read_write : Access::read, elements);
  if (auto waited = out->access->wait(until); !waited) return std::move(waited).error();
  if (!how.on) {
    auto bytes = array->on_host(part, until);
    if (!bytes) return std::move(bytes).error();
    tensor.data = *bytes + array->offset_of(elements).count;
    if (how.writable) array->mark_written_on(nullptr, part);
  } else {
    auto buffer = array->transfer_to(*base::state_of(how.on), part, until);
    if (!buffer) return std::move(buffer).error();
    out->buffer = *std::move(buffer);
    auto memory = detail::native_memory(how.on.info().backend,
                                        Buffer(out->buffer, array->element(), array->element_size()));
    if (!memory) return std::move(memory).error();
    tensor.data =
        detail::handle_of<void*>(place->device_type == dl::vulkan ? memory->buffer : memory->address);
    tensor.byte_offset = array->offset_of(elements).count;
    if (how.writable) array->mark_written_on(base::state_of(how.on).get(), part);
  }
  out->tensor.manager_ctx = out.get();
  out->tensor.deleter = [](Managed* last) { delete static_cast<Exported<Managed>*>(last->manager_ctx); };
  return &out.release()->tensor;
}

}  // namespace

Result<std::shared_ptr<ArrayState>> import_dlpack(Runtime& runtime, DLManagedTensorVersioned* tensor,
                                                  ElementType element, std::uint32_t size,
                                                  const SyncPoint& ready) {
  return with_memory_for("import", [&]() -> Result<std::shared_ptr<ArrayState>> {
    if (!tensor) return refused("is null");
    if (tensor->version.major != dl::version.major)
      return Error(Errc::unsupported,
                   base::text("The version of the DLPack tensor ({}.{}) is not supported; expected 1.x.",
                              tensor->version.major, tensor->version.minor));
    return import_tensor(runtime, tensor->dl_tensor, (tensor->flags & dl::read_only) != 0, element, size,
                         ready, release_of(tensor));
  });
}

Result<std::shared_ptr<ArrayState>> import_dlpack(Runtime& runtime, DLManagedTensor* tensor,
                                                  ElementType element, std::uint32_t size,
                                                  const SyncPoint& ready) {
  return with_memory_for("import", [&]() -> Result<std::shared_ptr<ArrayState>> {
    if (!tensor) return refused("is null");
    return import_tensor(runtime, tensor->dl_tensor, false, element, size, ready, release_of(tensor));
  });
}

Result<DLManagedTensorVersioned*> export_dlpack(const AnyArray& array, const DlpackExport& how) {
  return with_memory_for("export", [&]() -> Result<DLManagedTensorVersioned*> {
    auto tensor = export_tensor<DLManagedTensorVersioned>(array, how);
    if (!tensor) return tensor;
    (*tensor)->version = dl::version;
    (*tensor)->flags = how.writable ? 0 : dl::read_only;
    return tensor;
  });
}

Result<DLManagedTensor*> export_dlpack_unversioned(const AnyArray& array, const DlpackExport& how) {
  if (!how.writable)
    return Error(Errc::invalid_argument,
                 "DLPack's unversioned struct cannot mark a tensor as read-only: DlpackExport::writable must "
                 "be true.");
  return with_memory_for("export", [&] { return export_tensor<DLManagedTensor>(array, how); });
}

}  // namespace wye::interop
