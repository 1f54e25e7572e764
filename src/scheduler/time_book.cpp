#include "scheduler/time_book.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <limits>
#include <new>

#include "base/gate.hpp"
#include "base/internals.hpp"
#include "device/provider.hpp"

namespace wye::inline v0::scheduler {

std::uint32_t size_class(std::uint64_t n) noexcept {
  if (n < 2) return 0;
  const auto octave = static_cast<std::uint32_t>(std::bit_width(n)) - 1;
  const std::uint64_t two_bits = octave < 2 ? n << (2 - octave) : n >> (octave - 2);
  return octave * 4 + static_cast<std::uint32_t>(two_bits & 3);
}

std::uint64_t number_of_kernel(const device::Program& program) noexcept {
  std::uint64_t number = 0;
  std::memcpy(&number, program.current().digest().bytes.data(), sizeof number);
  return number;
}

std::uint64_t number_of_kernels(const Job& job) noexcept {
  if (job.size() == 0) return 0;
  std::uint64_t number = number_of_kernel(*base::programs_of(job[0])[0]);
  for (std::size_t c = 1; c < job.size(); ++c)
    number = combine(number, number_of_kernel(*base::programs_of(job[c])[0]));
  return number;
}

void Timing::note(Duration took) noexcept {
  constexpr std::uint32_t first = 8;  // too few to know an outlier
  constexpr int forgetting = 8;
  constexpr Duration longest = std::chrono::hours(24 * 365);  // the sums below do not overflow
  took = std::clamp(took, Duration(1), longest);
  least = count == 0 ? took : std::min(took, least + (count < first ? Duration::zero() : least / 256));
  if (count >= first) took = std::min(took, 2 * mean + 8 * spread);
  const Duration distance = took - mean;
  if (count > 0) spread += (std::max(distance, -distance) - spread) / (count == 1 ? 1 : forgetting);
  mean += distance / (count == 0 ? 1 : forgetting);
  if (count < std::numeric_limits<std::uint32_t>::max()) ++count;
}

TimeBook::Row* TimeBook::row(const Key& key) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  const auto known = rows_.find(key);
  if (known != rows_.end()) return &known->second;
  try {
    return rows_.size() < most_ ? &rows_[key] : nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool TimeBook::samples(Row& row) noexcept {
  constexpr std::uint32_t first = 8, each = 64;
  const std::uint32_t number = row.jobs_.fetch_add(1, std::memory_order_relaxed);
  return number < first || number % each == 0;
}

void TimeBook::note(Row& row, Duration held, std::optional<Duration> run, Instant when) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  row.times_.held.note(held);
  if (run) row.times_.run.note(*run);
  row.times_.last = when;
  row.mean_.store(row.times_.held.mean.count(), std::memory_order_relaxed);
}

void TimeBook::note_commands(Row& row, Duration took, device::StampClock clock) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  Times& times = row.times_;
  if (clock == device::StampClock::device && times.clock != clock) {
    times.commands = {};
    times.clock = clock;
  }
  if (clock == times.clock) times.commands.note(took);
}

TimeBook::Times TimeBook::read(const Row& row) const noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  return row.times_;
}

TimeBook::Times TimeBook::find(const Key& key) const noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  const auto known = rows_.find(key);
  return known != rows_.end() ? known->second.times_ : Times();
}

void TimeBook::note_call(const Key& key, Duration took) noexcept try {
  const base::Lock lock = base::lock_soon(mutex_);
  calls_[key].note(took);
} catch (const std::bad_alloc&) {  // it is not known
}

Timing TimeBook::find_call(const Key& key) const noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  const auto known = calls_.find(key);
  return known != calls_.end() ? known->second : Timing();
}

void TimeBook::forget_calls() noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  calls_.clear();
}

}  // namespace wye::scheduler
