#include "flight/flight.hpp"

#include <algorithm>
#include <chrono>

#include "base/gate.hpp"
#include "base/sizes.hpp"
#include "base/text.hpp"

namespace wye::inline v0::flight {

std::string Labels::object() const {
  return tag.empty() ? base::text("job '{}'", name) : base::text("job '{}' (tag '{}')", name, tag);
}

std::string Labels::subject() const {
  std::string text = object();
  text[0] = 'J';
  return text;
}

Flight::Flight(const Flights& by, const Work& work, const Device& on, std::size_t index, std::string_view tag)
    : by_(by),
      device_(static_cast<std::uint32_t>(index)),
      is_stamped_(work.is_stamped && !work.operands),
      until_(work.until),
      park_(base::parked_until(by.clock(), work.until)),
      times_(*work.times),
      stop_(work.stop),
      tag_(by.pool().accounts().of_tag(index, tag)),
      binding_(work.calls, on, work.operands) {}

StopToken Flight::stop_token() const noexcept { return {stop_, until_, &by_.clock()}; }

/// Adds the time since the last lap to one of the times.
void Flight::add_lap(Duration& sum) noexcept {
  const Instant now = by_.clock().now();
  sum += now - std::exchange(lap_, now);
}

Result<void> Flight::prepare(const Labels& labels, Instant lap, bool reserves) {
  lap_ = lap;
  if (reserves)
    if (auto ok = reserve(labels, lap); !ok) return ok;
  if (auto ok = binding_.fetch(park_, labels.name); !ok) {
    if (silicon::is_shortage(ok.error())) shortage_ = Shortage::memory;
    return ok;
  }
  if (binding_.uses_arrays()) add_lap(times_.transfer);
  return {};
}

Result<void> Flight::reserve(const Labels& labels, Instant now) {
  const pool::WorkingSet set = binding_.working_set();
  if (set.all() == Bytes{}) return {};
  pool::Accounts& accounts = by_.pool().accounts();
  if (const auto limit = accounts.limit_of(device_, tag_.get(), set)) {
    const base::Sizes size(limit->needed, limit->limit);
    return Error(limit->code,
                 base::text("{} needs {} on '{}'; the {} is {}.", labels.subject(), size(limit->needed),
                            by_.pool().fleet().info(device_).id, limit->of, size(limit->limit)));
  }
  auto reserved = accounts.reserve(device_, tag_, set, now, binding_.reservation());
  if (!reserved) shortage_ = tag_ && tag_->find_full(set.own) ? Shortage::tag_memory : Shortage::memory;
  return reserved;
}

void Flight::lead(Flight& member) noexcept {
  member.leader_ = this;
  is_stamped_ = member.is_stamped_ = false;
  Flight* last = this;
  while (last->next_) last = last->next_;
  last->next_ = &member;
}

Result<void> Flight::lease() {
  form_launches();
  const Clock& clock = by_.pool().clock();
  const Instant asked = &clock == &by_.clock() ? lap_ : clock.now();
  auto lease = by_.pool().leases().lease_on(*base::state_of(binding_.device()), asked);
  if (!lease) {
    if (lease.error() == Errc::timed_out)  // another device may be free
      return Error(Errc::unavailable, lease.error().sentence());
    return std::move(lease).error();
  }
  lease_.emplace(*std::move(lease));
  const Duration waited = context().slot.use.since - asked;
  times_.lane += waited;
  lap_ += waited;
  return {};
}

void Flight::form_launches() noexcept {
  for (Flight* first = next_ ? this : nullptr; first;) {
    Flight* next = first->next_;
    std::uint8_t size = 1;
    for (; next && first->binding_.can_share_launch(next->binding_); next = next->next_) ++size;
    for (Flight* one = first; one != next; one = one->next_) one->launch_size_ = size;
    first = next;
  }
}

Result<void> Flight::bind_members() {
  device::Lane& lane = this->lane();
  const pool::Context& context = this->context();
  const Binding* first = nullptr;
  std::uint32_t number = 0;  // of a flight in its launch
  for (Flight* one = this; one; one = one->next_) {
    Binding& binding = one->binding_;
    if (number > 0) {
      binding.join_launch(*first, number);
    } else {
      first = &binding;
      if (one->launch_size_ > 1) binding.begin_launch(one->launch_size_);
    }
    number = (number + 1) % one->launch_size_;
    if (auto ok = binding.bind(lane, context.account, one->tag_, park_); !ok) return ok;
  }
  return {};
}

Result<void> Flight::bind() {
  if (auto ok = bind_members(); !ok) {
    if (silicon::is_shortage(ok.error())) shortage_ = Shortage::memory;
    return ok;
  }
  if (next_) return {};
  if (transferred() >= least_measured) (void)lane().submit(stop_token(), false);
  if (transferred() != Bytes{}) add_lap(times_.transfer);
  return {};
}

Result<void> Flight::record() {
  device::Lane& lane = this->lane();
  is_stamped_ = is_stamped_ && find_stamps();
  if (is_stamped_) lane.stamp_begin(lane.own_stamps());
  std::size_t dispatches = 0;
  for (Flight* one = this; one; one = one->next_) {
    const Binding& binding = one->binding_;
    if (binding.has_joined()) continue;
    for (std::size_t c = 0; c < one->steps_.size(); ++c, ++dispatches) {
      Step& step = one->steps_[c];
      if (!step.is_timed)
        lane.dispatch(base::state_of(step.executable), binding.arguments(c), binding.items(c));
      else if (auto ok = dispatch_alone(step, c); !ok)
        return ok;
    }
  }
  if (is_stamped_) lane.stamp_end(lane.own_stamps());
  context().dispatches.fetch_add(dispatches, std::memory_order_relaxed);
  record_downloads();
  return {};
}

/// Returns whether its lane has stamps that may enclose all its steps. A timed step ends the
/// submission that it follows.
bool Flight::find_stamps() const noexcept {
  const bool has_timed =
      std::any_of(steps_.begin(), steps_.end(), [](const Step& step) { return step.is_timed; });
  return !has_timed && lane().own_stamps();
}

/// Submits a timed step by itself, and measures it.
Result<void> Flight::dispatch_alone(Step& step, std::size_t call) {
  if (auto ok = submit_and_wait(); !ok) return ok;
  const Instant from = by_.clock().now();
  lane().dispatch(base::state_of(step.executable), binding_.arguments(call), binding_.items(call));
  if (auto ok = submit_and_wait(); !ok) return ok;
  step.took = by_.clock().now() - from;
  step.is_measured = true;
  return {};
}

/// Submits, and waits until the time limit passes or the flight is cancelled.
/// Errors: timed_out; cancelled; the first failure of the lane.
Result<void> Flight::submit_and_wait() {
  constexpr Duration look = std::chrono::milliseconds(10);  // at `stop_`, which wakes no driver
  (void)submit(true);
  for (;;) {
    if (is_cut_short()) return by_.cancelled();
    const Instant until = std::min(park_, Clock::steady().now() + look);
    auto waited = lane().wait(until, stop_token());
    if (waited || waited.error() != Errc::timed_out || until == park_) return waited;
  }
}

void Flight::record(device::SequenceState& sequence, std::size_t dispatches) {
  // The thread that runs work on the CPU waits for it, and runs its commands itself.
  lane().submit(sequence, stop_token(), binding_.is_in_place());
  has_begun_ |= !lane().failure();
  context().dispatches.fetch_add(dispatches, std::memory_order_relaxed);
  record_downloads();
}

/// Records the downloads, unless they are large: these follow in a submission of their own.
void Flight::record_downloads() {
  if (!next_ && binding_.returning() >= least_measured) return;
  for (Flight* one = this; one; one = one->next_) one->binding_.downloads(lane());
  has_downloads_ = true;
}

std::optional<device::TimelinePoint> Flight::submit(bool waits) {
  device::Lane& lane = this->lane();
  device::TimelinePoint point = lane.submit(stop_token(), waits);
  has_begun_ |= !lane.failure();
  if (waits || lane.failure() || lane.idle()) return std::nullopt;
  return point;
}

Result<std::optional<Instant>> Flight::complete() {
  if (of_lead_) return *of_lead_;
  if (is_cut_short()) return by_.cancelled();
  if (auto ok = lane().wait(park_, stop_token()); !ok) return std::move(ok).error();
  if (!has_downloads_) {
    lap_ = by_.clock().now();
    binding_.downloads(lane());
    has_downloads_ = true;
    return std::optional<Instant>();
  }
  if (binding_.returning() >= least_measured) add_lap(times_.transfer);
  // A host function that returned after the time limit may have stopped early.
  const Instant ended = by_.clock().now();
  if (ended >= until_) return Error(Errc::timed_out, "The time limit passed.");
  if (is_stamped_) stamped_ = lane().own_stamps()->read();
  return std::optional<Instant>(ended);
}

void Flight::discard() noexcept {
  if (leader_) return;
  lane().discard();
  has_downloads_ = true;
}

void Flight::await_submitted() {
  if (next_ && !has_downloads_) return;  // nothing was submitted
  has_begun_ = true;                     // it may have
  if (!lane().idle()) (void)lane().wait(park_, stop_token()).has_value();
}

void Flight::end_lead(const Result<std::optional<Instant>>& result) noexcept {
  for (Flight* one = std::exchange(next_, nullptr); one; one = std::exchange(one->next_, nullptr)) {
    one->has_begun_ = true;
    one->of_lead_ = &result;
  }
}

void Flight::fail(const Error& error, std::string work) {
  context().work = std::move(work);
  binding_.invalidate(error, has_begun_, lane().last());
}

}  // namespace wye::flight
