#include "silicon/machine_share.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "base/checksum.hpp"
#include "base/gate.hpp"
#include "base/text.hpp"

namespace wye::inline v0::silicon {
namespace {

using base::text;

constexpr std::array<char, 8> magic{'w', 'y', 'e', 's', 'l', 'o', 't', 's'};
constexpr std::uint32_t layout_version = 1;
constexpr std::int64_t no_rank = std::numeric_limits<std::int64_t>::max();
/// The place in the file that a process locks to join or to leave. The places of the entries
/// follow.
constexpr std::uint64_t join_place = 0;
constexpr Duration join_timeout = std::chrono::seconds(2), leave_timeout = std::chrono::milliseconds(100);
/// The mutex is held for less than a microsecond, unless its owner is stopped or preempted.
constexpr Duration mutex_timeout = std::chrono::milliseconds(100);
/// A process that is offered a free slot has this time to take it.
constexpr Duration answer_time = std::chrono::milliseconds(250);

std::int64_t ticks(Instant at) noexcept { return at.time_since_epoch().count(); }

}  // namespace

/// The numbers of one process. All zeros: no process has it.
struct alignas(64) MachineShare::Entry {
  std::atomic<std::int32_t> process;  // last of all that a new process writes
  std::atomic<std::uint32_t> used, limit, otherwise;
  std::atomic<std::uint64_t> start, numbers;  // see `ProcessId`
  std::atomic<std::int64_t> rank;             // `no_rank`: no request waits
  std::atomic<std::int64_t> offered;          // when a free slot was first left to this process; 0: none was
  std::atomic<std::uint64_t> held, budget;    // bytes
  std::atomic<std::uint32_t> changed;         // the process sleeps on it

  base::ProcessId id() const noexcept {
    return {.number = process.load(), .start = start.load(), .numbers = numbers.load()};
  }
  bool is_waiting() const noexcept { return process.load() != 0 && rank.load() != no_rank; }
  void clear() noexcept {
    process = 0;
    used = limit = otherwise = 0;
    start = numbers = held = 0;
    budget = ~std::uint64_t{0};
    rank = no_rank;
    offered = 0;
  }
};

struct MachineShare::Table {
  /// Never changes once it is written, under the lock of `join_place`. All zeros: its process ended
  /// before that.
  struct Fixed {
    std::array<char, 8> magic;
    std::uint32_t version, table_bytes, entry_bytes, mutex_bytes, entries, word_bytes;
    std::array<char, 40> key;
    base::Checksum checksum;  // of all before
  } fixed;
  alignas(64) base::SharedMutex mutex;
  std::atomic<std::uint32_t> entries;  // none is in use from this number on
  alignas(64) std::array<Entry, most_processes> entry;

