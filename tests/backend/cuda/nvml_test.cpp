// The values of NVML for devices. tests/with-stand-in-cuda.sh selects its stand-in. On other
// machines the tests check only the reasons for missing values.
#include <wye/wye.hpp>

#include <optional>
#include <string_view>

#include "backend/cuda/rig.hpp"
#include "support/skip.hpp"

namespace wye::test {
namespace {

/// "standin": the stand-in for NVML is present; "none": NVML is absent; otherwise the machine's
/// NVML.
std::string_view libraries() {
  const char* const set = std::getenv("LIBRARIES");
  return set ? set : "";
}

Runtime open_runtime() {
  RuntimeOptions options;
  options.pool.backends = {"cuda", "cpu"};
  options.pool.cuda_driver = WYE_STAND_IN_CUDA;
  return good(Runtime::open(options));
}

template <class T>
void is_absent(const Reading<T>& reading, std::string_view why) {
  CHECK_FALSE(reading.value);
  INFO(reading.absence << " / " << why);
  CHECK(reading.absence.find(why) != std::string::npos);
  CHECK(reading.absence.back() == '.');
}
void all_absent(const Monitoring& all, std::string_view why) {
  is_absent(all.memory_total, why);
  is_absent(all.memory_used, why);
  is_absent(all.utilization, why);
  is_absent(all.temperature, why);
  is_absent(all.corrected_errors, why);
  is_absent(all.uncorrected_errors, why);
  is_absent(all.slowed_by_heat, why);
}

}  // namespace

TEST_CASE("each device has its values of NVML, or the reason for their absence", "[cuda][nvml]") {
  const StandIn stand_in;
  const Runtime runtime = open_runtime();
  const Metrics metrics = runtime.metrics();
  REQUIRE(metrics.devices.size() == 2);
  CHECK(metrics.devices[0].device == "cuda:0");
  CHECK(metrics.devices[1].device == "cpu:0");
  all_absent(metrics.devices[1], "Backend 'cpu' has no monitor for its devices.");
  all_absent(Device().monitor(), "handle is empty");
  const AdapterInfo& info = runtime.devices().at(0).info();
  CHECK(info.driver_version == 13000);
  const Monitoring& cuda = metrics.devices[0];
  if (libraries() != "standin") {
    CHECK_FALSE(cuda.memory_total.absence.empty());
    if (libraries() == "none") {
      all_absent(cuda, "libnvidia-ml.so.1");
      CHECK(info.driver == "CUDA driver 13.0");
    }
    return;
  }
  CHECK(info.driver == "NVIDIA 999.12.34, CUDA 13.0");
  CHECK(cuda.memory_total.value == 8_GiB);
  CHECK(cuda.memory_used.value == 3_MiB);
  CHECK(cuda.utilization.value == 0.25);
  CHECK(cuda.temperature.value == 41.0);
  CHECK(cuda.corrected_errors.value == 5u);
  CHECK(cuda.uncorrected_errors.value == 1u);
  CHECK(cuda.slowed_by_heat.value == false);
  CHECK(cuda.utilization.absence.empty());
}

TEST_CASE("asking the monitor makes no context and calls nothing of the driver", "[cuda][nvml]") {
  const StandIn stand_in;
  const auto found = discover();
  const auto device = good(found.at(0).adapter->open());
  const long pushed = stand_in.calls("cuCtxPushCurrent"),
             retained = stand_in.calls("cuDevicePrimaryCtxRetain"),
             current = stand_in.calls("cuCtxGetCurrent");
  (void)device->monitor();
  CHECK(stand_in.calls("cuCtxPushCurrent") == pushed);
  CHECK(stand_in.calls("cuDevicePrimaryCtxRetain") == retained);
  CHECK(stand_in.calls("cuCtxGetCurrent") == current);
  CHECK(stand_in.calls("cuMemGetInfo") == 0);
}

TEST_CASE("each missing number of NVML has its own reason", "[cuda][nvml]") {
  if (libraries() != "standin") return skip("NVML is not the stand-in");
  const StandIn stand_in;
  const auto monitor = [] { return good(discover().at(0).adapter->open())->monitor(); };
  {
    const Setting init("WYE_STANDIN_NVML", "nvmlInit_v2:9");
    const auto found = discover();
    CHECK(found.at(0).info.driver == "CUDA driver 13.0");
    all_absent(good(found.at(0).adapter->open())->monitor(),
               "NVML cannot be initialized: nvmlInit returns \"Driver Not Loaded\" (9).");
  }
  {
    const Setting unknown("WYE_STANDIN_NVML", "nvmlDeviceGetHandleByUUID:6");
    all_absent(monitor(),
               "NVML does not know device 'cuda:0': nvmlDeviceGetHandleByUUID returns \"Not Found\" (6).");
  }
  {
    const Setting one("WYE_STANDIN_NVML", "nvmlDeviceGetTotalEccErrors:3,nvmlDeviceGetMemoryInfo:999");
    const Monitoring some = monitor();
    is_absent(some.corrected_errors, "nvmlDeviceGetTotalEccErrors returns \"Not Supported\" (3).");
    is_absent(some.uncorrected_errors, "(3)");
    is_absent(some.memory_used, "nvmlDeviceGetMemoryInfo returns \"Unknown Error\" (999).");
    is_absent(some.memory_total, "(999)");
    CHECK(some.temperature.value == 41.0);
    CHECK(some.utilization.value == 0.25);
  }
  // A part of a device: its own memory, the temperature of the whole, and a utilization that
  // neither has.
  const Setting parts("WYE_STANDIN_MIG", "1");
  const Monitoring part = monitor();
  CHECK(part.memory_total.value == 1_GiB);
  CHECK(part.temperature.value == 41.0);
  CHECK(part.corrected_errors.value == 5u);
  is_absent(part.utilization, "nvmlDeviceGetUtilizationRates returns \"Not Supported\" (3).");
}

}  // namespace wye::test
