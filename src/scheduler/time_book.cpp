#include "scheduler/time_book.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "base/gate.hpp"
#include "base/internals.hpp"
#include "device/provider.hpp"

namespace wye::inline v0::scheduler {
namespace {

double ratio(Duration time, Duration other) noexcept {
  return static_cast<double>(time.count()) / static_cast<double>(other.count());
}

/// Returns `factor` times a time.
Duration times(Duration time, double factor) noexcept {
  const double product = static_cast<double>(time.count()) * factor;
  return product < static_cast<double>(longest_time.count())
             ? std::max(Duration(1), Duration(static_cast<Duration::rep>(product)))
             : longest_time;
}

std::uint64_t part_of(const Digest& digest) noexcept {
  std::uint64_t number = 0;
  std::memcpy(&number, digest.bytes.data(), sizeof number);
  return number;
}

/// Returns the number of the kernels of a job. `of`: that of one kernel.
template <class F>
std::uint64_t number_of(const Job& job, F of) noexcept {
  if (job.size() == 0) return 0;
  std::uint64_t number = of(*base::programs_of(job[0])[0]);
  for (std::size_t c = 1; c < job.size(); ++c) number = combine(number, of(*base::programs_of(job[c])[0]));
  return number;
}

}  // namespace

std::uint64_t number_of_kernel(const device::Program& program) noexcept {
  return part_of(program.current().digests().in_process);
}

std::uint64_t stored_number_of_kernel(const device::Program& program) noexcept {
  return part_of(program.current().digests().stored);
}

std::uint64_t number_of_kernels(const Job& job) noexcept { return number_of(job, number_of_kernel); }

std::uint64_t stored_number_of_kernels(const Job& job) noexcept {
  return number_of(job, stored_number_of_kernel);
}

Duration TimeBook::Row::run() const noexcept {
  return Duration(history_->kernels->run.load(std::memory_order_relaxed));
}

Duration TimeBook::Row::run_since() const noexcept {
  return run() - Duration(history_->run_before.load(std::memory_order_relaxed));
}

std::uint64_t TimeBook::Row::jobs_since() const noexcept {
  return history_->kernels->jobs.load(std::memory_order_relaxed) -
         history_->jobs_before.load(std::memory_order_relaxed);
}

bool TimeBook::Row::may_be_tried() const noexcept {
  return run() >= Duration(history_->tried_from.load(std::memory_order_relaxed));
}

WorkloadType TimeBook::Row::type() const noexcept { return history_->kernels->type; }

Duration TimeBook::History::mean(std::uint16_t size_class) const noexcept {
  const auto known = rows.find(size_class);
  return known != rows.end() && known->second ? known->second->mean() : Duration::zero();
}

TimeBook::Row* TimeBook::row(const Key& key, const Named& named) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  const auto known = rows_.find(key);
  if (known != rows_.end()) return &known->second;
  try {
    return rows_.size() < most_ ? add_row(key, named) : nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

TimeBook::Row* TimeBook::add_row(const Key& key, const Named& named) {
  Kernels& kernels = kernels_[key.kernels];
  if (kernels.on.empty()) {
    kernels.type = named.type;
    kernels.job = named.job;
    kernels.stored = named.stored;
  }
  const bool is_new = !kernels.on.contains(key.group);
  Row& row = add_row(kernels, key);
  if (is_new) adopt(kernels, key.kernels, key.group);
  return &row;
}

TimeBook::Row& TimeBook::add_row(Kernels& kernels, const Key& key) {
  History& history = kernels.on[key.group];
  if (!history.kernels) history.kernels = &kernels;  // threads read it without the lock
  Row*& listed = history.rows[key.size_class];
  Row& row = rows_[key];
  row.key_ = key;
  row.history_ = &history;
  listed = &row;
  return row;
}

/// Gives the kinds of some kernels on a group the times of an earlier process, which are used up.
void TimeBook::adopt(Kernels& kernels, std::uint64_t number, std::uint16_t group) {
  const auto earlier = earlier_.find(group);
  if (earlier == earlier_.end() || kernels.stored == 0) return;
  const auto found = earlier->second.kernels.find(kernels.stored);
  if (found == earlier->second.kernels.end()) return;
  const StoredTimes::Kernels times = std::move(found->second);
  earlier->second.kernels.erase(found);
  for (const StoredTimes::Row& one : times.rows) {
    const Key key{.kernels = number, .size_class = one.size_class, .group = group};
    const auto known = rows_.find(key);
    if (known == rows_.end() && rows_.size() >= most_) continue;
    Row& row = known != rows_.end() ? known->second : add_row(kernels, key);
    if (row.times_.share.count > 0) continue;
    row.times_.held = one.held;
    row.times_.share = one.share;
    row.publish();
    note_first_time(row);
  }
  History& history = kernels.on[group];
  if (!history.has_run) history.run_before = times.run_before.count();
  history.has_run = true;
  kernels.run = std::max(kernels.run.load(), times.run.count());
}

void TimeBook::adopt(std::uint16_t group, StoredTimes times) {
  const base::Lock lock = base::lock_soon(mutex_);
  Earlier& earlier = earlier_[group];
  for (StoredTimes::Kernels& kernels : times.kernels)
    earlier.kernels.try_emplace(kernels.number, std::move(kernels));
  for (const StoredTimes::Variant& variant : times.variants)
    earlier.calls.try_emplace({variant.number, variant.size_class}, variant.time);
  for (auto& [number, kernels] : kernels_)
    if (kernels.on.contains(group)) adopt(kernels, number, group);
}

StoredTimes TimeBook::noted(std::uint16_t group) const {
  std::vector<std::pair<Instant, StoredTimes::Kernels>> noted;
  StoredTimes times;
  const base::Lock lock = base::lock_soon(mutex_);
  for (const auto& [number, kernels] : kernels_) {
    const auto on = kernels.on.find(group);
    if (on == kernels.on.end() || kernels.stored == 0) continue;
    StoredTimes::Kernels one{.number = kernels.stored,
                             .run = Duration(kernels.run),
                             .run_before = Duration(on->second.run_before),
                             .rows = {}};
    Instant last;
    for (const auto& [size_class, row] : on->second.rows) {
      if (!row || !row->has_noted_) continue;
      one.rows.push_back({size_class, row->times_.held, row->times_.share});
      last = std::max(last, row->times_.last);
    }
    if (!one.rows.empty()) noted.emplace_back(last, std::move(one));
  }
  std::sort(noted.begin(), noted.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second.number) > std::pair(b.first, b.second.number);
  });
  for (auto& [last, kernels] : noted) times.kernels.push_back(std::move(kernels));
  for (const auto& [key, call] : calls_)
    if (key.group == group && call.stored != 0)
      times.variants.push_back({call.stored, key.size_class, call.time});
  return times;
}

