#pragma once
/// Divides records into batches.
#include <wye/base/config.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace wye::inline v0::records {

/// Consecutive records.
struct RecordRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t end() const noexcept { return first + count; }
  friend bool operator==(const RecordRange&, const RecordRange&) = default;
};

/// Records that run together, with their history.
struct Batch {
  RecordRange range;
  std::uint32_t failures = 0;  ///< attempts so far
  /// A process ended while the records ran, alone or with others. They run alone in their worker.
  bool is_suspect = false;
  std::optional<std::size_t> failed_on = std::nullopt;  ///< the device of its last failure
  friend bool operator==(const Batch&, const Batch&) = default;
};

/// The records of a set that still have to run: a part for each device, and batches that run again.
/// Threads: one thread at a time.
class Division {
 public:
  /// Divides by ceiling division: with fewer records than devices, the last devices have none, and
  /// are out.
  Division(std::uint64_t records, std::uint64_t batch, std::size_t devices);
  /// Leaves out records that are done: sorted ranges that do not touch. A device whose part is done is
  /// out.
  void set_done(std::vector<RecordRange> done);
  /// Gives out records in their order: all are in one part. `window` records from the first
  /// undelivered one on may be in work.
  void set_in_order(std::uint64_t window);
  /// Sets the first record whose result is needed next.
  void set_next(std::uint64_t next) noexcept { next_ = next; }

  /// Returns the number of batches in the part of a device.
  std::uint64_t batches(std::size_t device) const noexcept;
  /// Returns the number of records in the part of a device.
  std::uint64_t records(std::size_t device) const noexcept { return parts_[device].count; }
  bool is_empty() const noexcept;

  /// Returns the next batch for a device: a batch that has failed on another device, otherwise of its
  /// part, otherwise of the later half of the largest part. Batches that have failed on this device are left to
  /// other devices, unless it is the last one.
  /// Suspects come first; without `may_be_suspect` they are left.
  std::optional<Batch> take(std::size_t device, bool may_be_suspect = true);
  /// Returns a batch that has not run, or that runs again.
  void put_back(Batch batch) { again_.push_back(batch); }
  /// Gives the part of a device to the others.
  void take_out(std::size_t device) noexcept { is_out_[device] = true; }
  bool is_out(std::size_t device) const noexcept { return is_out_[device]; }
  bool are_all_out() const noexcept;
  /// Returns all that is left.
  std::vector<Batch> take_all();

 private:
  std::optional<Batch> take_again(std::size_t device, bool may_be_suspect);
  bool take_part(std::size_t device);
  const RecordRange* done_from(std::uint64_t record) const noexcept;
  void skip_done(RecordRange& part) const noexcept;
  const std::uint64_t batch_;
  std::uint64_t window_ = 0, next_ = 0;  // in order; a window of 0: in parts
  std::vector<RecordRange> parts_;       // each begins with a record that is not done
  std::vector<RecordRange> done_;
  std::vector<bool> is_out_;
  std::vector<Batch> again_;
};

}  // namespace wye::records
