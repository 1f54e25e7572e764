#include "scheduler/time_store.hpp"

#include <chrono>
#include <new>
#include <span>
#include <string_view>

#include "base/text.hpp"
#include "scheduler/stored_times.hpp"

namespace wye::inline v0::scheduler {
namespace {

constexpr auto period = std::chrono::minutes(1);

/// Returns the key of the record of all devices with the name and the driver of one.
Digest key_of(const AdapterInfo& info) {
  return Hasher()
      .add("wye times")
      .add(std::string_view(info.backend))
      .add(std::string_view(info.name))
      .add(std::as_bytes(std::span(info.driver_uuid)))
      .add(std::string_view(info.driver))
      .add(info.driver_version)
      .add(std::string_view(info.api))
      .finish();
}

}  // namespace

TimeStore::TimeStore(const pool::Fleet& fleet, const Placer& placer, device::DriverRecords* records,
                     TimeBook& times, const Clock& clock, const base::Logger& log) noexcept
    : fleet_(fleet),
      placer_(placer),
      records_(records),
      times_(times),
      clock_(clock),
      log_(log),
      next_(clock.now() + period) {}

bool TimeStore::is_due() const noexcept {
  if (!records_) return false;
  if (devices_.load(std::memory_order_relaxed) != placer_.last_table().choices.size()) return true;
  return saved_.load(std::memory_order_relaxed) != times_.notes() &&
         clock_.now() >= next_.load(std::memory_order_relaxed);
}

/// Loads the times of the groups that have no key yet, and gives them one.
void TimeStore::load() {
  const std::vector<Choice>& choices = placer_.last_table().choices;
  for (const Choice& choice : choices) {
    const auto group = static_cast<std::uint16_t>(1 + choice.equal);
    if (keys_.contains(group)) continue;
    const AdapterInfo& info = fleet_.info(choice.equal);
    const Digest key = key_of(info);
    const auto stored = records_->load(key);
    auto times = stored && *stored ? decode_times(**stored) : std::nullopt;
    if (times)
      times_.adopt(group, *std::move(times));
    else if (!stored || *stored)
      log_.write(LogLevel::warning, "scheduler",
                 base::text("The stored times of jobs on '{}' are ignored: they are damaged, or of another "
                            "version of wye.",
                            info.name));
    keys_.emplace(group, key);
  }
  devices_.store(choices.size(), std::memory_order_relaxed);
}

/// Changes the record of a group that has a key.
void TimeStore::change(std::uint16_t group, const device::DriverRecords::Update& update) {
  const AdapterInfo& info = fleet_.info(group - 1u);
  records_->update(keys_.at(group), {base::text("times of jobs on {}", info.name), info.driver}, update);
}

void TimeStore::update() noexcept try {
  if (!records_) return;
  const std::lock_guard lock(mutex_);
  load();
  next_.store(clock_.now() + period, std::memory_order_relaxed);
  const std::uint64_t notes = times_.notes();
  if (saved_.exchange(notes, std::memory_order_relaxed) == notes) return;
  for (const auto& [group, key] : keys_) {
    StoredTimes noted = times_.noted(group);
    if (noted.kernels.empty() && noted.variants.empty()) continue;
    change(group, [&](std::span<const std::byte> stored) {
      const auto earlier = decode_times(stored);
      return encode(merge(std::move(noted), earlier ? *earlier : StoredTimes()));
    });
  }
} catch (const std::bad_alloc&) {  // the next call tries it again, if further times were noted
}

void TimeStore::forget() noexcept try {
  if (!records_) return;
  const std::lock_guard lock(mutex_);
  for (const auto& [group, key] : keys_)
    change(group, [](std::span<const std::byte> stored) {
      auto times = decode_times(stored);
      if (times) times->kernels.clear();
      return times && !times->variants.empty() ? encode(*times) : std::vector<std::byte>();
    });
} catch (const std::bad_alloc&) {  // they stay
}

}  // namespace wye::scheduler