bool TimeBook::samples(Row& row) noexcept {
  constexpr std::uint32_t first = 8, each = 64;
  const std::uint32_t number = row.jobs_.fetch_add(1, std::memory_order_relaxed);
  return number < first || number % each == 0;
}

void TimeBook::note(Row& row, Duration held, std::optional<Duration> run, Instant when,
                    double part) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  const bool is_first = row.times_.held.count == 0;
  const Duration share = times(held, part);
  row.times_.held.note(held);
  row.times_.share.note(share);
  if (run) row.times_.run.note(*run);
  row.times_.last = when;
  row.has_noted_ = true;
  notes_.fetch_add(1, std::memory_order_relaxed);
  row.publish();
  History& history = *row.history_;
  const Duration::rep all = history.kernels->run.load(std::memory_order_relaxed) +
                            std::clamp(share, Duration(1), longest_time).count();
  history.kernels->run.store(all, std::memory_order_relaxed);
  history.run_before.store(all, std::memory_order_relaxed);
  history.jobs_before.store(history.kernels->jobs.fetch_add(1, std::memory_order_relaxed) + 1,
                            std::memory_order_relaxed);
  history.has_run.store(true, std::memory_order_relaxed);
  if (is_first) note_first_time(row);
}

/// Compares the first time of a kind with those of the same kernels and size on other groups.
void TimeBook::note_first_time(const Row& row) noexcept try {
  known_kinds_.fetch_add(1, std::memory_order_relaxed);
  const auto note = [&](std::uint16_t group, std::uint16_t other, double logarithm) {
    Ratios& ratios = slowness_[{group, other, row.type().name}];
    ratios.sum_of_logarithms += logarithm;
    ++ratios.count;
  };
  for (const auto& [other, history] : row.history_->kernels->on) {
    const Duration there = history.mean(row.key_.size_class);
    if (other == row.key_.group || there == Duration::zero()) continue;
    const double logarithm = std::log(ratio(row.mean(), there));
    note(row.key_.group, other, logarithm);
    note(other, row.key_.group, -logarithm);
  }
} catch (const std::bad_alloc&) {  // the ratio lacks a kind
}

