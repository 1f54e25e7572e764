#pragma once
/// DLPack: converts tensors of other libraries in the process to arrays and back, without a copy.
/// Its structs are declared here, not defined: a program may include any version of dlpack/dlpack.h
/// before or after, or none.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/data/array.hpp>
#include <wye/device/device.hpp>
#include <wye/device/sequence.hpp>
#include <wye/runtime/runtime.hpp>

#include <cstdint>
#include <memory>
#include <vector>

struct DLManagedTensor;           // before DLPack 1.0, and still common
struct DLManagedTensorVersioned;  // DLPack 1.x

namespace wye::inline v0::interop {

/// Options of `to_dlpack`.
struct DlpackExport {
  std::vector<std::int64_t> shape = {};  ///< its product is the array's size; empty: one dimension
  Device on = {};                        ///< the device of the contents; empty: the host
  /// false: the tensor is marked read-only, and jobs may read the array while it exists. true: jobs
  /// that use the array wait until the tensor's deleter is called.
  bool writable = false;
  Deadline deadline = {};  ///< of the wait for earlier jobs
};

WYE_API Result<std::shared_ptr<data::ArrayState>> import_dlpack(Runtime& runtime,
                                                                DLManagedTensorVersioned* tensor,
                                                                ElementType element, std::uint32_t size,
                                                                const SyncPoint& ready);
WYE_API Result<std::shared_ptr<data::ArrayState>> import_dlpack(Runtime& runtime, DLManagedTensor* tensor,
                                                                ElementType element, std::uint32_t size,
                                                                const SyncPoint& ready);
WYE_API Result<DLManagedTensorVersioned*> export_dlpack(const AnyArray& array, const DlpackExport& how);
WYE_API Result<DLManagedTensor*> export_dlpack_unversioned(const AnyArray& array, const DlpackExport& how);

/// Returns the tensor as an array of T, in row-major order, without a copy. The tensor is on the
/// host (kDLCPU, kDLCUDAHost) or on an open device of `runtime`: kDLCUDA by ordinal, kDLVulkan by
/// index among the runtime's Vulkan devices, with a VkBuffer as data. Calls the deleter once after
/// the last use, on the thread that releases the array last; not if it fails. A job releases it
/// before the wait for its ticket returns. Jobs can only read the array of a read-only tensor. Host
/// memory has the results of jobs after `read()`.
/// Shape:   any number of dimensions, contiguous; byte_offset is kept (of a VkBuffer it is 0).
/// Errors:  invalid_argument (another element type, lanes, strides with a gap, misaligned, null),
///          unsupported (a newer DLPack, a device that `runtime` does not have open), timed_out.
/// Cost:    waits for `ready`, a point after the producer's last work on the tensor. Empty: this
///          work has completed, as the protocol demands for a consumer that named no stream.
template <class T>
Result<Array<T>> from_dlpack(Runtime& runtime, DLManagedTensorVersioned* tensor,
                             const SyncPoint& ready = {}) {
  auto array = import_dlpack(runtime, tensor, element_type<T>(), sizeof(T), ready);
  if (!array) return std::move(array).error();
  return Array<T>(*std::move(array));
}
template <class T>
Result<Array<T>> from_dlpack(Runtime& runtime, DLManagedTensor* tensor, const SyncPoint& ready = {}) {
  auto array = import_dlpack(runtime, tensor, element_type<T>(), sizeof(T), ready);
  if (!array) return std::move(array).error();
  return Array<T>(*std::move(array));
}

/// Returns the array as a tensor, without a copy if its contents are on `how.on`. The consumer
/// calls its deleter once; until then jobs that would change the array wait. Earlier work has
/// completed, so the consumer may use any stream.
/// Errors:  invalid_argument (the shape's product is not its size; an element type without a DLPack
///          type code), unsupported (a device without a DLPack device type), timed_out, the failure
///          of the array.
inline Result<DLManagedTensorVersioned*> to_dlpack(const AnyArray& array, const DlpackExport& how = {}) {
  return export_dlpack(array, how);
}
/// Returns the array as a tensor in the old struct, which cannot mark tensors as read-only:
/// `how.writable` must be true.
inline Result<DLManagedTensor*> to_dlpack_unversioned(const AnyArray& array, const DlpackExport& how) {
  return export_dlpack_unversioned(array, how);
}

}  // namespace wye::interop
