#pragma once
/// Times of jobs, kept between processes.
#include <wye/base/clock.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "base/logger.hpp"
#include "device/driver_records.hpp"
#include "pool/fleet.hpp"
#include "scheduler/placer.hpp"
#include "scheduler/time_book.hpp"

namespace wye::inline v0::scheduler {

/// Loads the times of a book, and saves them: a record for each group of equal devices, under their
/// name and the build of their driver. A record that cannot be read is ignored, and replaced later.
/// Threads: thread-safe. Calls the storage under its mutex; call it without other locks.
class TimeStore {
 public:
  /// `records`: null: nothing is kept. All outlive it.
  TimeStore(const pool::Fleet& fleet, const Placer& placer, device::DriverRecords* records, TimeBook& times,
            const Clock& clock, const base::Logger& log) noexcept;

  /// Returns whether devices were added, or a minute has passed since the last save and times were noted.
  bool is_due() const noexcept;
  /// Loads the times of devices that were added since the last call, and saves those that were noted.
  /// Those of other processes, for other jobs, are kept.
  void update() noexcept;
  /// Removes the stored times of jobs, but not those of variants.
  void forget() noexcept;

 private:
  void load();
  void change(std::uint16_t group, const device::DriverRecords::Update& update);

  const pool::Fleet& fleet_;
  const Placer& placer_;
  device::DriverRecords* const records_;
  TimeBook& times_;
  const Clock& clock_;
  const base::Logger& log_;
  std::mutex mutex_;
  std::map<std::uint16_t, Digest> keys_;  // of the records of groups, under `mutex_`
  std::atomic<std::size_t> devices_{0};   // whose groups have a key
  std::atomic<std::uint64_t> saved_{0};   // `TimeBook::notes` at the last save
  std::atomic<Instant> next_;             // save, at the earliest
};

}  // namespace wye::scheduler
