#include "failures.hpp"

#include <algorithm>

namespace wye::inline v0::records {

std::vector<Batch> Retries::after_failure(Batch& failed, std::size_t device) const {
  ++failed.failures;
  failed.failed_on = device;
  if (failed.failures >= attempts_) return {};
  return {failed};
}

std::vector<Batch> Retries::after_end(Batch& failed, std::size_t device) {
  failed.is_suspect = true;
  if (failed.range.count == 1 || halvings_left_ == 0) {
    halvings_left_ -= halvings_left_ != 0 ? 1 : 0;
    return after_failure(failed, device);
  }
  --halvings_left_;
  Batch first = failed, second = failed;
  first.failed_on = second.failed_on = device;
  first.range.count = failed.range.count / 2;
  second.range = {first.range.end(), failed.range.count - first.range.count};
  return {first, second};
}

std::vector<Batch> Retries::after_unclear_end(Batch& failed, std::size_t device) {
  if (failed.is_suspect || halvings_left_ == 0) return after_end(failed, device);
  --halvings_left_;
  failed.is_suspect = true;
  return {failed};
}

bool DeviceFailures::note_end(std::size_t device, Instant now) {
  std::vector<Instant>& ends = devices_[device].ends;
  std::erase_if(ends, [&](Instant end) { return now - end > pace_.ends_within; });
  ends.push_back(now);
  return ends.size() >= pace_.most_ends;
}

bool DeviceFailures::note_failure(std::size_t device, const RecordRange& range) {
  bool failed_elsewhere = false;
  for (Device& other : devices_)
    if (&other != &devices_[device] &&
        std::erase_if(other.in_a_row, [&](const RecordRange& row) { return row == range; }) != 0)
      failed_elsewhere = true;
  Device& own = devices_[device];
  if (failed_elsewhere) return false;
  if (own.in_a_row.empty()) own.done_elsewhere = 0;
  if (std::ranges::find(own.in_a_row, range) == own.in_a_row.end()) own.in_a_row.push_back(range);
  return own.in_a_row.size() >= pace_.most_failures && own.done_elsewhere != 0;
}

void DeviceFailures::note_done(std::size_t device) {
  devices_[device].in_a_row.clear();
  for (Device& other : devices_)
    if (&other != &devices_[device]) ++other.done_elsewhere;
}

}  // namespace wye::records
