#pragma once
/// The journal: carries events from the threads that emit them to listeners on a thread of its own.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/events.hpp"
#include "base/gate.hpp"
#include "base/id.hpp"
#include "base/process.hpp"
#include "base/worker.hpp"

namespace wye::inline v0::base {

class Journal;

namespace detail {

/// Returns the bit of an event type in a set of types.
template <class T, std::size_t index = 0>
constexpr std::uint32_t bit_of() noexcept {
  if constexpr (std::is_same_v<T, std::variant_alternative_t<index, EventData>>)
    return std::uint32_t{1} << index;
  else
    return bit_of<T, index + 1>();
}

/// One call of `Journal::listen`.
struct Listening {
  std::function<void(const Event&)> listener;
  std::uint32_t types = 0;   ///< bits
  std::uint64_t number = 0;  ///< order of the calls
  Instant since{};           ///< earlier events are not delivered
};

}  // namespace detail

/// Has a listener receive events, until it is destroyed. When `end` or the destructor has returned,
/// no call of the listener is running and none follows, and the listener is destroyed. If the
/// listener itself ends its subscription, it is destroyed after that call.
/// Threads: one thread at a time.
class Subscription {
 public:
  Subscription() = default;
  Subscription(Subscription&&) noexcept = default;
  Subscription& operator=(Subscription&& other) noexcept;
  ~Subscription() { end(); }

  /// Ends it. Events that were emitted and not delivered are dropped.
  void end() noexcept;
  /// Ends it after the events that were emitted before this call are delivered, unless a listener
  /// of the journal is the caller.
  void finish() noexcept;

 private:
  friend class Journal;
  Subscription(std::shared_ptr<Journal> journal, std::shared_ptr<detail::Listening> listening) noexcept
      : journal_(std::move(journal)), listening_(std::move(listening)) {}
  std::shared_ptr<Journal> journal_;
  std::shared_ptr<detail::Listening> listening_;
};

/// The journal of one runtime, or of a part that is used without one.
///
/// A thread that emits writes to a ring of its own. If the ring is full, its oldest event is dropped
/// and counted. One thread reads all rings and calls the listeners, one call at a time, under no
/// lock. It exists while there is a listener. Listeners receive the events of each thread in their
/// order. An event that is emitted after another thread's event, and because of it, is delivered
/// after it. A listener may block: that delays the other listeners and no thread that emits. It may
/// call the journal, emit, and end subscriptions. Exceptions of a listener are dropped.
///
/// Threads: thread-safe. In a child of `fork` no event is delivered.
class Journal final : public std::enable_shared_from_this<Journal>, private Identified {
 public:
  /// The events of one thread that are kept: up to 4 MiB.
  static constexpr std::size_t default_capacity = 16'384;
  /// A thread that needs a ring takes that of another one if that has emitted nothing for so long:
  /// it has probably ended.
  static constexpr Duration default_ring_idle = std::chrono::seconds(1);
  /// `capacity` is a power of two, 32,768 at most.
  static std::shared_ptr<Journal> make(std::size_t capacity = default_capacity,
                                       Duration ring_idle = default_ring_idle) {
    return make_own<Journal>(capacity, ring_idle);
  }
  Journal(std::size_t capacity, Duration ring_idle) noexcept : capacity_(capacity), ring_idle_(ring_idle) {}
  Journal(const Journal&) = delete;
  ~Journal();

  /// Returns whether there is a listener for events of type T. If not, making one is a waste.
  /// Cost: a load.
  template <class T>
  bool wants() const noexcept {
    return (wanted_.load(std::memory_order_relaxed) & detail::bit_of<T>()) != 0;
  }
  /// Emits an event, unless there is no listener for it. Without memory for the ring of this thread
  /// the event is dropped and counted.
  /// Cost: never blocks; no allocation once the thread has its ring.
  template <class T>
  void emit(const T& event) noexcept {
    if (wants<T>()) record(EventData(event));
  }

  /// Calls `listener` with each event of type T that is emitted from now on.
  /// Errors: unavailable (no thread can be started); closed in a child of `fork`. Throws:
  ///         std::bad_alloc.
  template <class T, class F>
  Result<Subscription> listen(F listener) {
    return listen(detail::bit_of<T>(), [listener = std::move(listener)](const Event& event) {
      listener(std::get<T>(event.data));
    });
  }
  /// Calls `listener` with each event of all types.
  Result<Subscription> listen_to_all(std::function<void(const Event&)> listener) {
    return listen(~std::uint32_t{0}, std::move(listener));
  }

  /// Waits until all events that were emitted before this call have been delivered. Returns false
  /// if `until` passed first, or if a listener is the caller, which would wait for itself.
  bool flush(Instant until = Instant::max()) noexcept;
  /// Returns the number of events that were dropped while there was a listener for them.
  std::uint64_t dropped() const noexcept;

 private:
  friend class Subscription;
  class Ring;

  Result<Subscription> listen(std::uint32_t types, std::function<void(const Event&)> listener);
  void end(const detail::Listening& listening) noexcept;
  void record(EventData&& data) noexcept;
  /// Returns the ring of this thread, entered; null without memory for one.
  Ring* enter_ring(std::uint64_t thread) noexcept;
  Ring* find_ring(std::uint64_t thread);
  /// Wakes the thread that reads, if it is asleep.
  void wake() noexcept;

  // Of the thread that reads.
  void read() noexcept;
  /// Returns the ring with the first event; null if all are empty.
  Ring* first_ring() noexcept;
  void deliver(const Event& event) noexcept;
  /// Returns the listening after the number `after` that receives `event`; null if there is none.
  std::shared_ptr<detail::Listening> next_call(const Event& event, std::uint64_t after) noexcept;
  /// Sleeps until `wake`. Returns false if there is no listener left: the thread ends.
  bool sleep() noexcept;
  void note_flushed(Instant asked, const Event* first) noexcept;

  const Origin origin_;
  const std::size_t capacity_;
  const Duration ring_idle_;
  std::atomic<std::uint32_t> wanted_{0};     ///< types with a listener
  std::atomic<std::uint32_t> is_asleep_{0};  ///< a futex: 1 while the reader sleeps
  std::atomic<Ring*> rings_{nullptr};        ///< a list, which only grows
  std::atomic<std::uint64_t> unrecorded_{0};

  std::mutex mutex_;  ///< guards all that follows; no thread that emits locks it
  Gate changed_;
  std::vector<std::shared_ptr<detail::Listening>> listenings_;
  std::uint64_t last_number_ = 0;
  std::optional<Worker> reader_;          ///< it may have ended
  std::uint64_t reader_thread_ = 0;       ///< its number
  bool is_reading_ = false;               ///< it reads the rings
  const void* called_ = nullptr;          ///< the listening whose listener is being called
  Instant flush_asked_ = Instant::min();  ///< the last call of `flush`
  Instant flushed_ = Instant::min();      ///< all events until then are delivered
};

}  // namespace wye::base
