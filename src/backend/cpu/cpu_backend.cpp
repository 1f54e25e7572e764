#include <utility>

#include "backend/cpu/cpu_device.hpp"
#include "base/host_info.hpp"
#include "base/process.hpp"
#include "device/backend.hpp"

namespace wye::inline v0::cpu {
namespace {

using namespace device;

AdapterInfo describe() {
  const base::HostInfo host = base::host_info();
  AdapterInfo info;
  info.id = "cpu:0";
  info.backend = "cpu";
  info.name = host.processor;
  info.type = AdapterType::cpu;
  info.device_uuid = host.machine;
  info.driver = "wye " + to_string(library_version());
  info.api = "host";
  info.memory = host.memory;
  const Bytes largest = host.memory == Bytes{} ? Bytes{~std::uint64_t{0}} : host.memory;  // unknown
  info.processors = base::usable_processors();
  // Host functions accept grids and parameters of any size. Only memory limits them.
  constexpr std::uint64_t any = ~std::uint64_t{0};
  info.limits = {.workgroup = {any, any, any},
                 .workgroup_invocations = any,
                 .groups = {any, any, any},
                 .buffer = largest,
                 .descriptor_range = largest,
                 .shared_memory = largest,
                 .parameter_bytes = largest,
                 .bound_buffers = ~std::uint32_t{0},
                 .offset_alignment = 1,
                 .subgroup_size = 1};
  info.features = {Feature::float64,    Feature::int8,      Feature::int16,         Feature::int64,
                   Feature::storage8,   Feature::storage16, Feature::atomics_int64, Feature::atomics_float32,
                   Feature::host_memory};
  info.usable = true;
  return info;
}

class CpuAdapter final : public Adapter {
 public:
  CpuAdapter(AdapterInfo info, const BackendOptions& options)
      : info_(std::move(info)), threads_(options.cpu_threads), kept_memory_(options.kept_memory) {}
  const AdapterInfo& info() const noexcept override { return info_; }
  Result<std::shared_ptr<DeviceBase>> open() override {
    auto team = base::Team::share(threads_);
    if (!team) return std::move(team).error();
    return std::shared_ptr<DeviceBase>(base::make_own<CpuDevice>(info_, *std::move(team), kept_memory_));
  }

 private:
  AdapterInfo info_;
  unsigned threads_;
  Bytes kept_memory_;
};

class CpuBackend final : public Backend {
 public:
  std::string_view name() const noexcept override { return "cpu"; }
  std::vector<Discovered> discover(const BackendOptions& options) override {
    AdapterInfo info = describe();
    auto adapter = std::make_shared<CpuAdapter>(info, options);
    return {{.info = std::move(info), .adapter = std::move(adapter)}};
  }
};

}  // namespace

std::unique_ptr<Backend> make_backend();
std::unique_ptr<Backend> make_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace wye::cpu