/// Returns the time of a kind, of whose kernels one other size is known on its group.
Duration TimeBook::follow(const Kernels& kernels, const Key& key, std::uint16_t known,
                          Duration time) noexcept {
  for (const auto& [group, history] : kernels.on) {
    const Duration own = history.mean(key.size_class), of_known = history.mean(known);
    if (own != Duration::zero() && of_known != Duration::zero()) return times(time, ratio(own, of_known));
  }
  constexpr double classes_per_octave = 4;
  return times(time, std::exp2((int{key.size_class} - int{known}) / classes_per_octave));
}

Duration TimeBook::estimate(const Row& row) const noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  const Key& key = row.key_;
  std::pair<std::uint16_t, Duration> smaller{}, larger{};  // size classes and times
  for (const auto& [size_class, other] : row.history_->rows) {
    const Duration mean = other ? other->mean() : Duration::zero();
    if (mean == Duration::zero()) continue;
    if (size_class == key.size_class) return mean;
    (size_class < key.size_class ? smaller : larger) = {size_class, mean};
    if (size_class > key.size_class) break;
  }
  const auto known = smaller.second != Duration::zero() ? smaller : larger;
  if (known.second == Duration::zero()) return {};
  if (smaller.second == Duration::zero() || larger.second == Duration::zero())
    return follow(*row.history_->kernels, key, known.first, known.second);
  const double part = static_cast<double>(key.size_class - smaller.first) / (larger.first - smaller.first);
  return times(smaller.second, std::pow(ratio(larger.second, smaller.second), part));
}

double TimeBook::slowness(const Row& row, std::uint16_t other, double believed) const noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  const auto known = slowness_.find({row.key_.group, other, row.type().name});
  if (known == slowness_.end()) return believed;
  const Ratios& ratios = known->second;
  return std::exp((ratios.sum_of_logarithms + std::log(believed)) / (ratios.count + 1));
}

void TimeBook::delay_trials(Row& row, Duration more) noexcept {
  const Duration from = row.run() + std::clamp(more, Duration::zero(), longest_time);
  row.history_->tried_from.store(from.count(), std::memory_order_relaxed);
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

std::vector<TimeBook::Known> TimeBook::known() const {
  std::vector<Known> known;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    for (const auto& [key, row] : rows_) {
      if (row.times_.share.count == 0) continue;
      const Kernels& kernels = *row.history_->kernels;
      known.push_back({key, kernels.job, kernels.type, row.times_.share, row.times_.last});
    }
  }
  std::sort(known.begin(), known.end(), [](const Known& a, const Known& b) {
    return std::tie(a.job, a.key.kernels, a.key.size_class, a.key.group) <
           std::tie(b.job, b.key.kernels, b.key.size_class, b.key.group);
  });
  return known;
}

void TimeBook::forget() noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  for (auto& [key, row] : rows_) {
    row.times_ = {};
    row.has_noted_ = false;
    row.publish();
    row.jobs_ = 0;
  }
  for (auto& [number, kernels] : kernels_) {
    kernels.run = 0;
    kernels.jobs = 0;
    for (auto& [group, history] : kernels.on) {
      history.has_run = false;
      history.run_before = history.tried_from = 0;
      history.jobs_before = 0;
    }
  }
  slowness_.clear();
  for (auto& [group, earlier] : earlier_) earlier.kernels.clear();
  ++known_kinds_;
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

void TimeBook::note_call(const CallKind& kind, Duration took) noexcept try {
  const base::Lock lock = base::lock_soon(mutex_);
  const auto [call, is_new] = calls_.try_emplace(kind.key);
  if (is_new) call->second = {find_earlier_call(kind), kind.stored};
  call->second.time.note(took);
  notes_.fetch_add(1, std::memory_order_relaxed);
} catch (const std::bad_alloc&) {  // it is not known
}

Timing TimeBook::find_call(const CallKind& kind) const noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  const auto known = calls_.find(kind.key);
  return known != calls_.end() ? known->second.time : find_earlier_call(kind);
}

/// Returns the times of calls in an earlier process.
Timing TimeBook::find_earlier_call(const CallKind& kind) const noexcept {
  const auto earlier = earlier_.find(kind.key.group);
  if (earlier == earlier_.end()) return {};
  const auto known = earlier->second.calls.find({kind.stored, kind.key.size_class});
  return known != earlier->second.calls.end() ? known->second : Timing();
}

void TimeBook::forget_calls() noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  calls_.clear();
}

}  // namespace wye::scheduler
