#pragma once
/// DLPack's structs, with the names and layout of its specification
/// (https://dmlc.github.io/dlpack/latest/c_api.html). The header that a distribution installs may
/// be older and lack some of them.
#include <cstdint>

extern "C" {

struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};

struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major, without gaps
  std::uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};

struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  DLTensor dl_tensor;
};
}

namespace wye::inline v0::interop {

namespace dl {
inline constexpr std::int32_t cpu = 1, cuda = 2, cuda_host = 3, vulkan = 7;  // DLDeviceType
inline constexpr std::uint8_t signed_integer = 0, unsigned_integer = 1, real = 2,
                              bfloat = 4;      // DLDataTypeCode
inline constexpr std::uint64_t read_only = 1;  // of `flags`
inline constexpr DLPackVersion version{1, 0};
}  // namespace dl

}  // namespace wye::interop
