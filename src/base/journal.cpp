#include "base/journal.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace wye::inline v0::base {

/// The events of one thread. Memory is used for as many of them as have waited at a time.
///
/// A slot holds an event, by its index, and its place in the order of all events of the ring. The
/// thread that emits exchanges its spare event for that of the slot. If it gets a full one, that is
/// the oldest, which is dropped. The thread that reads exchanges the event that it has delivered for
/// the next one. So both always have an event of their own, and neither waits for the other.
///
/// Only the thread that emits uses it, between `enter` and `leave`, and the thread that reads.
class alignas(64) Journal::Ring {
 public:
  /// Throws: std::bad_alloc.
  Ring(std::size_t capacity, std::uint64_t thread)
      : user_(thread << 1 | 1),
        mask_(capacity - 1),
        events_(std::allocator<Event>().allocate(capacity + 2), Deallocate{capacity + 2}),
        slots_(std::make_unique<std::atomic<std::uint64_t>[]>(capacity)),
        spare_(capacity),
        delivered_(capacity + 1) {
    for (std::size_t i = 0; i < capacity; ++i) slots_[i].store(none, std::memory_order_relaxed);
    std::construct_at(&events_[spare_]);
    std::construct_at(&events_[delivered_]);
  }
  Ring(const Ring&) = delete;
  ~Ring() {
    std::destroy_n(&events_[0], made_);
    std::destroy_n(&events_[mask_ + 1], 2);
  }

  // Any thread.

