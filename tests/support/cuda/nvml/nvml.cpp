// A stand-in for NVML: the functions that wye calls, for the devices of the stand-in driver. Like
// NVML, it is found by its name in the loader's folders.
//
// Environment variables set its properties: WYE_STANDIN_DEVICES (1), WYE_STANDIN_MIG (0; 1: its
// devices are parts of one), WYE_STANDIN_NVML ("nvmlInit_v2:9,...": the result of a function),
// WYE_STANDIN_SLOW_REASONS (0: the bits of nvmlDeviceGetCurrentClocksThrottleReasons),
// WYE_STANDIN_ECC (1: errors that were not corrected).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

enum Code { success = 0, invalid_argument = 2, not_supported = 3, not_found = 6 };

struct Device {
  int number;
  bool is_part;
};
Device devices[2][16] = {};  // the whole ones, and their parts
int begun = 0;

const Device& the(void* handle) { return *static_cast<const Device*>(handle); }

long setting(const char* name, long otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? std::atol(value) : otherwise;
}

int scripted(const std::string& function) {
  const char* script = std::getenv("WYE_STANDIN_NVML");
  const char* found = script ? std::strstr(script, (function + ":").c_str()) : nullptr;
  return found ? std::atoi(found + function.size() + 1) : success;
}

}  // namespace

#define WYE_EXPORT extern "C" __attribute__((visibility("default")))
#define WYE_SCRIPTED(name)                          \
  if (const int code = scripted(name)) return code; \
  if (begun == 0) return 1

WYE_EXPORT int nvmlInit_v2() {
  if (const int code = scripted("nvmlInit_v2")) return code;
  return ++begun, success;
}
WYE_EXPORT int nvmlShutdown() {
  WYE_SCRIPTED("nvmlShutdown");
  return --begun, success;
}
WYE_EXPORT const char* nvmlErrorString(int code) {
  switch (code) {
    case not_supported: return "Not Supported";
    case not_found: return "Not Found";
    case 9: return "Driver Not Loaded";
    default: return "Unknown Error";
  }
}
WYE_EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  WYE_SCRIPTED("nvmlSystemGetDriverVersion");
  std::snprintf(text, size, "999.12.34");
  return success;
}
WYE_EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  WYE_SCRIPTED("nvmlDeviceGetHandleByUUID");
  const long parts = setting("WYE_STANDIN_MIG", 0);
  for (long i = 0; i < setting("WYE_STANDIN_DEVICES", 1); ++i) {
    char name[64];
    std::snprintf(name, sizeof(name), "%s-57575757-5757-5757-5757-5757575757%02lx", parts ? "MIG" : "GPU",
                  i + 1);
    if (std::strcmp(name, uuid) != 0) continue;
    devices[parts][i] = {static_cast<int>(i), parts != 0};
    *device = &devices[parts][i];
    return success;
  }
  return not_found;
}
WYE_EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void* handle, void** device) {
  WYE_SCRIPTED("nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
  const Device& part = the(handle);
  if (!part.is_part) return invalid_argument;
  devices[0][part.number] = {part.number, false};
  *device = &devices[0][part.number];
  return success;
}
WYE_EXPORT int nvmlDeviceGetMemoryInfo(void* device, void* memory) {
  WYE_SCRIPTED("nvmlDeviceGetMemoryInfo");
  const unsigned long long total = (the(device).is_part ? 1ull : 8ull) << 30, used = 3ull << 20;
  const unsigned long long said[] = {total, total - used, used};
  std::memcpy(memory, said, sizeof(said));
  return success;
}
WYE_EXPORT int nvmlDeviceGetUtilizationRates(void* device, void* percent) {
  WYE_SCRIPTED("nvmlDeviceGetUtilizationRates");
  if (setting("WYE_STANDIN_MIG", 0)) return not_supported;  // the whole device does not have it either
  const unsigned said[] = {25u + static_cast<unsigned>(the(device).number), 7};
  std::memcpy(percent, said, sizeof(said));
  return success;
}
WYE_EXPORT int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  WYE_SCRIPTED("nvmlDeviceGetTemperature");
  if (the(device).is_part) return not_supported;
  if (sensor != 0) return invalid_argument;
  *celsius = 41;
  return success;
}
WYE_EXPORT int nvmlDeviceGetTotalEccErrors(void* device, int kind, int counter, unsigned long long* count) {
  WYE_SCRIPTED("nvmlDeviceGetTotalEccErrors");
  if (the(device).is_part) return not_supported;
  if (kind < 0 || kind > 1 || counter != 0) return invalid_argument;
  *count = kind == 0 ? 5 : static_cast<unsigned long long>(setting("WYE_STANDIN_ECC", 1));
  return success;
}
WYE_EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* bits) {
  WYE_SCRIPTED("nvmlDeviceGetCurrentClocksThrottleReasons");
  if (the(device).is_part) return not_supported;
  *bits = static_cast<unsigned long long>(setting("WYE_STANDIN_SLOW_REASONS", 0));
  return success;
}
