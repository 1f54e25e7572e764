#pragma once
// As much of DLPack's header as a clash of names would need.
#include <cstdint>
extern "C" {
typedef struct DLTensor {
  void* data;
} DLTensor;
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;
typedef struct DLManagedTensorVersioned {
  void* manager_ctx;
} DLManagedTensorVersioned;
}
