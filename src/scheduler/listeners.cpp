#include "scheduler/listeners.hpp"

#include "base/cancellation.hpp"
#include "base/gate.hpp"

namespace wye::inline v0::scheduler {
namespace {

constinit thread_local int functions_on_this_thread = 0;

}  // namespace

std::vector<Continuation> publish(Record& record) noexcept {
  std::vector<Continuation> continuations;
  record.is_settled = true;
  if (!record.is_watched) return continuations;
  Parking& parking = record.parking();
  const base::Lock lock(parking.mutex);
  if (record.listeners) {
    continuations.swap(record.listeners->continuations);
    for (AnyWait* const any : record.listeners->any_waits) any->notify();
  }
  parking.gate.wake_all();
  return continuations;
}

void call(const std::vector<Continuation>& continuations, Record& record) noexcept {
  for (const Continuation& then : continuations) call(then, record);
}

void call(const Continuation& then, Record& record) noexcept {
  const base::CancellationHeld held;
  ++functions_on_this_thread;
  try {
    then(record.result());
  } catch (...) {
  }
  --functions_on_this_thread;
}

bool calls_function() noexcept { return functions_on_this_thread > 0; }

}  // namespace wye::scheduler
