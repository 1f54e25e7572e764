#include "silicon/slots.hpp"

#include <algorithm>
#include <utility>

#include "silicon/machine_share.hpp"

namespace wye::inline v0::silicon {

void Slots::add_device(std::uint32_t of_device) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  default_ = std::max(default_, of_device);
  update_limit_locked();
}

std::shared_ptr<Slots::Member> Slots::join(SlotTaker& taker, Wish wish) {
  auto member = std::make_shared<Member>(*this, taker, wish);
  const base::Lock lock = base::lock_soon(mutex_);
  members_.push_back(member);
  update_limit_locked();
  return member;
}

void Slots::update_limit_locked() noexcept {
  std::uint32_t limit = 0, without_limit = default_;
  bool follows_load = false;
  for (const auto& member : members_) {
    const Wish& wish = member->wish_;
    if (wish.limit != 0 && (limit == 0 || wish.limit < limit)) limit = wish.limit;
    without_limit = std::max(without_limit, wish.at_least);
    follows_load |= wish.follows_load;
  }
  load_.most = limit != 0 ? limit : without_limit;
  if (follows_load != std::exchange(follows_load_, follows_load)) {
    load_.jobs = 0;
    load_.stretch = 0;
  }
  load_.now = follows_load ? std::min(load_.now, load_.most) : load_.most;
  missing_ = std::min(missing_, load_.now - 1);
  limit_ = load_.now - missing_;
  observes_runs_.store(follows_load_ || missing_ > 0, std::memory_order_relaxed);
  if (!machine_) return;
  machine_->set_wish({.limit = limit, .otherwise = without_limit});
  publish_rank_locked();
}

void Slots::share(MachineShare& machine) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  machine_ = &machine;
  machine.adopt(used_);
  update_limit_locked();
}

void Slots::publish_rank_locked() noexcept {
  std::optional<Instant> first;
  if (waiting_ != 0 && used_ < limit_)
    for (const auto& member : members_)
      if (member->rank_ && (!first || *member->rank_ < *first)) first = member->rank_;
  machine_->wait(first);
}

bool Slots::note_run(double stretch) noexcept {
  constexpr std::uint32_t window = 16;
  const base::Lock lock = base::lock_soon(mutex_);
  const std::uint32_t before = limit_;
  if (follows_load_) note_load_locked(stretch);
  if (missing_ > 0 && ++since_shortage_ >= window) {
    since_shortage_ = 0;
    --missing_;
  }
  update_limit_locked();
  return limit_ > before;
}

bool Slots::note_shortage() noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  std::uint32_t of_application = 0;
  bool any_for_job = false;
  for (const HeldSlot* slot = first_; slot; slot = slot->after) {
    any_for_job |= slot->use.thread == 0;
    of_application += slot->counts && slot->use.thread != 0;
  }
  if (!any_for_job) return false;
  const std::uint32_t left = std::max(used_, of_application + 1);
  since_shortage_ = 0;
  if (left < load_.now) missing_ = std::max(missing_, load_.now - left);
  update_limit_locked();
  return true;
}

/// Adjusts the number of slots that follow the load.
void Slots::note_load_locked(double of_job) noexcept {
  constexpr std::uint32_t window = 16, calm_windows = 16;
  if (of_job <= 0) return;  // the window is longer
  load_.stretch += of_job;
  load_.has_waited |= waiting_ != 0;
  if (++load_.jobs < window) return;
  const double stretch = std::exchange(load_.stretch, 0.0) / std::exchange(load_.jobs, 0u);
  const bool has_waited = std::exchange(load_.has_waited, false);
  if (stretch > 1.5) {
    load_.now = std::max(1u, load_.now - 1);
    load_.calm = calm_windows;
  } else if (load_.calm > 0) {
    --load_.calm;
  } else if (has_waited && load_.now < load_.most) {
    ++load_.now;
  }
}

std::uint32_t Slots::limit_locked() const noexcept {
  return machine_ ? std::min(limit_, machine_->limit()) : limit_;
}

std::uint32_t Slots::limit() const noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  return limit_locked();
}

std::uint32_t Slots::used_elsewhere() const noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  return machine_ ? machine_->used_elsewhere() : 0;
}

std::uint32_t Slots::used() const noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  return used_;
}

std::vector<Slots::Holder> Slots::holders(const Member& asking) const {
  std::vector<Holder> holders;
  const base::Lock lock = base::lock_soon(mutex_);
  for (const HeldSlot* slot = first_; slot; slot = slot->after)
    holders.push_back({.use = slot->use,
                       .context = std::string(slot->context),
                       .age = slot->clock->now() - slot->use.since,
                       .is_own = slot->member == &asking});
  return holders;
}

