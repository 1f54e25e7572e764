#pragma once
/// DLPack: tensors of other libraries in the same process become arrays, and arrays theirs, without a copy. Its structs are
/// only named here: include dlpack/dlpack.h of any version before or after, or none where they only pass through.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/data/array.hpp>
#include <wye/device/device.hpp>
#include <wye/device/sequence.hpp>
#include <wye/runtime/runtime.hpp>

#include <cstdint>
#include <memory>
#include <vector>

struct DLManagedTensor;           // until DLPack 1.0, and still given by many
struct DLManagedTensorVersioned;  // DLPack 1.x

namespace wye {
inline namespace v0 {
namespace interop {

/// How an array is handed out.
struct DlpackExport {
  std::vector<std::int64_t> shape = {};  ///< its product is the array's size; empty: one dimension
  Device on = {};                        ///< where its contents are to be; empty: on the host
  /// false: the tensor says that it is read-only, and jobs that read the array go on meanwhile. true: it is the consumer's
  /// alone until the tensor's deleter is called; jobs that use it wait.
  bool writable = false;
  Deadline deadline = {};  ///< for the jobs before it
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

/// The tensor as an array of T, in row-major order, without a copy: of the host (kDLCPU, kDLCUDAHost), or of a device that
/// `runtime` has open: kDLCUDA by its ordinal; kDLVulkan by its place among the runtime's Vulkan devices, with a VkBuffer as
/// data, which DLPack leaves open. Its deleter is called once, after the last use; not where this fails.
/// That is on whatever thread lets go of it last, which may be a worker's: a job lets go of it before the wait for its ticket
/// returns. A tensor that is read-only makes an array that jobs may read only. On the host what jobs wrote is there after
/// `read()`.
/// Shape:   any number of dimensions, contiguous; byte_offset is kept (of a VkBuffer it is 0).
/// Errors:  invalid_argument (another element type, lanes, strides with a gap, misaligned, null), unsupported (a newer DLPack,
///          a device that `runtime` does not have open), timed_out.
/// Cost:    waits until `ready`, a point behind the producer's last work on it; empty: that is over, as the protocol has it for
///          a consumer that named no stream.
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

/// The array as a tensor, without a copy where its contents already are `how.on`. Who takes it calls its deleter once; until
/// then jobs that would change the array wait. Work on it is over: it may be used on any stream.
/// Errors:  invalid_argument (the shape's product is not its size; an element type that DLPack has no name for), unsupported (a
///          device that DLPack cannot name), timed_out, the failure of the array.
inline Result<DLManagedTensorVersioned*> to_dlpack(const AnyArray& array, const DlpackExport& how = {}) {
  return export_dlpack(array, how);
}
/// The same for consumers of the old struct, which cannot say that it is read-only: only where `how.writable`.
inline Result<DLManagedTensor*> to_dlpack_unversioned(const AnyArray& array, const DlpackExport& how) {
  return export_dlpack_unversioned(array, how);
}

}  // namespace interop
}  // namespace v0
}  // namespace wye