  static Fixed fixed_for(std::string_view key) noexcept {
    Fixed fixed{};
    fixed.magic = magic;
    fixed.version = layout_version;
    fixed.table_bytes = sizeof(Table);
    fixed.entry_bytes = sizeof(Entry);
    fixed.mutex_bytes = sizeof(base::SharedMutex);
    fixed.entries = most_processes;
    fixed.word_bytes = sizeof(void*);
    std::copy_n(key.data(), std::min(key.size(), fixed.key.size()), fixed.key.data());
    fixed.checksum = base::checksum(std::as_bytes(std::span(&fixed, 1)).first(offsetof(Fixed, checksum)));
    return fixed;
  }
};

std::span<MachineShare::Entry> MachineShare::entries() const noexcept {
  return std::span(table_->entry).first(std::min(table_->entries.load(), most_processes));
}

std::uint64_t MachineShare::place_of(const Entry& entry) const noexcept {
  return join_place + 1 + static_cast<std::uint64_t>(&entry - table_->entry.data());
}

Result<std::unique_ptr<MachineShare>> MachineShare::join(std::string folder, std::string_view key,
                                                         const Clock& clock) {
  auto path = base::make_shared_directory(std::move(folder));
  if (!path) return std::move(path).error();
  const std::string name = text("{}/silicon-{}", *path, key);
  const Instant until = Clock::steady().now() + join_timeout;
  for (;;) {
    auto file = base::SharedFile::open(name);
    if (!file) return std::move(file).error();
    std::unique_ptr<MachineShare> share(new MachineShare(*std::move(file), *path, clock));
    auto locked = share->file_.lock(join_place, until);
    if (!locked) return std::move(locked).error();
    if (!*locked)
      return Error(Errc::unavailable,
                   text("Shared file '{}' was locked by another process for longer than {} s.", name,
                        std::chrono::duration_cast<std::chrono::seconds>(join_timeout).count()));
    share->is_joining_ = true;
    if (!share->file_.is_named() && Clock::steady().now() < until)
      continue;  // its last process has removed it meanwhile
    if (auto mapped = share->map(key); !mapped) return std::move(mapped).error();
    if (auto claimed = share->claim(); !claimed) return std::move(claimed).error();
    share->file_.unlock(join_place);
    share->is_joining_ = false;
    return share;
  }
}

/// Checks the file, or writes it if it is new, and maps it. Called with `join_place` locked.
Result<void> MachineShare::map(std::string_view key) {
  static_assert(std::is_standard_layout_v<Table> && sizeof(Entry) == 128);
  const Table::Fixed expected = Table::fixed_for(key);
  Table::Fixed found{};
  const auto size = file_.size();
  if (!size) return size.error();
  const auto got = file_.read(0, std::as_writable_bytes(std::span(&found, 1)));
  if (!got) return got.error();
  const auto bytes_of = [](const Table::Fixed& fixed) { return std::as_bytes(std::span(&fixed, 1)); };
  const auto begun = bytes_of(found);
  const bool is_new = *size <= Bytes{sizeof(Table)} &&
                      std::all_of(begun.begin(), begun.end(), [](std::byte b) { return b == std::byte{}; });
  if (is_new) {
    // The first page comes last: without it the file counts as new, if this process ends meanwhile.
    constexpr std::size_t page = 4096;
    const std::vector<std::byte> zeros(sizeof(Table));
    if (auto ok = file_.write(page, std::span(zeros).subspan(page)); !ok) return ok;
    if (auto ok = file_.write(0, std::span(zeros).first(page)); !ok) return ok;
    if (auto ok = file_.write(0, bytes_of(expected)); !ok) return ok;
  } else {
    const auto damaged = [&](const std::string& why) {
      return Error(Errc::corrupt,
                   text("Shared file '{}' is no table of slots, or is damaged: {}.", file_.path(), why));
    };
    if (*got < sizeof(found) || found.magic != expected.magic)
      return damaged(text("it does not begin with '{}'", std::string_view(magic.data(), magic.size())));
    if (found.version != layout_version)
      return Error(Errc::unsupported,
                   text("Shared file '{}' has layout version {}; this library has version {}.", file_.path(),
                        found.version, layout_version));
    if (*size != Bytes{sizeof(Table)})
      return damaged(text("its size is {} bytes; expected {}", size->count, sizeof(Table)));
    if (std::memcmp(&found, &expected, sizeof(found)) != 0)
      return damaged("its description of the table has changed, or is of another processor");
  }
  auto memory = file_.map(Bytes{sizeof(Table)});
  if (!memory) return std::move(memory).error();
  table_ = std::launder(reinterpret_cast<Table*>(*memory));
  if (file_.is_any_locked(join_place + 1, most_processes)) return {};
  // No process uses the table. A mutex that was locked when the machine stopped would stay locked.
  if (!table_->mutex.initialize())
    return Error(Errc::unavailable, "The system has no locks that processes share.");
  for (Entry& entry : table_->entry) entry.clear();
  table_->entries = 0;
  return {};
}

/// Takes an entry for this process. Called with `join_place` locked.
Result<void> MachineShare::claim() {
  (void)collect_dead(true);
  std::uint32_t i = 0;
  while (i < most_processes && !file_.try_lock(join_place + 1 + i)) ++i;
  if (i == most_processes)
    return Error(Errc::unavailable,
                 text("Shared file '{}' has no place for a further process; its limit is {}.", file_.path(),
                      most_processes));
  if (!table_->mutex.lock(join_timeout))
    return Error(Errc::unavailable,
                 text("The table in shared file '{}' was locked by another process for longer than {} s.",
                      file_.path(), std::chrono::duration_cast<std::chrono::seconds>(join_timeout).count()));
  Entry& entry = table_->entry[i];
  const base::ProcessId id = base::ProcessId::own();
  entry.clear();
  entry.start = id.start;
  entry.numbers = id.numbers;
  entry.otherwise = 1;
  entry.process = id.number;
  if (table_->entries <= i) table_->entries = i + 1;
  table_->mutex.unlock();
  own_ = &entry;
  return {};
}

MachineShare::~MachineShare() {
  if (origin_.is_inherited()) return;
  if (is_joining_) file_.unlock(join_place);  // a child of `fork` may have the file open
  if (!own_) return;
  stops_ = true;
  base::signal_change(own_->changed);
  watcher_.reset();
  bool is_locked = false;
  try {
    const auto locked = file_.lock(join_place, Clock::steady().now() + leave_timeout);
    is_locked = locked && *locked;
  } catch (const std::bad_alloc&) {  // then the file stays
  }
  const bool has_mutex = table_->mutex.lock(mutex_timeout);
  own_->clear();
  if (is_locked)
    while (!entries().empty() && entries().back().process == 0) --table_->entries;
  if (has_mutex) table_->mutex.unlock();
  wake_others();
  file_.unlock(place_of(*own_));
  if (!is_locked) return;
  if (!file_.is_any_locked(join_place + 1, most_processes)) file_.remove();
  file_.unlock(join_place);
}

Result<void> MachineShare::watch(std::function<void()> changed) {
  auto started = base::Worker::start("wye-slots", [this, changed = std::move(changed)] { run(changed); });
  if (!started) return std::move(started).error();
  watcher_.emplace(*std::move(started));
  return {};
}

void MachineShare::run(const std::function<void()>& changed) noexcept {
  while (!stops_) {
    const std::uint32_t seen = own_->changed.load();
    if (own_->is_waiting()) changed();  // its calls of `is_free` find processes that have ended, too
    is_parked_ = true;                  // first: then `wait` wakes this thread
    if (own_->is_waiting()) is_parked_ = false;
    const Instant until = is_parked_ ? Instant::max() : Clock::steady().now() + check_period;
    if (!stops_) base::await_change(own_->changed, seen, until);
    is_parked_ = false;
  }
}

void MachineShare::wake_others() noexcept {
  for (Entry& entry : entries())
    if (&entry != own_ && entry.is_waiting()) base::signal_change(entry.changed);
}

void MachineShare::set_wish(Wish wish) noexcept {
  if (origin_.is_inherited()) return;
  const std::uint32_t before = limit();
  own_->limit = wish.limit;
  own_->otherwise = wish.otherwise;
  if (limit() > before) wake_others();
}

std::uint32_t MachineShare::limit() const noexcept {
  std::uint32_t smallest = 0, otherwise = 1;
  for (const Entry& entry : entries()) {
    const std::uint32_t limit = entry.limit.load(std::memory_order_relaxed);
    if (limit != 0 && (smallest == 0 || limit < smallest)) smallest = limit;
    otherwise = std::max(otherwise, entry.otherwise.load(std::memory_order_relaxed));
  }
  return smallest != 0 ? smallest : otherwise;
}

bool MachineShare::serve(Instant rank, bool takes) noexcept {
  if (origin_.is_inherited()) return false;
  const auto attempt = [&] {
    if (!table_->mutex.lock(mutex_timeout)) return false;
    const bool is_free = serve_locked(rank, takes);
    table_->mutex.unlock();
    return is_free;
  };
  return attempt() || (collect_dead() && attempt());
}

bool MachineShare::serve_locked(Instant rank, bool takes) noexcept {
  const std::int64_t own = ticks(rank);
  const std::uint32_t limit = this->limit();
  std::uint64_t used = 0;
  bool any_waits = false;
  for (const Entry& entry : entries()) {
    used += entry.used.load();
    any_waits |= &entry != own_ && entry.is_waiting();
  }
  bool is_free = used < limit;
  if (any_waits) {
    const std::int64_t now = ticks(clock_.now());
    const auto answers = [&](const Entry& entry) {
      return entry.offered == 0 || now - entry.offered < answer_time.count();
    };
    for (Entry& entry : entries()) {
      if (!is_free || &entry == own_ || !entry.is_waiting() || entry.rank >= own || !answers(entry)) continue;
      if (entry.offered == 0) entry.offered = now;
      is_free = false;
    }
    const bool is_full = used + (is_free && takes) >= limit;
    for (Entry& entry : entries())
      if (is_full && &entry != own_ && answers(entry)) entry.offered = 0;  // now it cannot take one
  }
  if (is_free && takes) own_->used.fetch_add(1);
  return is_free;
}

void MachineShare::adopt(std::uint32_t count) noexcept { own_->used.fetch_add(count); }

void MachineShare::give_back() noexcept {
  if (origin_.is_inherited()) return;
  std::uint32_t used = own_->used.load();
  while (used != 0 && !own_->used.compare_exchange_weak(used, used - 1)) {
  }
  wake_others();
}

void MachineShare::wait(std::optional<Instant> rank) noexcept {
  if (origin_.is_inherited()) return;
  const std::int64_t wanted = rank ? ticks(*rank) : no_rank, before = own_->rank.load();
  if (wanted == before) return;
  own_->offered = 0;
  own_->rank = wanted;
  if (before == no_rank && is_parked_.exchange(false)) base::signal_change(own_->changed);
  if (wanted > before) wake_others();  // a request of another process may be the first now
}

std::uint32_t MachineShare::used_elsewhere() const noexcept {
  std::uint32_t used = 0;
  for (const Entry& entry : entries())
    if (&entry != own_) used += entry.used.load(std::memory_order_relaxed);
  return used;
}

void MachineShare::set_budget(Bytes budget) noexcept {
  if (!origin_.is_inherited()) own_->budget = budget.count;
}

Bytes MachineShare::budget() const noexcept {
  Bytes smallest{~std::uint64_t{0}};
  for (const Entry& entry : entries())
    if (entry.process.load(std::memory_order_relaxed) != 0)
      smallest = std::min(smallest, Bytes{entry.budget.load(std::memory_order_relaxed)});
  return smallest;
}

void MachineShare::publish(const std::atomic<std::uint64_t>& held) noexcept {
  if (origin_.is_inherited()) return;
  const base::Lock lock = base::lock_soon(publishing_);
  own_->held = held.load();
}

bool MachineShare::has_room(std::uint64_t held, Bytes bytes) const noexcept {
  const std::uint64_t budget = this->budget().count, elsewhere = held_elsewhere().count;
  return held <= budget && elsewhere <= budget - held && bytes.count <= budget - held - elsewhere;
}

Bytes MachineShare::held_elsewhere() const noexcept {
  Bytes held;
  for (const Entry& entry : entries())
    if (&entry != own_) held += Bytes{entry.held.load()};
  return held;
}

bool MachineShare::collect_dead(bool now) noexcept {
  constexpr Duration least_pause = std::chrono::milliseconds(10);
  if (origin_.is_inherited()) return false;
  const Instant time = clock_.now();
  if (!now && time < next_collect_.load()) return false;
  // Two threads of this process could have the lock of one place: they have one file.
  const std::unique_lock lock(collecting_, std::try_to_lock);
  if (!lock) return false;
  next_collect_ = time + least_pause;
  bool any = false;
  for (Entry& entry : entries()) {
    const base::ProcessId id = entry.id();
    if (&entry == own_ || id.number == 0) continue;
    const std::uint64_t place = place_of(entry);
    const bool is_released = file_.try_lock(place);
    // A child of `fork` keeps the lock of its parent.
    if (!is_released && !id.has_ended()) continue;
    if (table_->mutex.lock(mutex_timeout)) {
      if (entry.id() == id) {
        entry.clear();
        any = true;
      }
      table_->mutex.unlock();
    }
    if (is_released) file_.unlock(place);
  }
  if (any) wake_others();
  return any;
}

std::vector<MachineShare::Process> MachineShare::processes() const {
  std::vector<Process> list;
  for (const Entry& entry : entries())
    if (const std::int32_t number = entry.process.load(); number != 0)
      list.push_back({.number = number,
                      .used = entry.used.load(),
                      .held = Bytes{entry.held.load()},
                      .waits = entry.rank.load() != no_rank,
                      .is_own = &entry == own_});
  return list;
}

}  // namespace wye::silicon
