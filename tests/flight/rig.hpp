#pragma once
/// Flights on devices of a pool, without a scheduler.
#include <wye/kernel/kernel.hpp>
#include <wye/pool/context_pool.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/internals.hpp"
#include "data/array_state.hpp"
#include "device/provider.hpp"
#include "flight/flight.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/scripted_pool.hpp"

namespace wye::test {

/// Builds the first program of a call for a device.
inline Result<Executable> build(const Call& call, const Device& device) {
  auto artefact = base::programs_of(call)[0]->current().build(*base::state_of(device));
  if (!artefact) return std::move(artefact).error();
  auto executable = base::state_of(device)->create_executable(*artefact);
  if (!executable) return std::move(executable).error();
  return Executable(*std::move(executable));
}

/// Makes flights on the first device of a pool.
struct Scene {
  explicit Scene(ContextPool of, const Clock& clock = Clock::steady())
      : pool(std::move(of)), flights(*base::state_of(pool), clock, 4) {}

  Device device() const { return base::state_of(pool)->fleet().device(0); }
  device::DeviceBase& state() const { return *base::state_of(device()); }
  /// Returns a request of a buffer that is charged to the pool.
  device::BufferRequest request(Bytes bytes = {}) const {
    device::BufferRequest request;
    request.bytes = bytes;
    request.account = base::state_of(pool)->accounts().of(0);
    return request;
  }
  Bytes held() const { return base::state_of(pool)->accounts().of(state())->held(); }

  ContextPool pool;
  flight::Flights flights;
};

/// The work of one job, and its flight.
struct One {
  One(const Scene& by, std::vector<Call> of, std::string_view tag = {},
      const flight::Binding::Operands* operands = nullptr, Instant until = Instant::max(),
      bool is_timed = false, bool is_stamped = false)
      : calls(std::move(of)),
        labels{calls[0].name(), tag},
        flight(by.flights.make({.calls = calls,
                                .operands = operands,
                                .times = &times,
                                .until = until,
                                .stop = &stop,
                                .is_stamped = is_stamped},
                               by.device(), 0, tag)) {
    for (const Call& call : calls)
      if (!operands) flight->add_step(build(call, by.device()).value(), is_timed);
  }

  Result<void> prepare(bool reserves = true) {
    return flight->prepare(labels, Clock::steady().now(), reserves);
  }
  /// Makes all steps before the submission. `now`: see `Flight::prepare`. Returns the first error.
  Result<void> begin(Instant now = Clock::steady().now()) {
    if (auto ok = flight->prepare(labels, now, true); !ok) return ok;
    if (auto ok = flight->lease(); !ok) return ok;
    if (auto ok = flight->bind(); !ok) return ok;
    return flight->record();
  }
  /// Begins, submits and waits; returns the first error.
  Result<void> fly() {
    if (auto ok = begin(); !ok) return ok;
    return complete();
  }
  /// Submits and waits until it has completed.
  Result<void> complete() {
    for (;;) {
      (void)flight->submit(true);
      auto completed = flight->complete();
      if (!completed) return std::move(completed).error();
      if (*completed) return {};
    }
  }

  std::vector<Call> calls;
  flight::Labels labels;
  flight::Times times;
  std::atomic<bool> stop{false};
  flight::FlightPointer flight;
};

/// Copies `values` to a new array of `pool`.
inline std::shared_ptr<data::ArrayState> array_in(const ContextPool& pool, const std::vector<float>& values) {
  return data::ArrayState::make(base::state_of(pool), std::as_bytes(std::span(values)), values.size(),
                                element_type<float>(), sizeof(float));
}

}  // namespace wye::test
