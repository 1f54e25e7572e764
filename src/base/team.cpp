#include "base/team.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "base/gate.hpp"
#include "base/host_info.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "base/worker.hpp"

namespace wye::inline v0::base {
namespace {

constexpr unsigned most_threads = 1024;

/// The average number of runs per thread: enough to balance runs of unequal cost.
constexpr std::uint64_t runs_per_thread = 8;

/// The caller alone does work that is expected to take less. A woken thread begins about 10 us
/// later, and waking and parking it costs both threads 7 us of CPU together (on two cores of a
/// virtual machine).
constexpr Duration worth_a_wake = std::chrono::microseconds(20);

/// A shorter run does not update the cost of an item, because the first items of a kernel find cold
/// caches.
constexpr Duration worth_judging = std::chrono::microseconds(2);

/// Returns whether to measure a run that is expected to be too short to be judged: one of eight,
/// chosen by chance, because readings of the clock would take as long as the run. Its items may
/// have become more expensive.
bool is_measured() noexcept {
  static constinit thread_local std::uint32_t number = 0;
  number = number * 1664525u + 1013904223u;  // Knuth, "The art of computer programming", vol. 2, 3.3.4
  return number >> 29 == 0;
}

constexpr std::uint64_t divided_up(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

/// The remaining runs of one call of `each`. Lives on the caller's stack. The caller returns only
/// when no thread is inside.
struct Grid {
  Grid(Range items, std::uint64_t grain, unsigned threads, ChunkFunction function)
      : begin(items.first), count(items.size()), chunk(function) {
    length = divided_up(divided_up(count, grain), runs_per_thread * threads) * grain;
    runs = divided_up(count, length);
    room = static_cast<unsigned>(std::min<std::uint64_t>(threads, runs)) - 1;
  }

  /// Executes the next run. Returns its number of items, or 0 if no run is left.
  std::uint64_t do_next() {
    const std::uint64_t run = next.fetch_add(1, std::memory_order_relaxed);
    if (run >= runs) return 0;
    const std::uint64_t first = run * length;
    const std::uint64_t items = std::min(count - first, length);
    chunk(begin + first, begin + first + items);
    return items;
  }
  bool all_begun() const noexcept { return next.load(std::memory_order_relaxed) >= runs; }

  std::uint64_t begin;
  std::uint64_t count;
  ChunkFunction chunk;
  std::uint64_t length;  // items of a run; the last one may be shorter
  std::uint64_t runs;
  std::atomic<std::uint64_t> next{0};

  // Under the crew's mutex; `inside` may be read without it as a hint.
  unsigned room;  // helpers that may still join
  std::atomic<unsigned> inside{0};
  Gate emptied;
  Grid* before = nullptr;
  Grid* after = nullptr;
};

thread_local int depth = 0;

/// While one lives, its thread works for a team.
struct Inside {
  Inside() noexcept { ++depth; }
  ~Inside() { --depth; }
};

/// The state that the threads of a team share. They keep it alive, so the last handle may end on
/// one of them. Grids are served in order of arrival. A thread inside an outer grid stays in it
/// until all its runs have begun, and only then joins an inner grid. A caller waits only for
/// threads inside its own grid, and these wait at most for grids that they began themselves. Hence
/// there is no deadlock.
class Crew : public std::enable_shared_from_this<Crew> {
 public:
  // One more than `size`: a task that finds no thread starts one while a grid may be starting all
  // of them.
  explicit Crew(unsigned size) : size_(size) { threads_.reserve(size + 1); }

  unsigned size() const noexcept { return size_; }

  void each(std::uint64_t count, std::uint64_t grain, ChunkFunction chunk, Pace& pace) {
    if (count <= grain) return chunk(0, count);  // no thread could help
    const std::uint64_t done = do_first(count, grain, chunk, pace);
    if (done == count) return;
    Grid grid(Range{done, count}, grain, size_, chunk);
    {
      Lock lock(mutex_);
      append(grid);
      summon(lock, 1);
    }
    const Instant start = Clock::steady().now();
    std::uint64_t mine = 0;
    while (const std::uint64_t items = grid.do_next()) mine += items;
    pace.saw(mine, Clock::steady().now() - start);
    const auto empty = [&] { return grid.inside.load(std::memory_order_relaxed) == 0; };
    (void)seen_before_parking(empty, wake_time_.expected());
    Lock lock(mutex_);
    remove(grid);
    grid.emptied.wait(lock, Instant::max(), empty);
  }

  bool post(std::function<void()> task) {
    Lock lock(mutex_);
    const bool starts_first = threads_.empty();
    if (starts_first && !start_first(lock)) return false;
    tasks_.push_back(std::move(task));
    tasks_waiting_.store(true, std::memory_order_relaxed);
    if (!starts_first) summon(lock, 1);
    return true;
  }

  /// Waits until the posted tasks completed, then ends and joins the threads.
  void stop() {
    std::vector<Worker> threads;
    {
      const Lock lock(mutex_);
      stopping_ = true;
      threads.swap(threads_);
    }
    gate_.wake_all();
  }

 private:
  /// Executes items on the caller alone while the rest is not worth a wake. Returns their number.
  /// It is 0 if the items are known to be expensive, or if nothing is known and the first grain
  /// might be half of the work.
  std::uint64_t do_first(std::uint64_t count, std::uint64_t grain, ChunkFunction chunk, Pace& pace) {
    const bool cheap = pace.known();
    if (cheap && pace.expected(count) > worth_a_wake) return 0;
    const std::uint64_t longest = count / (runs_per_thread * size_) / grain * grain;
    if (!cheap && longest == 0) return 0;
    if (cheap && pace.expected(count) < worth_judging && !is_measured()) return chunk(0, count), count;
    const Instant start = Clock::steady().now();
    std::uint64_t done = 0;
    // Cheap items are executed in two pieces: the first shows whether they are still cheap.
    for (std::uint64_t length = cheap ? divided_up(count / 8, grain) * grain : grain;;) {
      if (length == 0 || length > count - done) length = count - done;
      chunk(done, done + length);
      done += length;
      const Duration spent = Clock::steady().now() - start;
      const double left = static_cast<double>(count - done) / static_cast<double>(done);
      const bool dear = spent > worth_judging &&
                        static_cast<double>(spent.count()) * left > static_cast<double>(worth_a_wake.count());
      if (dear || done == count) {
        pace.saw(done, spent);
        return done;
      }
      length = cheap ? count - done : std::min(length * 2, longest);
    }
  }

  /// Wakes parked threads, or starts new ones, up to `wanted`. Unlocks.
  void summon(Lock& lock, unsigned wanted) {
    const unsigned wake = std::min(wanted, idle_);
    idle_ -= wake;
    called_ += wake;
    calls_.fetch_add(wake, std::memory_order_relaxed);
    const unsigned parked = std::min(wake, called_ - std::min(called_, polling_));
    if (parked > 0) woken_ = Clock::steady().now();
    const unsigned begin = stopping_ || started_ >= size_ ? 0 : std::min(wanted - wake, size_ - started_);
    started_ += begin;
    lock.unlock();
    for (unsigned i = 0; i < parked; ++i) gate_.wake_one();
    for (unsigned i = 0; i < begin; ++i) {
      // If the system refuses a thread, the existing threads do the work.
      if (!try_start()) {
        lock.lock();
        --started_;
        lock.unlock();
      }
    }
  }

  /// Makes sure that a task finds a thread. The lock is held: a task must not count on a thread
  /// that cannot start.
  bool start_first(const Lock&) {
    Result<Worker> worker = Worker::start("wye-team", [crew = shared_from_this()] { crew->work(); });
    if (!worker) return false;
    threads_.push_back(*std::move(worker));
    ++started_;
    return true;
  }

  Result<void> start() {
    Result<Worker> worker = Worker::start("wye-team", [crew = shared_from_this()] { crew->work(); });
    if (!worker) return std::move(worker).error();
    const Lock lock(mutex_);
    threads_.push_back(*std::move(worker));
    return {};
  }

  bool try_start() noexcept {
    try {
      return start().has_value();
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  /// Runs a thread of the team.
  void work() {
    Lock lock(mutex_);
    while (true) {
      if (!tasks_.empty()) {
        do_task(lock);
      } else if (Grid* grid = joinable()) {
        help(lock, *grid);
      } else if (stopping_) {
        return;
      } else {
        ++idle_;
        look(lock);
        const bool parks = called_ == 0 && !stopping_;
        gate_.wait(lock, Instant::max(), [this] { return called_ > 0 || stopping_; });
        if (called_ == 0) continue;
        --called_;
        if (parks) wake_time_.saw(Clock::steady().now() - woken_);
      }
    }
  }

  /// Polls for a call before it parks. If one thread posts each task after the end of the last, no
  /// thread parks.
  void look(Lock& lock) {
    const unsigned before = calls_.load(std::memory_order_relaxed);
    ++polling_;
    const auto called = [&] { return calls_.load(std::memory_order_relaxed) != before; };
    (void)seen_before_parking(lock, called, wake_time_.expected());
    --polling_;
  }

  void do_task(Lock& lock) {
    const Inside inside;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    tasks_waiting_.store(!tasks_.empty(), std::memory_order_relaxed);
    lock.unlock();
    try {
      task();
    } catch (...) {  // a task must not throw; if it does, the thread continues for the other tasks
    }
    task = nullptr;
    lock.lock();
  }

  void help(Lock& lock, Grid& grid) {
    const Inside inside;
    --grid.room;
    grid.inside.fetch_add(1, std::memory_order_relaxed);
    // Each helper wakes two more, so that a small grid wakes few threads and a large grid all of
    // them quickly.
    summon(lock, std::min(grid.all_begun() ? 0u : 2u, grid.room));
    // A posted task goes first: the grid has its caller, the task has no other thread.
    while (!tasks_waiting_.load(std::memory_order_relaxed) && grid.do_next() != 0) {
    }
    lock.lock();
    ++grid.room;
    if (grid.inside.fetch_sub(1, std::memory_order_relaxed) == 1) grid.emptied.wake_one();
  }

  Grid* joinable() const noexcept {
    for (Grid* grid = first_; grid; grid = grid->after) {
      if (grid->room > 0 && !grid->all_begun()) return grid;
    }
    return nullptr;
  }

  void append(Grid& grid) noexcept {
    grid.before = last_;
    (last_ ? last_->after : first_) = &grid;
    last_ = &grid;
  }
  void remove(Grid& grid) noexcept {
    (grid.before ? grid.before->after : first_) = grid.after;
    (grid.after ? grid.after->before : last_) = grid.before;
  }

  const unsigned size_;
  std::mutex mutex_;
  Gate gate_;
  unsigned started_ = 0;
  unsigned idle_ = 0;     // parked or looking, and not called yet
  unsigned called_ = 0;   // parked or looking, and about to work
  unsigned polling_ = 0;  // not parked yet
  Instant woken_;         // when a parked thread was last woken
  WakeTime wake_time_;
  std::atomic<unsigned> calls_{0};  // in total; the polling threads read it
  bool stopping_ = false;
  std::deque<std::function<void()>> tasks_;
  std::atomic<bool> tasks_waiting_{false};  // helpers read it between two runs
  Grid* first_ = nullptr;
  Grid* last_ = nullptr;
  std::vector<Worker> threads_;
};

// The team of each size that has a handle. A child of `fork` begins with none, because it has no
// thread of its parent.
class SharedTeam;
struct Registry {
  std::mutex mutex;
  SharedTeam* first = nullptr;
};
constinit PerProcess<Registry> registry;

/// The team that handles refer to; in the registry while it exists.
class SharedTeam final : public Team, public std::enable_shared_from_this<SharedTeam> {
 public:
  explicit SharedTeam(unsigned size) : crew_(make_own<Crew>(size)) {}
  SharedTeam(const SharedTeam&) = delete;  // there is one of a size

  ~SharedTeam() override {
    leave_registry();
    crew_->stop();
  }

  static std::shared_ptr<Team> find(unsigned size) {
    Registry& teams = registry.get();
    const std::lock_guard lock(teams.mutex);
    return find_locked(teams, size);
  }

  static Result<std::shared_ptr<Team>> find_or_make(unsigned size) {
    if (auto team = find(size)) return team;
    const auto made = make_own<SharedTeam>(size);
    Registry& teams = registry.get();
    const std::lock_guard lock(teams.mutex);
    if (auto team = find_locked(teams, size)) return team;  // another thread was faster
    made->next_ = std::exchange(teams.first, made.get());
    return std::shared_ptr<Team>(made);
  }

  unsigned size() const noexcept override { return crew_->size(); }

  using Team::each;
  void each(std::uint64_t count, std::uint64_t grain, ChunkFunction chunk, Pace& pace) override {
    grain = std::max<std::uint64_t>(grain, 1);
    if (count > grain && size() > 1) {
      crew_->each(count, grain, chunk, pace);
    } else if (count > 0) {
      chunk(0, count);
    }
  }

  bool post(std::function<void()> task) override {
    const std::shared_ptr<Crew> crew = crew_;  // the task may end this team before the call returns
    return crew->post(std::move(task));
  }

 private:
  static std::shared_ptr<Team> find_locked(const Registry& teams, unsigned size) {
    for (SharedTeam* team = teams.first; team; team = team->next_) {
      if (team->size() != size) continue;
      if (auto living = team->weak_from_this().lock()) return living;
    }
    return nullptr;
  }

  void leave_registry() {
    Registry& teams = registry.get();
    const std::lock_guard lock(teams.mutex);
    for (SharedTeam** link = &teams.first; *link; link = &(*link)->next_) {
      if (*link == this) {
        *link = next_;
        return;
      }
    }
  }

  const std::shared_ptr<Crew> crew_;
  SharedTeam* next_ = nullptr;
};

}  // namespace

bool Team::inside() noexcept { return depth > 0; }

Team::~Team() = default;

Duration Pace::expected(std::uint64_t items) const noexcept {
  constexpr double longest = 1e18;
  const double nanoseconds = nanoseconds_.load(std::memory_order_relaxed) * static_cast<double>(items);
  return Duration(static_cast<Duration::rep>(std::clamp(nanoseconds, 0.0, longest)));
}

void Pace::saw(std::uint64_t items, Duration took) noexcept {
  if (items == 0) return;
  const float before = nanoseconds_.load(std::memory_order_relaxed);
  const float now = static_cast<float>(took.count()) / static_cast<float>(items);
  // A quarter at a time: one interrupted grid does not make its kernel expensive.
  nanoseconds_.store(before < 0 ? now : before + (now - before) / 4, std::memory_order_relaxed);
}

WakeTime::WakeTime() noexcept : nanoseconds_(parking.count()) {}

void WakeTime::saw(Duration took) noexcept {
  const Duration before = expected(), now = std::clamp(took, parking, longest);
  nanoseconds_.store((before + (now - before) / (now < before ? 4 : 16)).count(), std::memory_order_relaxed);
}

Result<std::shared_ptr<Team>> Team::share(unsigned threads) {
  if (threads > most_threads) {
    return Error(Errc::invalid_argument,
                 text("Team size ({} threads) exceeds the limit ({} threads).", threads, most_threads));
  }
  return SharedTeam::find_or_make(threads != 0 ? threads : std::min(usable_processors(), most_threads));
}

}  // namespace wye::base
