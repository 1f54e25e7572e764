#pragma once
/// A scheduler on devices whose failures a test scripts.
#include <wye/pool/context_pool.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <memory>
#include <utility>
#include <vector>

#include "device/provider.hpp"
#include "scheduler/core.hpp"
#include "support/scripted_pool.hpp"

namespace wye::test {

/// Builds a program each time it is used.
class Builder : public device::ExecutableProvider {
 public:
  explicit Builder(const Clock& clock) : clock_(clock) {}
  std::optional<Duration> build_cost(const device::Program&, const device::DeviceBase&) const override {
    return std::nullopt;
  }
  Result<void> begin_build(const std::shared_ptr<const device::Program>&,
                           const std::shared_ptr<device::DeviceBase>&) override {
    return {};
  }
  const Clock& clock() const noexcept override { return clock_; }
  Result<device::Provided> provide(const std::shared_ptr<const device::Program>& program,
                                   const std::shared_ptr<device::DeviceBase>& device, Instant) override {
    auto artefact = program->current().build(*device);
    if (!artefact) return std::move(artefact).error();
    auto executable = device->create_executable(*artefact);
    if (!executable) return std::move(executable).error();
    return device::Provided{Executable(std::move(*executable)), CacheTier::built, {}};
  }
  Result<device::Provided> make_ready(const std::shared_ptr<const device::Program>& program,
                                      const std::shared_ptr<device::DeviceBase>& device,
                                      Instant until) override {
    return provide(program, device, until);
  }

 private:
  const Clock& clock_;
};

/// The `batch_limit` of tests whose jobs share submissions. By default the jobs of the schedulers
/// below have submissions of their own, because tests count these: once a kernel has completed, its
/// jobs share a submission if one more of them waits than lanes are free.
inline constexpr std::uint32_t shares_submissions = 63;

/// Opens a scheduler on `pool`; jobs of `workload_types::custom` try `devices` in their order.
inline Scheduler scheduler_on(const ContextPool& pool, const std::vector<Scripted>& devices,
                              SchedulerOptions options,
                              std::shared_ptr<device::ExecutableProvider> provider = nullptr) {
  if (options.preferences.empty()) {
    Preference row{workload_types::custom, Bytes{0}, {}};
    for (const Scripted& device : devices) row.backends.push_back(device->info().backend);
    options.preferences.push_back(row);
  }
  if (options.batch_limit == SchedulerOptions().batch_limit) options.batch_limit = 1;
  const Clock& clock = options.clock ? *options.clock : Clock::steady();
  if (!provider) provider = std::make_shared<Builder>(clock);
  return scheduler::open(pool, std::move(provider), std::move(options)).value();
}

/// The same, on a pool of these devices.
inline Scheduler scheduler_of(const std::vector<Scripted>& devices, SchedulerOptions options = {},
                              PoolOptions pool_options = {}) {
  pool_options.clock = options.clock;
  return scheduler_on(pool_of(devices, std::move(pool_options)), devices, std::move(options));
}

}  // namespace wye::test
