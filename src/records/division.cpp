#include "division.hpp"

#include <algorithm>
#include <utility>

namespace wye::inline v0::records {

Division::Division(std::uint64_t records, std::uint64_t batch, std::size_t devices)
    : batch_(batch), parts_(devices), is_out_(devices) {
  const std::uint64_t each = records / devices + (records % devices != 0 ? 1 : 0);
  for (std::size_t d = 0; d < devices; ++d) {
    const std::uint64_t first = std::min(records, each * d);
    parts_[d] = {first, std::min(records, first + each) - first};
    is_out_[d] = parts_[d].count == 0;
  }
}

void Division::set_done(std::vector<RecordRange> done) {
  done_ = std::move(done);
  for (std::size_t d = 0; d < parts_.size(); ++d) {
    skip_done(parts_[d]);
    if (window_ == 0) is_out_[d] = parts_[d].count == 0;
  }
}

/// Returns the first range of done records that ends behind a record, or null.
const RecordRange* Division::done_from(std::uint64_t record) const noexcept {
  const auto found = std::ranges::upper_bound(done_, record, {}, &RecordRange::end);
  return found != done_.end() ? &*found : nullptr;
}

/// Moves the beginning of a part to its first record that is not done.
void Division::skip_done(RecordRange& part) const noexcept {
  const RecordRange* const done = done_from(part.first);
  if (!done || done->first > part.first) return;
  const std::uint64_t skipped = std::min(done->end() - part.first, part.count);
  part = {part.first + skipped, part.count - skipped};
}

void Division::set_in_order(std::uint64_t window) {
  window_ = window;
  for (RecordRange& part : parts_)
    if (&part != &parts_[0]) parts_[0].count += std::exchange(part.count, 0);
}

std::uint64_t Division::batches(std::size_t device) const noexcept {
  return parts_[device].count / batch_ + (parts_[device].count % batch_ != 0 ? 1 : 0);
}

bool Division::is_empty() const noexcept {
  return again_.empty() &&
         std::ranges::all_of(parts_, [](const RecordRange& part) { return part.count == 0; });
}

bool Division::are_all_out() const noexcept {
  return std::ranges::all_of(is_out_, [](bool is_out) { return is_out; });
}

std::optional<Batch> Division::take(std::size_t device, bool may_be_suspect) {
  if (auto batch = take_again(device, may_be_suspect)) return batch;
  RecordRange& part = parts_[window_ != 0 ? 0 : device];
  while (part.count == 0 && window_ == 0 && take_part(device)) {  // again, if all those records are done
  }
  if (part.count == 0 || (window_ != 0 && part.first >= next_ + window_)) return std::nullopt;
  RecordRange taken{part.first, std::min(part.count, batch_)};
  if (const RecordRange* const done = done_from(part.first))
    taken.count = std::min(taken.count, done->first - taken.first);
  part = {taken.end(), part.count - taken.count};
  skip_done(part);
  return Batch{.range = taken};
}

std::optional<Batch> Division::take_again(std::size_t device, bool may_be_suspect) {
  const bool is_last = std::ranges::count(is_out_, false) == 1;
  const auto find = [&](bool is_suspect) {
    return std::ranges::find_if(again_, [&](const Batch& batch) {
      const bool is_left_to_others = !is_last && batch.failed_on && *batch.failed_on == device;
      return batch.is_suspect == is_suspect && !is_left_to_others;
    });
  };
  auto found = may_be_suspect ? find(true) : again_.end();
  if (found == again_.end()) found = find(false);
  if (found == again_.end()) return std::nullopt;
  const Batch batch = *found;
  again_.erase(found);
  return batch;
}

/// Takes the later half of the largest part, in whole batches; all of it if its device is out. Returns
/// false if each part is empty.
bool Division::take_part(std::size_t device) {
  const auto largest = std::ranges::max_element(parts_, {}, &RecordRange::count);
  if (largest->count == 0) return false;
  const auto owner = static_cast<std::size_t>(largest - parts_.begin());
  const std::uint64_t kept = is_out_[owner] ? 0 : batches(owner) / 2 * batch_;
  parts_[device] = {largest->first + kept, largest->count - kept};
  largest->count = kept;
  skip_done(parts_[device]);
  return true;
}

std::vector<Batch> Division::take_all() {
  std::vector<Batch> all = std::exchange(again_, {});
  for (RecordRange& part : parts_)
    while (part.count != 0) {
      const RecordRange* const done = done_from(part.first);
      const RecordRange taken{part.first, done ? std::min(part.count, done->first - part.first) : part.count};
      part = {taken.end(), part.count - taken.count};
      skip_done(part);
      all.push_back({.range = taken});
    }
  return all;
}

}  // namespace wye::records