  /// Begins an emission. Returns false if the ring is not that of `thread`.
  bool enter(std::uint64_t thread) noexcept {
    std::uint64_t idle = thread << 1;
    return user_.compare_exchange_strong(idle, thread << 1 | 1, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  /// Makes it the ring of `thread` and enters it, if its own thread has not used it since then and
  /// all of its events are taken.
  bool take_over(std::uint64_t thread, Instant unused_since) noexcept {
    std::uint64_t idle = user_.load(std::memory_order_relaxed);
    if ((idle & 1) != 0 || last_.load(std::memory_order_relaxed) > unused_since) return false;
    const std::uint64_t before = idle;
    if (!user_.compare_exchange_strong(idle, thread << 1 | 1, std::memory_order_acquire)) return false;
    if (written_ == read_.load(std::memory_order_acquire)) return true;
    user_.store(before, std::memory_order_release);
    return false;
  }
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

  // The thread that has entered it.

  void put(EventData&& data, Instant at, std::uint64_t thread) noexcept {
    Event& event = events_[spare_];
    event.data = std::move(data);
    event.at = at;
    event.thread = thread;
    last_.store(at, std::memory_order_relaxed);
    std::atomic<std::uint64_t>& slot = slots_[written_ & mask_];
    ++written_;
    // Sequentially consistent, as the check of `is_asleep_` that follows: see `Journal::sleep`.
    const std::uint64_t before = slot.exchange(written_ << index_bits | spare_);
    spare_ = before & index_mask;
    if (spare_ == none) spare_ = find_spare();
    if (before >> index_bits != 0)
      dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void leave(std::uint64_t thread) noexcept { user_.store(thread << 1, std::memory_order_release); }

  // The thread that reads.

  /// Takes the oldest event, unless one is taken. Returns whether it has taken one.
  bool take() noexcept {
    if (has_taken_) return false;
    for (std::uint64_t at = read_.load(std::memory_order_relaxed);;) {
      std::atomic<std::uint64_t>& slot = slots_[at & mask_];
      std::uint64_t found = slot.load();
      const std::uint64_t place = found >> index_bits;  // from 1
      if (place == 0) return false;
      if (place != at + 1) {  // it was overwritten; the oldest event is in the slot after this one
        at = place - (mask_ + 1);
        continue;
      }
      if (!slot.compare_exchange_strong(found, delivered_)) continue;
      delivered_ = found & index_mask;
      read_.store(at + 1, std::memory_order_release);
      return has_taken_ = true;
    }
  }
  const Event* taken() const noexcept { return has_taken_ ? &events_[delivered_] : nullptr; }
  void end_delivery() noexcept {
    events_[delivered_].data = std::monostate();
    has_taken_ = false;
  }

  Ring* next = nullptr;

 private:
  struct Deallocate {
    std::size_t count;
    void operator()(Event* events) const noexcept { std::allocator<Event>().deallocate(events, count); }
  };
  static constexpr unsigned index_bits = 16;
  static constexpr std::uint64_t index_mask = (std::uint64_t{1} << index_bits) - 1;
  static constexpr std::uint64_t none = index_mask;  ///< the slot has no event

  /// Returns the index of an event that was delivered, or of a new one. The thread that emits calls it:
  /// no other one changes a slot without an event to deliver.
  std::uint64_t find_spare() noexcept {
    for (const std::uint64_t read = read_.load(std::memory_order_acquire); reclaimed_ < read;) {
      std::atomic<std::uint64_t>& slot = slots_[reclaimed_++ & mask_];
      const std::uint64_t found = slot.load(std::memory_order_acquire);
      if (found >> index_bits != 0 || found == none) continue;  // of a later round
      slot.store(none, std::memory_order_relaxed);
      return found;
    }
    std::construct_at(&events_[made_]);
    return made_++;
  }

  std::atomic<std::uint64_t> user_;  ///< twice the number of its thread; plus 1 during an emission
  const std::uint64_t mask_;
  const std::unique_ptr<Event[], Deallocate> events_;  ///< the first `made_` and the last two are constructed
  /// The place in the order, from 1, and the index of an event; the place is 0 if it is empty.
  const std::unique_ptr<std::atomic<std::uint64_t>[]> slots_;
  std::uint64_t written_ = 0;    ///< events so far
  std::uint64_t spare_;          ///< the index of the event to emit next
  std::uint64_t reclaimed_ = 0;  ///< places whose slots were searched for delivered events
  std::size_t made_ = 0;         ///< at most the capacity: then each slot has an event
  std::atomic<Instant> last_{Instant::min()};
  std::atomic<std::uint64_t> dropped_{0};

  alignas(64) std::atomic<std::uint64_t> read_{0};  ///< events that were taken or dropped
  std::uint64_t delivered_;                         ///< the index of the event that was taken last
  bool has_taken_ = false;                          ///< and is not delivered yet
};

namespace {

/// The ring that a thread has used last.
struct KnownRing {
  Id journal;  ///< which may have ended
  void* ring = nullptr;
};
constinit thread_local KnownRing known;

}  // namespace

Subscription& Subscription::operator=(Subscription&& other) noexcept {
  if (this == &other) return *this;
  end();
  journal_ = std::move(other.journal_);
  listening_ = std::move(other.listening_);
  return *this;
}

void Subscription::end() noexcept {
  if (!journal_) return;
  journal_->end(*listening_);
  listening_.reset();
  journal_.reset();
}

void Subscription::finish() noexcept {
  if (journal_) (void)journal_->flush();
  end();
}

Journal::~Journal() {
  for (Ring* ring = rings_.load(std::memory_order_relaxed); ring;) delete std::exchange(ring, ring->next);
}

void Journal::record(EventData&& data) noexcept {
  const std::uint64_t thread = this_thread();
  Ring* const ring = enter_ring(thread);
  if (!ring) {
    unrecorded_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  ring->put(std::move(data), Clock::steady().now(), thread);
  ring->leave(thread);
  wake();
}

Journal::Ring* Journal::enter_ring(std::uint64_t thread) noexcept {
  if (known.journal == id)
    if (auto* const ring = static_cast<Ring*>(known.ring); ring->enter(thread)) return ring;
  try {
    Ring* const ring = find_ring(thread);
    known = {id, ring};
    return ring;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Journal::Ring* Journal::find_ring(std::uint64_t thread) {
  for (Ring* ring = rings_.load(std::memory_order_acquire); ring; ring = ring->next)
    if (ring->enter(thread)) return ring;
  const Instant unused_since = Clock::steady().now() - ring_idle_;
  for (Ring* ring = rings_.load(std::memory_order_acquire); ring; ring = ring->next)
    if (ring->take_over(thread, unused_since)) return ring;
  Ring* const ring = std::make_unique<Ring>(capacity_, thread).release();
  ring->next = rings_.load(std::memory_order_relaxed);
  while (!rings_.compare_exchange_weak(ring->next, ring)) {
  }
  return ring;
}

std::uint64_t Journal::dropped() const noexcept {
  std::uint64_t all = unrecorded_.load(std::memory_order_relaxed);
  for (const Ring* ring = rings_.load(std::memory_order_acquire); ring; ring = ring->next)
    all += ring->dropped();
  return all;
}

void Journal::wake() noexcept {
  if (is_asleep_.load() != 0 && is_asleep_.exchange(0) != 0)
    ::syscall(SYS_futex, &is_asleep_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

Result<Subscription> Journal::listen(std::uint32_t types, std::function<void(const Event&)> listener) {
  if (const Error* inherited = origin_.error()) return *inherited;
  auto listening =
      std::make_shared<detail::Listening>(detail::Listening{.listener = std::move(listener), .types = types});
  std::optional<Worker> ended;  // joined without the lock
  const Lock lock(mutex_);
  listenings_.reserve(listenings_.size() + 1);
  if (!is_reading_) {
    auto started = Worker::start("wye-journal", [self = shared_from_this()] { self->read(); });
    if (!started) return std::move(started).error();
    if (reader_) ended.emplace(*std::move(reader_));
    reader_.emplace(*std::move(started));
    is_reading_ = true;
  }
  listening->number = ++last_number_;
  listening->since = Clock::steady().now();
  listenings_.push_back(listening);
  wanted_.fetch_or(types, std::memory_order_relaxed);
  return Subscription(shared_from_this(), std::move(listening));
}

void Journal::end(const detail::Listening& listening) noexcept {
  if (origin_.is_inherited()) return;
  std::optional<Worker> ended;  // joined without the lock
  Lock lock(mutex_);
  std::erase_if(listenings_, [&](const auto& one) { return one.get() == &listening; });
  std::uint32_t wanted = 0;
  for (const auto& one : listenings_) wanted |= one->types;
  wanted_.store(wanted, std::memory_order_relaxed);
  if (reader_thread_ == this_thread()) return;  // the thread ends by itself
  changed_.wait(lock, Instant::max(), [&] { return called_ != &listening; });
  if (!listenings_.empty()) return;
  wake();
  changed_.wait(lock, Instant::max(), [&] { return !is_reading_ || !listenings_.empty(); });
  if (is_reading_ || !reader_) return;
  ended.emplace(*std::move(reader_));
  reader_.reset();
}

bool Journal::flush(Instant until) noexcept {
  if (origin_.is_inherited()) return true;
  Lock lock(mutex_);
  if (!is_reading_) return true;
  if (reader_thread_ == this_thread()) return false;
  const Instant now = Clock::steady().now();
  flush_asked_ = std::max(flush_asked_, now);
  wake();
  return changed_.wait(lock, until, [&] { return !is_reading_ || flushed_ >= now; });
}

void Journal::read() noexcept {
  {
    const Lock lock(mutex_);
    reader_thread_ = this_thread();
  }
  do {
    for (;;) {
      Instant asked;
      {
        const Lock lock(mutex_);
        asked = flush_asked_;
      }
      Ring* const ring = first_ring();  // after `asked` was read
      if (asked > flushed_) note_flushed(asked, ring ? ring->taken() : nullptr);
      if (!ring) break;
      deliver(*ring->taken());
      ring->end_delivery();
    }
  } while (sleep());
}

Journal::Ring* Journal::first_ring() noexcept {
  // An event of one ring may be the cause of an event of another ring. If the pass that takes the
  // effect has seen the ring of the cause too early, the next pass finds the cause there.
  for (bool found = true; found;) {
    found = false;
    for (Ring* ring = rings_.load(); ring; ring = ring->next) found |= ring->take();
  }
  Ring* first = nullptr;
  for (Ring* ring = rings_.load(std::memory_order_relaxed); ring; ring = ring->next)
    if (ring->taken() && (!first || ring->taken()->at < first->taken()->at)) first = ring;
  return first;
}

void Journal::note_flushed(Instant asked, const Event* first) noexcept {
  const Lock lock(mutex_);
  const Instant until = first ? std::min(asked, first->at - Duration(1)) : asked;
  if (until <= flushed_) return;
  flushed_ = until;
  changed_.wake_all();
}

void Journal::deliver(const Event& event) noexcept {
  std::uint64_t after = 0;
  while (const auto next = next_call(event, after)) {
    after = next->number;
    try {
      next->listener(event);
    } catch (...) {  // of the application
    }
  }
}

std::shared_ptr<detail::Listening> Journal::next_call(const Event& event, std::uint64_t after) noexcept {
  const std::uint32_t bit = std::uint32_t{1} << event.data.index();
  const Lock lock(mutex_);
  if (called_) changed_.wake_all();
  called_ = nullptr;
  for (const auto& one : listenings_) {
    if (one->number <= after || (one->types & bit) == 0 || event.at < one->since) continue;
    called_ = one.get();
    return one;
  }
  return nullptr;
}

bool Journal::sleep() noexcept {
  // A thread that emits changes a ring and then reads `is_asleep_`. This thread writes it and then
  // reads the rings. So one of them sees the change of the other.
  is_asleep_.store(1);
  bool stays = true, is_idle = true;
  {
    const Lock lock(mutex_);
    is_idle = flush_asked_ <= flushed_;
    if (is_idle && listenings_.empty() && !first_ring()) {
      stays = is_reading_ = false;
      changed_.wake_all();
    }
  }
  if (stays && is_idle && !first_ring())
    while (is_asleep_.load() != 0)
      ::syscall(SYS_futex, &is_asleep_, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
  is_asleep_.store(0);
  return stays;
}

}  // namespace wye::base
