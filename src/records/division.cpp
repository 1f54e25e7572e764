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
  if (part.count == 0 && window_ == 0) take_part(device);
  if (part.count == 0 || (window_ != 0 && part.first >= next_ + window_)) return std::nullopt;
  const RecordRange taken{part.first, std::min(part.count, batch_)};
  part = {taken.end(), part.count - taken.count};
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

/// Takes the later half of the largest part, in whole batches; all of it if its device is out.
void Division::take_part(std::size_t device) {
  const auto largest = std::ranges::max_element(parts_, {}, &RecordRange::count);
  if (largest->count == 0) return;
  const auto owner = static_cast<std::size_t>(largest - parts_.begin());
  const std::uint64_t kept = is_out_[owner] ? 0 : batches(owner) / 2 * batch_;
  parts_[device] = {largest->first + kept, largest->count - kept};
  largest->count = kept;
}

std::vector<Batch> Division::take_all() {
  std::vector<Batch> all = std::exchange(again_, {});
  for (RecordRange& part : parts_)
    if (part.count != 0) all.push_back({.range = std::exchange(part, {})});
  return all;
}

}  // namespace wye::records
