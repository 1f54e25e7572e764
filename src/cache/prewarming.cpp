#include "cache/prewarming.hpp"

namespace wye::inline v0 {
namespace cache {

Prewarming::Prewarming(std::shared_ptr<Cache> cache, std::vector<Item> items, std::size_t unmatched)
    : cache_(std::move(cache)), items_(std::move(items)) {
  progress_.total = items_.size();
  progress_.unmatched = unmatched;
}

Result<std::unique_ptr<Prewarming>> Prewarming::start(std::shared_ptr<Cache> cache, std::vector<Item> items,
                                                      std::size_t unmatched) {
  std::unique_ptr<Prewarming> made(new Prewarming(std::move(cache), std::move(items), unmatched));
  auto worker = base::Worker::start("wye-prewarm", [self = made.get()] { self->run(); });
  if (!worker) return std::move(worker).error();
  made->worker_.emplace(std::move(*worker));
  return made;
}

void Prewarming::run() noexcept {
  base::give_way();
  for (const Item& item : items_) {
    if (cancelled_.load(std::memory_order_relaxed)) break;
    bool ready = false, full = false;
    try {
      ready = !cache_->build_cost(*item.program, *item.device);
      full = !ready && cache_->is_full();
      if (!ready && !full) ready = cache_->make_ready(item.program, item.device, Instant::max()).has_value();
    } catch (...) {  // it failed
    }
    if (full) break;
    const base::Lock lock(mutex_);
    ++(ready ? progress_.ready : progress_.failed);
  }
  cache_->save_driver_code();
  {
    const base::Lock lock(mutex_);
    progress_.ended = true;
  }
  gate_.wake_all();
}

Prewarm::Progress Prewarming::progress() const {
  if (cache_->origin().is_inherited()) return {.ended = true};
  const base::Lock lock(mutex_);
  return progress_;
}

bool Prewarming::wait(Deadline deadline) {
  if (cache_->origin().is_inherited()) return true;  // nothing more will be built
  const Clock& clock = cache_->clock();
  base::Lock lock(mutex_);
  return gate_.wait(lock, clock, deadline.at(clock), [&] { return progress_.ended; });
}

}  // namespace cache

Prewarm::Prewarm(std::unique_ptr<cache::Prewarming> state) noexcept : state_(std::move(state)) {}
Prewarm::Prewarm(Prewarm&&) noexcept = default;
Prewarm& Prewarm::operator=(Prewarm&&) noexcept = default;
Prewarm::~Prewarm() = default;
Prewarm::Progress Prewarm::progress() const { return state_ ? state_->progress() : Progress{}; }
void Prewarm::cancel() {
  if (state_) state_->cancel();
}
bool Prewarm::wait(Deadline deadline) { return !state_ || state_->wait(deadline); }

}  // namespace wye