/// Visits the pools in the order of ranks. A pool whose next request has a later rank is visited
/// again at that rank.
void Slots::serve() noexcept {
  using Place = std::pair<Instant, const Member*>;
  for (Place served{Instant::min(), nullptr};;) {
    std::shared_ptr<Member> next;
    {
      const base::Lock lock = base::lock_soon(mutex_);
      if (used_ >= limit_ || waiting_ == 0) return;
      Place first{Instant::max(), nullptr};
      for (const auto& member : members_) {
        if (!member->rank_) continue;
        const Place place(*member->rank_, member.get());
        if (place <= served || (next && first < place)) continue;
        first = place;
        next = member;
      }
      if (!next) return;
      served = first;
    }
    const std::lock_guard visit(next->visiting_);
    if (next->taker_) next->taker_->serve_waiting();
  }
}

bool Slots::Member::is_free_locked(Instant rank) const noexcept {
  if (slots_.used_ >= slots_.limit_) return false;
  if (slots_.waiting_ == 0) return true;
  return std::none_of(slots_.members_.begin(), slots_.members_.end(),
                      [&](const auto& other) { return other->rank_ && *other->rank_ < rank; });
}

HeldSlot* Slots::Member::find_locked(std::uint64_t thread, bool counts) const noexcept {
  if (thread == 0) return nullptr;
  HeldSlot* slot = slots_.first_;
  while (slot && (slot->use.thread != thread || slot->counts != counts)) slot = slot->after;
  return slot;
}

bool Slots::Member::is_free(const SlotUse& use, Instant rank) const noexcept {
  const base::Lock lock = base::lock_soon(slots_.mutex_);
  return find_locked(use.thread, true) ||
         (is_free_locked(rank) && (!slots_.machine_ || slots_.machine_->is_free(rank)));
}

bool Slots::Member::take(HeldSlot& slot, const SlotUse& use, Instant now, Instant rank) noexcept {
  const base::Lock lock = base::lock_soon(slots_.mutex_);
  slot.counts = !find_locked(use.thread, true);
  if (slot.counts && !is_free_locked(rank)) return false;
  if (slot.counts && slots_.machine_ && !slots_.machine_->take(rank)) return false;
  slot.use = use;
  slot.use.since = now;
  slot.member = this;
  slot.before = nullptr;
  slot.after = slots_.first_;
  if (slots_.first_) slots_.first_->before = &slot;
  slots_.first_ = &slot;
  slots_.used_ += slot.counts;
  if (slots_.machine_ && slots_.used_ >= slots_.limit_) slots_.publish_rank_locked();
  return true;
}

bool Slots::Member::give_back(HeldSlot& slot) noexcept {
  const base::Lock lock = base::lock_soon(slots_.mutex_);
  slot.member = nullptr;
  (slot.before ? slot.before->after : slots_.first_) = slot.after;
  if (slot.after) slot.after->before = slot.before;
  if (HeldSlot* const other = slot.counts ? find_locked(slot.use.thread, false) : nullptr) {
    other->counts = true;
  } else if (slot.counts) {
    --slots_.used_;
    if (slots_.machine_) slots_.machine_->give_back();
    if (slots_.machine_ && slots_.waiting_ != 0) slots_.publish_rank_locked();
  }
  return slots_.waiting_ != 0;
}

void Slots::Member::wait(std::optional<Instant> rank) noexcept {
  const base::Lock lock = base::lock_soon(slots_.mutex_);
  slots_.waiting_ += rank.has_value();
  slots_.waiting_ -= rank_.has_value();
  rank_ = rank;
  if (slots_.machine_) slots_.publish_rank_locked();
}

void Slots::Member::begin_service() noexcept {
  const base::Lock lock = base::lock_soon(slots_.mutex_);
  slots_.waiting_ -= rank_.has_value();
  rank_.reset();
}

void Slots::Member::leave() noexcept {
  {
    const std::lock_guard visit(visiting_);
    taker_ = nullptr;
  }
  {
    const base::Lock lock = base::lock_soon(slots_.mutex_);
    slots_.waiting_ -= rank_.has_value();
    const auto own = std::find_if(slots_.members_.begin(), slots_.members_.end(),
                                  [&](const auto& one) { return one.get() == this; });
    if (own == slots_.members_.end()) return;
    rank_.reset();
    slots_.members_.erase(own);
    slots_.update_limit_locked();
  }
  serve();  // there may be more slots without this pool's limit
}

}  // namespace wye::silicon
