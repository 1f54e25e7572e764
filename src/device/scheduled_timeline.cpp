#include "device/scheduled_timeline.hpp"

#include "base/text.hpp"
#include "device/pending_signals.hpp"
#include "device/pending_submissions.hpp"
#include "device/timeline_waiter.hpp"

namespace wye::inline v0::device {

ScheduledTimeline::ScheduledTimeline(std::shared_ptr<DeviceBase> device, PendingSubmissions& pending,
                                     SignaledBy by)
    : device_(std::move(device)), pending_(pending), by_(by) {
  if (by == SignaledBy::others) scheduled_.store(no_value);
}

ScheduledTimeline::~ScheduledTimeline() { pending_.waiter().remove(*this); }

bool ScheduledTimeline::is_known(std::uint64_t value) noexcept {
  if (reached() >= value || device_->lost()) return true;
  return has_failed_.load() && scheduled() < value;
}

Result<void> ScheduledTimeline::signal(std::uint64_t value) {
  if (by_ != SignaledBy::host)
    return Error(Errc::invalid_argument,
                 base::text("A timeline that device '{}' signals cannot be signaled by the host.",
                            device_->info().id));
  if (auto signaled = pending_.signal(*this, value); !signaled) return signaled;
  call_seen();
  return {};
}

void ScheduledTimeline::raise(std::uint64_t value) noexcept {
  std::uint64_t before = seen();
  while (before < value && !reached_.compare_exchange_weak(before, value)) {
  }
}

void ScheduledTimeline::call_seen() noexcept {
  const Error* const lost = device_->lost();
  call_back(lost ? no_value : seen(), lost);
}

void ScheduledTimeline::await_release() noexcept { pending_.waiter().await_release(); }

Result<void> ScheduledTimeline::prepare_callbacks() { return pending_.waiter().start(); }

void ScheduledTimeline::arrange_callbacks() noexcept {
  (void)call_known();
  if (first_callback() != no_value) pending_.waiter().add(*this);
}

void ScheduledTimeline::abandon() noexcept { pending_.waiter().end_at_exit(); }

void ScheduledTimeline::end_callbacks() noexcept { pending_.waiter().remove(*this); }

bool ScheduledTimeline::call_known() noexcept {
  if (is_foreign() && !device_->lost()) return call_foreign();
  const std::uint64_t value = reached();
  // `reached` may have found the loss: then its value is not reliable.
  if (const Error* lost = device_->lost()) return call_back(no_value, lost);
  const bool any = call_back(value, nullptr);
  // Values that were submitted to the driver come first.
  return has_failed_.load() && first_callback() > scheduled() ? call_back(no_value, &*failure_) || any : any;
}

/// Polls each value separately: a failure of one of the two devices may prevent one value and not
/// the next.
bool ScheduledTimeline::call_foreign() noexcept {
  bool any = false;
  try {
    if (PendingSignals* const signals = pending_signals()) (void)signals->any_pending();
    while (first_callback() != no_value) {
      const std::uint64_t value = first_callback();
      const auto waited = wait(value, Instant::min());
      if (!waited && waited.error() == Errc::timed_out) break;
      any |= call_back(value, waited ? nullptr : &waited.error());
    }
  } catch (...) {  // no memory for the result: the waiter polls again
  }
  return any;
}

}  // namespace wye::device
