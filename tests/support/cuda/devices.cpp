// Devices and their contexts.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/cuda/memory.hpp"
#include "support/cuda/stream.hpp"

namespace standin {
namespace {

CUresult DeviceGetUuid(CUuuid* uuid, CUdevice device);

/// Returns whether an entry of CUDA_VISIBLE_DEVICES means the device: its number, or the beginning of
/// its UUID.
bool names(std::string_view entry, int device) {
  if (entry == std::to_string(device)) return true;
  CUuuid uuid;
  DeviceGetUuid(&uuid, device);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += (i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(digits);
  }
  return entry.size() > 4 && text.starts_with(entry);
}

/// Returns the devices that CUDA_VISIBLE_DEVICES leaves, in its order. An entry that means none ends
/// the list.
std::vector<int> visible_devices() {
  std::vector<int> all(static_cast<std::size_t>(setting("WYE_STANDIN_DEVICES", 1)));
  std::iota(all.begin(), all.end(), 0);
  const char* const value = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!value) return all;
  std::vector<int> visible;
  for (std::string_view rest = value; !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    const auto device = std::find_if(all.begin(), all.end(), [&](int one) { return names(entry, one); });
    if (device == all.end()) break;
    visible.push_back(*device);
  }
  return visible;
}

CUresult Init(unsigned) {
  bool first = true;
  {
    const std::lock_guard lock(world().mutex);
    first = !std::exchange(world().initialized, true);
  }
  if (first) spend("init");
  if (std::getenv("CUDA_VISIBLE_DEVICES") && visible_devices().empty()) return CUDA_ERROR_NO_DEVICE;
  return static_cast<CUresult>(setting("WYE_STANDIN_INIT", 0));
}
CUresult DriverGetVersion(int* version) {
  *version = static_cast<int>(setting("WYE_STANDIN_VERSION", 13000));
  return CUDA_SUCCESS;
}
CUresult DeviceGetCount(int* count) {
  *count = static_cast<int>(visible_devices().size());
  return world().initialized ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}
CUresult DeviceGet(CUdevice* device, int index) {
  const std::vector<int> visible = visible_devices();
  if (index < 0 || index >= static_cast<int>(visible.size())) return CUDA_ERROR_INVALID_DEVICE;
  *device = visible[static_cast<std::size_t>(index)];
  return CUDA_SUCCESS;
}
CUresult DeviceGetName(char* name, int size, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(size), "wye stand-in%s",
                setting("WYE_STANDIN_MIG", 0) ? " MIG 1g.1gb" : "");
  return CUDA_SUCCESS;
}
CUresult DeviceGetUuid(CUuuid* uuid, CUdevice device) {
  if (const char* given = std::getenv("WYE_STANDIN_UUID"); given && device == 0 && std::strlen(given) == 32) {
    for (std::size_t i = 0; i < 16; ++i)
      uuid->bytes[i] = static_cast<char>(std::stoi(std::string(given + 2 * i, 2), nullptr, 16));
    return CUDA_SUCCESS;
  }
  for (std::size_t i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(i == 15 ? device + 1 : 0x57);
  return CUDA_SUCCESS;
}
CUresult DeviceTotalMem(std::size_t* size, CUdevice) {
  *size = total_memory();
  return CUDA_SUCCESS;
}
CUresult DeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = architecture() / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = architecture() % 10; break;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 0x7fffffff; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65535; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 227 << 10; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED:
      *value = static_cast<int>(setting("WYE_STANDIN_TIMELINES", 1));
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = multiprocessors(); break;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH: *value = architecture() >= 90 ? 1 : 0; break;
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
      *value = static_cast<int>(setting("WYE_STANDIN_COOPERATIVE", 1));
      break;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: *value = 1; break;
    // As under MPS and on virtual GPUs: a caller that requires operations on memory in a stream's
    // order fails.
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
      *value = static_cast<int>(setting("WYE_STANDIN_COMPUTE_MODE", 0));
      break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult DevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (setting("WYE_STANDIN_TAKEN", 0)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (broken()) return state();
  if (device < 0 || device >= most_devices) return CUDA_ERROR_INVALID_DEVICE;
  bool first = false;
  {
    const std::lock_guard lock(world().mutex);
    ++world().retained;
    first = !std::exchange(world().created[device], true);
  }
  if (first) spend("context");
  *context = primary(device);
  return CUDA_SUCCESS;
}
/// Releases one handle of a context. The release of the last handle ends all objects that were
/// created in contexts.
CUresult release_context() {
  World& w = world();
  std::map<void*, Object> objects;
  std::vector<CUdeviceptr> memory;
  {
    const std::lock_guard lock(w.mutex);
    if (w.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--w.retained != 0) return CUDA_SUCCESS;
    for (std::atomic<int>& of : own_contexts) of = 0;  // left by a scripted failure of cuCtxDestroy
    std::fill(std::begin(w.created), std::end(w.created), false);
    w.left_behind += broken() ? 0 : static_cast<long>(w.objects.size() + w.memory.size());
    objects.swap(w.objects);
    for (const auto& [address, allocation] : w.memory) memory.push_back(address);
  }
  // Streams that still have work use the other objects.
  for (const bool streams : {true, false})
    for (const auto& [object, its] : objects)
      if ((its.kind == Stream::kind) == streams) its.destroy(object);
  for (const CUdeviceptr address : memory) release(address);
  return CUDA_SUCCESS;
}
CUresult DevicePrimaryCtxRelease(CUdevice) { return release_context(); }
CUresult CtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  if (setting("WYE_STANDIN_TAKEN", 0)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (broken()) return state();
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (device < 0 || device >= most_devices) return CUDA_ERROR_INVALID_DEVICE;
  spend("context");
  const std::lock_guard lock(world().mutex);
  for (std::atomic<int>& of : own_contexts)
    if (of == 0) {
      of = device + 1;
      ++world().retained;
      *context = reinterpret_cast<CUcontext>(&of);
      contexts.push_back(*context);
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult CtxDestroy(CUcontext context) {
  for (std::atomic<int>& of : own_contexts)
    if (reinterpret_cast<CUcontext>(&of) == context && of.exchange(0) != 0) return release_context();
  return CUDA_ERROR_INVALID_CONTEXT;
}
/// cuGreenCtxCreate's documentation: "A green context can be current to only one thread at a time".
CUresult CtxPushCurrent(CUcontext context) {
  World& w = world();
  {
    const std::lock_guard lock(w.mutex);
    if (const auto known = w.objects.find(context); known != w.objects.end()) {
      auto& [thread, times] = w.partitions[context];
      if (times != 0 && thread != std::this_thread::get_id()) return CUDA_ERROR_INVALID_CONTEXT;
      thread = std::this_thread::get_id();
      ++times;
    }
  }
  contexts.push_back(context);
  return CUDA_SUCCESS;
}
CUresult CtxPopCurrent(CUcontext* context) {
  if (contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = contexts.back();
  contexts.pop_back();
  World& w = world();
  const std::lock_guard lock(w.mutex);
  if (const auto known = w.partitions.find(*context);
      known != w.partitions.end() && --known->second.second == 0)
    w.partitions.erase(known);
  return CUDA_SUCCESS;
}
CUresult CtxGetCurrent(CUcontext* context) {
  *context = contexts.empty() ? nullptr : contexts.back();
  return CUDA_SUCCESS;
}

WYE_ENTRY_POINTS(WYE_ENTRY(Init, 2000), WYE_ENTRY(DriverGetVersion, 2020), WYE_ENTRY(DeviceGetCount, 2000),
                 WYE_ENTRY(DeviceGet, 2000), WYE_ENTRY(DeviceGetName, 2000), WYE_OLDER(DeviceGetUuid, 9020),
                 WYE_ENTRY(DeviceGetUuid, 11040), WYE_OLDER(DeviceTotalMem, 2000),
                 WYE_ENTRY(DeviceTotalMem, 3020), WYE_ENTRY(DeviceGetAttribute, 2000),
                 WYE_ENTRY(DevicePrimaryCtxRetain, 7000), WYE_OLDER(DevicePrimaryCtxRelease, 7000),
                 WYE_ENTRY(DevicePrimaryCtxRelease, 11000), WYE_OLDER(CtxCreate, 2000),
                 WYE_ENTRY(CtxCreate, 3020), WYE_OLDER(CtxDestroy, 2000), WYE_ENTRY(CtxDestroy, 4000),
                 WYE_OLDER(CtxPushCurrent, 2000), WYE_ENTRY(CtxPushCurrent, 4000),
                 WYE_OLDER(CtxPopCurrent, 2000), WYE_ENTRY(CtxPopCurrent, 4000),
                 WYE_ENTRY(CtxGetCurrent, 4000));

}  // namespace
}  // namespace standin
