#include "backend/cuda/cuda_nvml.hpp"

#include <array>
#include <mutex>
#include <type_traits>
#include <utility>

#include "base/text.hpp"
#include "device/device.hpp"

namespace wye::inline v0::cuda {
namespace {

constexpr const char* nvml_library = "libnvidia-ml.so.1";
constexpr int not_supported = 3, not_found = 6;

}  // namespace

Result<std::shared_ptr<const Nvml>> Nvml::open() {
  static std::mutex mutex;
  static std::weak_ptr<const Nvml> shared;
  // Held while NVML is initialized: concurrent callers share the result.
  const std::lock_guard lock(mutex);
  if (auto known = shared.lock()) return known;
  auto library = DynamicLibrary::open(nvml_library);
  if (!library && library.error() == Errc::io) return std::move(library).error();
  if (!library) return Error(Errc::unavailable, "NVML is not installed: " + library.error().sentence());
  std::unique_ptr<Nvml> made(new Nvml(*std::move(library)));
  const auto find = [&](auto& function, const char* name) {
    function = made->library_.function<std::remove_reference_t<decltype(function)>>(name);
    return function != nullptr;
  };
  NvmlTable table;
  if (!find(table.init, "nvmlInit_v2") || !find(table.shutdown, "nvmlShutdown") ||
      !find(table.by_uuid, "nvmlDeviceGetHandleByUUID"))
    return Error(Errc::unavailable,
                 base::text("Library '{}' lacks one of the functions nvmlInit_v2, nvmlShutdown and "
                            "nvmlDeviceGetHandleByUUID.",
                            nvml_library));
  (void)find(table.error_string, "nvmlErrorString");
  (void)find(table.driver_version, "nvmlSystemGetDriverVersion");
  (void)find(table.memory, "nvmlDeviceGetMemoryInfo");
  (void)find(table.utilization, "nvmlDeviceGetUtilizationRates");
  (void)find(table.temperature, "nvmlDeviceGetTemperature");
  (void)find(table.ecc_errors, "nvmlDeviceGetTotalEccErrors");
  (void)find(table.slow_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  (void)find(table.whole, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
  if (const int code = table.init(); code != 0) {
    made->nvml_.error_string = table.error_string;
    return Error(Errc::unavailable, "NVML cannot be initialized: " + made->error_text("nvmlInit", code));
  }
  made->nvml_ = table;
  std::shared_ptr<const Nvml> begun(std::move(made));
  shared = begun;
  return begun;
}

Nvml::~Nvml() {
  if (nvml_.shutdown) (void)nvml_.shutdown();
}

std::string Nvml::error_text(const char* api, int code) const {
  const char* const said = nvml_.error_string ? nvml_.error_string(code) : nullptr;
  return base::text("{} returns \"{}\" ({}).", api, said ? said : "unknown", code);
}

std::string Nvml::driver_version() const {
  std::array<char, 96> text{};
  if (!nvml_.driver_version || nvml_.driver_version(text.data(), text.size() - 1) != 0) return {};
  return text.data();
}

Monitoring Nvml::read(std::string device, const Uuid& uuid) const {
  NvmlTable::Device part = nullptr;
  bool divided = false;
  int found = nvml_.by_uuid(("GPU-" + to_string(uuid)).c_str(), &part);
  if (found != 0) {
    const int as_part = nvml_.by_uuid(("MIG-" + to_string(uuid)).c_str(), &part);
    divided = as_part == 0;
    if (divided || found == not_found) found = as_part;
  }
  if (found != 0)
    return device::unmonitored(device, base::text("NVML does not know device '{}': {}", device,
                                                  error_text("nvmlDeviceGetHandleByUUID", found)));
  NvmlTable::Device whole = nullptr;
  if (divided && nvml_.whole && nvml_.whole(part, &whole) != 0) whole = nullptr;
  // Reads the value of the part; the value of the whole if the part has none.
  const auto ask = [&](auto function, const char* api, std::string& absence, auto... arguments) {
    if (!function) return absence = base::text("NVML has no function {}.", api), false;
    int code = function(part, arguments...);
    if (code == not_supported && whole) code = function(whole, arguments...);
    if (code != 0)
      absence = base::text("NVML has no value for device '{}': {}", device, error_text(api, code));
    return code == 0;
  };
  Monitoring all;
  all.device = device;
  NvmlTable::Memory memory{};
  if (ask(nvml_.memory, "nvmlDeviceGetMemoryInfo", all.memory_total.absence, &memory)) {
    all.memory_total.value = Bytes{memory.total};
    all.memory_used.value = Bytes{memory.used};
  } else {
    all.memory_used.absence = all.memory_total.absence;
  }
  NvmlTable::Utilization utilization{};
  if (ask(nvml_.utilization, "nvmlDeviceGetUtilizationRates", all.utilization.absence, &utilization))
    all.utilization.value = utilization.gpu / 100.0;
  unsigned celsius = 0;
  if (ask(nvml_.temperature, "nvmlDeviceGetTemperature", all.temperature.absence, 0, &celsius))
    all.temperature.value = celsius;
  unsigned long long count = 0;
  if (ask(nvml_.ecc_errors, "nvmlDeviceGetTotalEccErrors", all.corrected_errors.absence, 0, 0, &count))
    all.corrected_errors.value = count;
  if (ask(nvml_.ecc_errors, "nvmlDeviceGetTotalEccErrors", all.uncorrected_errors.absence, 1, 0, &count))
    all.uncorrected_errors.value = count;
  constexpr unsigned long long thermal = 0x20 | 0x40;
  unsigned long long reasons = 0;
  if (ask(nvml_.slow_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons", all.slowed_by_heat.absence,
          &reasons))
    all.slowed_by_heat.value = (reasons & thermal) != 0;
  return all;
}

}  // namespace wye::cuda
