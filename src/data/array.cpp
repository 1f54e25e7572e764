#include <wye/data/array.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/internals.hpp"
#include "base/process.hpp"
#include "base/sizes.hpp"
#include "base/text.hpp"
#include "data/array_state.hpp"
#include "device/lane.hpp"
#include "device/native.hpp"

namespace wye::inline v0 {
namespace data {
namespace {

/// The elements of a failure of an array of any size.
constexpr Interval whole{0, ~std::uint64_t{0}};

}  // namespace

std::shared_ptr<ArrayState> ArrayState::make(std::shared_ptr<pool::Pool> pool,
                                             std::span<const std::byte> values, std::uint64_t count,
                                             ElementType element, std::uint32_t size) {
  auto array = base::own(new ArrayState);
  array->pool_ = std::move(pool);
  array->count_ = count;
  array->element_ = element;
  array->size_ = size;
  const auto refuse = [&](Error error) {
    array->count_ = 0;
    array->is_charged_ = true;
    array->failures_.push_back({whole, std::move(error)});
    return array;
  };
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, std::uint64_t{size}, &bytes))
    return refuse(Error(Errc::invalid_argument,
                        base::text("Array size ({} elements of {} bytes) overflows 64 bits.", count, size)));
  // The system provides other memory at its first use.
  if (!values.empty())
    if (auto charged = array->charge_host(); !charged) return refuse(std::move(charged).error());
  // calloc does not touch pages that are new from the system. Other memory may have been freed by
  // any part of the process.
  const std::uint64_t size_or_one = std::max<std::uint64_t>(bytes, 1);
  array->owned_.reset(
      static_cast<std::byte*>(values.empty() ? std::calloc(size_or_one, 1) : std::malloc(size_or_one)));
  if (!array->owned_)
    return refuse(Error(Errc::out_of_memory,
                        base::text("The host has no memory for an array of {}.", to_string(Bytes{bytes}))));
  array->host_ = array->owned_.get();
  array->host_valid_.add(array->all());
  if (!values.empty()) std::memcpy(array->host_, values.data(), values.size());
  return array;
}

std::shared_ptr<ArrayState> ArrayState::borrow(std::shared_ptr<pool::Pool> pool, std::span<std::byte> memory,
                                               std::uint64_t count, ElementType element, std::uint32_t size) {
  auto array = base::own(new ArrayState);
  array->pool_ = std::move(pool);
  array->count_ = count;
  array->element_ = element;
  array->size_ = size;
  array->host_ = memory.data();
  array->is_charged_ = true;
  array->host_valid_.add(array->all());
  return array;
}

std::shared_ptr<ArrayState> ArrayState::over(std::shared_ptr<pool::Pool> pool,
                                             std::shared_ptr<device::BufferBase> buffer, std::uint64_t count,
                                             ElementType element, std::uint32_t size) {
  std::shared_ptr<ArrayState> array = make(std::move(pool), {}, count, element, size);
  const device::DeviceRef device = buffer->device()->ref();
  array->replicas_[device] = {std::move(buffer), IntervalSet(array->all()), {}};
  array->host_valid_.clear();
  return array;
}

ArrayState::~ArrayState() {
  replicas_.clear();
  if (release_) release_();
}

void ArrayState::set_release(std::function<void()> release, bool read_only) {
  release_ = std::move(release);
  read_only_ = read_only;
}

Error ArrayState::read_only_error() {
  return Error(Errc::invalid_argument,
               "The array is read-only, because the owner of its memory allows no writes.");
}

Error ArrayState::beyond_error() const {
  return Error(Errc::invalid_argument,
               base::text("A slice of the array ends beyond its {} elements.", count_));
}

void ArrayState::follow(Access access, Interval elements, const std::shared_ptr<Completion>& user,
                        Predecessors& before, std::size_t pieces) {
  // Users of no elements are ordered as if they used the first one there.
  const Interval used{elements.first, std::max(elements.last, elements.first + 1)};
  const base::Lock lock(mutex_);
  std::erase_if(users_, [](const User& other) { return other.completion->is_complete(); });
  before.reserve(users_.size());
  users_.push_back({used, writes(access), user, pieces});
  try {
    reserve(users_);
  } catch (...) {
    users_.pop_back();
    throw;
  }
  // Nothing fails from here on.
  for (const User& other : users_)
    if ((writes(access) || other.writes) && other.elements.overlaps(used) && other.completion != user)
      before.add(other.completion);
  if (writes(access))  // followers of this user follow those
    std::erase_if(
        users_, [&](const User& other) { return used.contains(other.elements) && other.completion != user; });
}

void ArrayState::reserve(std::span<const User> users) {
  // A user of some elements leaves at most one interval more, and one while it works; one of all
  // elements at most one in all.
  const bool is_partial = std::any_of(users.begin(), users.end(), [&](const User& user) {
    return user.pieces > 1 || !user.elements.contains(all());
  });
  std::size_t pieces = 0;
  for (const User& user : users) pieces += user.pieces;
  const std::size_t more = is_partial ? 2 * pieces : 1;
  host_valid_.reserve(host_valid_.size() + more);
  failures_.reserve(failures_.size() + more);
  for (auto& [device, replica] : replicas_) {
    std::size_t again = 0;  // intervals that a failed copy brings back
    for (const Fill& fill : replica.fills) again += fill.elements.size();
    replica.valid.reserve(replica.valid.size() + again + more);
    replica.fills.reserve(replica.fills.size() + 2 * users.size());  // a copy, and a kernel
  }
}

const Error* ArrayState::failure_of(const IntervalSet& elements) const noexcept {
  for (const Failure& failure : failures_)
    if (elements.empty() || elements.overlaps(failure.elements)) return &failure.error;
  return nullptr;
}

std::optional<Error> ArrayState::failure(const IntervalSet& elements) const {
  const base::Lock lock(mutex_);
  const Error* const error = failure_of(elements);
  return error ? std::optional(*error) : std::nullopt;
}

void ArrayState::fail(const Error& error, const IntervalSet& elements) noexcept {
  const base::Lock lock(mutex_);
  if (abandoned_) return;
  clear_failures(elements);
  if (elements.contains(all())) {
    failures_.push_back({whole, error});
    return;
  }
  for (const Interval& one : elements) failures_.push_back({one, error});
}

void ArrayState::clear_failures(const IntervalSet& elements) noexcept {
  if (elements.contains(all())) return failures_.clear();
  for (const Interval& one : elements) {
    for (std::size_t i = failures_.size(); i-- > 0;) {
      const Interval failed = failures_[i].elements;
      if (!failed.overlaps(one)) continue;
      const Interval before{failed.first, one.first}, after{one.last, failed.last};
      if (!before.empty() && !after.empty()) failures_.push_back({after, failures_[i].error});
      failures_[i].elements = before.empty() ? after : before;
      if (!failures_[i].elements.empty()) continue;
      std::swap(failures_[i], failures_.back());
      failures_.truncate(failures_.size() - 1);
    }
  }
}

void ArrayState::abandon(const Error& error, Access access) noexcept {
  const base::Lock lock(mutex_);
  if (!abandoned_) abandoned_ = error;
  if (writes(access) && failures_.empty()) failures_.push_back({whole, error});
  copied_.wake_all();  // the user may be in the middle of a copy
}

std::optional<Error> ArrayState::abandoned() const {
  const base::Lock lock(mutex_);
  return abandoned_;
}

IntervalSet ArrayState::missing_on_host(const IntervalSet& elements) const {
  const base::Lock lock(mutex_);
  return elements.without(host_valid_);
}

std::vector<device::TimelinePoint> ArrayState::fills_of(const Replica& replica, const IntervalSet& elements) {
  std::vector<device::TimelinePoint> points;
  for (const Fill& fill : replica.fills)
    if (fill.elements.overlaps(elements) && fill.point.timeline->reached() < fill.point.value)
      points.push_back(fill.point);
  return points;
}

Result<void> ArrayState::charge_host(device::MemoryCharge* reserved) {
  if (is_charged_) return {};
  device::MemoryCharge charge;
  if (reserved && bytes() <= reserved->bytes()) {
    charge = reserved->split(bytes());
  } else if (const auto host = pool_->accounts().host_device()) {
    const pool::WorkingSet set{.own = {}, .replicas = bytes()};
    if (const auto limit = pool_->accounts().limit_of(*host, nullptr, set)) {
      const base::Sizes size(limit->needed, limit->limit);
      return Error(limit->code, base::text("An array needs {} on '{}'; the {} is {}.", size(limit->needed),
                                           pool_->fleet().info(*host).id, limit->of, size(limit->limit)));
    }
    pool::Reservation made;
    if (auto ok = pool_->accounts().reserve(*host, nullptr, set, pool_->clock().now(), made); !ok) return ok;
    charge = made.replicas.split(bytes());
  }
  const base::Lock lock(mutex_);
  if (!is_charged_) host_charge_ = std::move(charge);
  is_charged_ = true;
  return {};
}

Result<std::byte*> ArrayState::on_host(const IntervalSet& elements, Instant until) {
  if (!is_charged_ && !failure(elements))
    if (auto charged = charge_host(); !charged) return std::move(charged).error();
  for (;;) {
    IntervalSet wanted;
    std::shared_ptr<device::BufferBase> from;
    std::vector<device::TimelinePoint> fills;
    {
      base::Lock lock(mutex_);
      // Several readers may have the array at the same time; one of them fetches.
      if (!copied_.wait(lock, until, [&] { return !fetching_ || abandoned_; }))
        return Error(Errc::timed_out,
                     "The transfer of the array to the host did not complete before the deadline.");
      if (fetching_)
        return abandoned_->with_context("while reading an array that the abandoned job was copying");
      if (const Error* const failure = failure_of(elements))
        return failure->with_context("while reading an array that the failed job should have written");
      const IntervalSet missing = elements.without(host_valid_);
      if (missing.empty()) return host_;
      for (const auto& [device, replica] : replicas_) {
        wanted = missing.common(replica.valid);
        if (wanted.empty()) continue;
        from = replica.buffer;
        fills = fills_of(replica, wanted);
        break;
      }
      if (!from) return Error(Errc::internal, "An array has no valid copy and no failure.");
      host_valid_.reserve(host_valid_.size() + wanted.size());
      fetching_ = true;
    }
    auto done = fetch(from, wanted, fills, until);
    const base::Lock lock(mutex_);
    fetching_ = false;
    copied_.wake_all();
    if (!done) return std::move(done).error();
    host_valid_.add(wanted);
  }
}

Result<void> ArrayState::fetch(const std::shared_ptr<device::BufferBase>& from, const IntervalSet& elements,
                               const std::vector<device::TimelinePoint>& fills, Instant until) {
  auto lease = pool_->leases().lease_for(*from->device(), until);
  if (!lease) return std::move(lease).error();
  device::Lane& lane = base::state_of(*lease)->lane();
  for (const device::TimelinePoint& fill : fills) lane.wait_for(fill);
  for (const Interval& one : elements)
    lane.download({from, offset_of(one), bytes_of(one)},
                  std::span(host_ + offset_of(one).count, bytes_of(one).count));
  return lane.wait(until);
}

void ArrayState::drop_reached(Replica& replica, std::vector<Fill>& ended) {
  for (std::size_t i = replica.fills.size(); i-- > 0;) {
    if (replica.fills[i].point.timeline->reached() < replica.fills[i].point.value) continue;
    ended.push_back(std::move(replica.fills[i]));
    replica.fills.erase(replica.fills.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

Result<ArrayState::Placed> ArrayState::on_device(device::DeviceBase& device, const IntervalSet& elements,
                                                 Room room, device::MemoryCharge* reserved) {
  {
    std::vector<Fill> ended;
    const base::Lock lock(mutex_);
    if (auto found = replicas_.find(device.ref()); found != replicas_.end() && found->second.buffer) {
      Replica& replica = found->second;
      replica.last_use = device.next_use();
      drop_reached(replica, ended);
      return Placed{replica.buffer, elements.without(replica.valid), fills_of(replica, elements)};
    }
  }
  const device::BufferRequest request{.bytes = bytes(),
                                      .use = device::MemoryUse::device,
                                      .account = pool_->accounts().of(device),
                                      .reserved = reserved};
  auto buffer = room == Room::make ? device.allocate(request) : device.create_buffer(request);
  if (!buffer) return std::move(buffer).error();
  bool is_new = false;
  Placed placed;
  {
    const base::Lock lock(mutex_);
    const auto [place, added] = replicas_.try_emplace(device.ref());
    Replica& replica = place->second;
    if (!replica.buffer) replica.buffer = *std::move(buffer);
    replica.last_use = device.next_use();
    is_new = added;
    reserve(users_);
    placed = {replica.buffer, elements.without(replica.valid), fills_of(replica, elements)};
  }
  if (is_new) device.add_reclaimable(weak_from_this());
  pool_->accounts().note_pressure(device);
  return placed;
}

bool ArrayState::is_valid_on(device::DeviceBase& device, Interval elements) noexcept {
  const base::Lock lock(mutex_);
  const auto found = replicas_.find(device.ref());
  if (found == replicas_.end()) return false;
  found->second.last_use = device.next_use();
  return found->second.buffer && found->second.valid.contains(elements);
}

std::shared_ptr<device::BufferBase> ArrayState::replica_on(device::DeviceBase& device) noexcept {
  const base::Lock lock(mutex_);
  const auto found = replicas_.find(device.ref());
  if (found == replicas_.end()) return nullptr;
  found->second.last_use = device.next_use();
  return found->second.buffer;
}

void ArrayState::begin_write() noexcept {
  const base::Lock lock(mutex_);
  ++writing_;
}

void ArrayState::end_write() noexcept {
  const base::Lock lock(mutex_);
  --writing_;
}

std::uint64_t ArrayState::last_use(const device::DeviceBase& device) const noexcept {
  const base::Lock lock(mutex_);
  const auto found = replicas_.find(device.ref());
  return found == replicas_.end() ? 0 : found->second.last_use;
}

bool ArrayState::has_replica_on(const device::DeviceBase& device) const noexcept {
  if (device.info().features.has(Feature::host_memory)) return is_charged_;
  const base::Lock lock(mutex_);
  const auto found = replicas_.find(device.ref());
  return found != replicas_.end() && found->second.buffer;
}

Bytes ArrayState::reclaim(const device::DeviceBase& device, Bytes) {
  std::shared_ptr<device::BufferBase> freed;  // destroyed after the lock, because a driver frees it
  std::vector<Fill> ended;
  const base::Lock lock(mutex_);
  const auto found = replicas_.find(device.ref());
  if (found == replicas_.end()) return {};
  Replica& replica = found->second;
  if (!is_idle(replica, ended) || !only_on(device.ref(), replica.valid).empty()) return {};
  replica.valid.clear();
  freed = std::move(replica.buffer);
  pool_->accounts().note_eviction(device, bytes());
  return bytes();
}

bool ArrayState::is_idle(Replica& replica, std::vector<Fill>& ended) const {
  if (fetching_ || writing_ > 0 || abandoned_) return false;
  drop_reached(replica, ended);
  // A buffer with other holders, such as a job or a recording in flight, would not be freed now.
  return !replica.filling && replica.fills.empty() && replica.buffer.use_count() == 1;
}

void ArrayState::move_buffers(device::DeviceBase& device) noexcept try {
  constexpr Duration limit = std::chrono::seconds(1);
  std::shared_ptr<device::BufferBase> from;  // destroyed after the lock, because a driver frees it
  IntervalSet valid;
  std::uint64_t use = 0;
  {
    std::vector<Fill> ended;
    const base::Lock lock(mutex_);
    const auto found = replicas_.find(device.ref());
    if (found == replicas_.end() || !is_idle(found->second, ended)) return;
    if (!found->second.buffer->is_to_move()) return;
    from = found->second.buffer;
    valid = found->second.valid;
    use = found->second.last_use;
  }
  auto lease = pool_->leases().lease_copies(device.ref());
  if (!lease) return;
  auto to = device.create_buffer({.bytes = bytes(),
                                  .use = device::MemoryUse::device,
                                  .account = pool_->accounts().of(device),
                                  .only_spare = true,
                                  .is_overwritten = valid.contains(all())});
  if (!to) return;
  device::Lane& lane = base::state_of(*lease)->lane();
  for (const Interval& one : valid)
    lane.copy({from, offset_of(one), bytes_of(one)}, {*to, offset_of(one), bytes_of(one)});
  if (!lane.wait(Clock::steady().now() + limit)) return;
  lease.reset();  // a lane may keep the buffers of its last submission
  // A user since then has changed the number of the last use: its changes are not in the copy.
  std::vector<Fill> ended;
  const base::Lock lock(mutex_);
  Replica& replica = replicas_.find(device.ref())->second;
  if (replica.buffer != from || replica.last_use != use) return;
  from.reset();
  if (is_idle(replica, ended)) from = std::exchange(replica.buffer, *std::move(to));
} catch (const std::bad_alloc&) {  // it stays
}

std::shared_ptr<device::BufferBase> ArrayState::source_for(device::DeviceBase& device,
                                                           const IntervalSet& elements) const {
  std::vector<std::shared_ptr<device::BufferBase>> valid;
  {
    const base::Lock lock(mutex_);
    for (const auto& [at, replica] : replicas_)  // a device cannot wait for a copy in flight on another one
      if (at != device.ref() && replica.buffer && replica.valid.contains(elements) &&
          fills_of(replica, elements).empty())
        valid.push_back(replica.buffer);
  }
  for (std::shared_ptr<device::BufferBase>& buffer : valid)
    if (device::reaches(device, *buffer->device())) return std::move(buffer);
  return nullptr;
}

Result<std::shared_ptr<device::BufferBase>> ArrayState::transfer_to(device::DeviceBase& device,
                                                                    const IntervalSet& elements,
                                                                    Instant until) {
  auto placed = on_device(device, elements);
  if (!placed) return std::move(placed).error();
  if (!placed->missing.empty()) {
    std::shared_ptr<device::BufferBase> source;
    if (!failure(elements)) source = source_for(device, placed->missing);
    if (!source)
      if (auto bytes = on_host(placed->missing, until); !bytes) return std::move(bytes).error();
    auto mine = begin_fill(device, elements, placed->missing, until);
    if (!mine) return std::move(mine).error();
    if (!mine->empty()) {
      Result<void> done;
      if (auto lease = pool_->leases().lease_for(device, until)) {
        device::Lane& lane = base::state_of(*lease)->lane();
        for (const device::TimelinePoint& fill : placed->fills) lane.wait_for(fill);
        for (const Interval& one : *mine)
          if (source)
            lane.copy({source, offset_of(one), bytes_of(one)},
                      {placed->buffer, offset_of(one), bytes_of(one)});
          else
            lane.upload(std::span(host_ + offset_of(one).count, bytes_of(one).count),
                        {placed->buffer, offset_of(one), bytes_of(one)});
        done = lane.wait(until);
      } else {
        done = std::move(lease).error();
      }
      end_fill(device, *mine, done.has_value());
      if (!done) return std::move(done).error();
    }
    placed = on_device(device, elements);  // other readers may have filled some of them
    if (!placed) return std::move(placed).error();
  }
  for (const device::TimelinePoint& fill : placed->fills)
    if (auto ok = fill.timeline->wait(fill.value, until); !ok) return std::move(ok).error();
  return std::move(placed->buffer);
}

Result<IntervalSet> ArrayState::begin_fill(const device::DeviceBase& device, const IntervalSet& elements,
                                           const IntervalSet& ready, Instant until) {
  base::Lock lock(mutex_);
  Replica& replica = replicas_.find(device.ref())->second;
  if (!copied_.wait(lock, until, [&] { return !replica.filling || abandoned_; }))
    return Error(Errc::timed_out,
                 base::text("The transfer of the array to '{}' did not complete before the deadline.",
                            device.info().id));
  IntervalSet missing = elements.without(replica.valid);
  if (missing.empty()) return missing;
  if (replica.filling)
    return abandoned_->with_context("while using an array that the abandoned job was copying");
  if (!ready.contains(missing))
    return Error(Errc::unavailable,
                 base::text("An array's copy to '{}' by another job has failed.", device.info().id));
  replica.valid.reserve(replica.valid.size() + missing.size());
  replica.fills.reserve(replica.fills.size() + 1);
  replica.filling = true;
  return missing;
}

void ArrayState::end_fill(const device::DeviceBase& device, const IntervalSet& elements, bool valid,
                          device::TimelinePoint filled) noexcept {
  const base::Lock lock(mutex_);
  Replica& replica = replicas_.find(device.ref())->second;
  replica.filling = false;
  if (valid) replica.valid.add(elements);
  if (filled.timeline) replica.fills.push_back({elements, std::move(filled)});
  copied_.wake_all();
}

void ArrayState::settle_fill(const device::DeviceBase& device, const IntervalSet& elements, bool valid,
                             const device::TimelinePoint& filled) noexcept {
  Fill ended;  // destroyed after the lock: a driver frees it
  const base::Lock lock(mutex_);
  Replica& replica = replicas_.find(device.ref())->second;
  const auto found = std::find_if(replica.fills.begin(), replica.fills.end(), [&](const Fill& fill) {
    return fill.point.timeline == filled.timeline && fill.point.value == filled.value;
  });
  // A copy that is still in flight, of a job that ran out of time, delays later users.
  if (found != replica.fills.end() && filled.timeline->reached() >= filled.value) {
    ended = std::move(*found);
    replica.fills.erase(found);
  }
  if (!valid) replica.valid.remove(elements);
  copied_.wake_all();
}

void ArrayState::note_in_flight(const device::DeviceBase& device, IntervalSet elements,
                                device::TimelinePoint end) noexcept {
  const base::Lock lock(mutex_);
  const auto found = replicas_.find(device.ref());
  if (found != replicas_.end()) found->second.fills.push_back({std::move(elements), std::move(end)});
}

void ArrayState::mark_written_on(const device::DeviceBase* device, const IntervalSet& elements) noexcept {
  const base::Lock lock(mutex_);
  if (abandoned_) return;  // an abandoned job has completed; its followers have its error already
  const auto mark = [&](IntervalSet& valid, bool written) {
    if (written)
      valid.add(elements);
    else
      valid.remove(elements);
  };
  mark(host_valid_, device == nullptr);
  for (auto& [at, replica] : replicas_) mark(replica.valid, device && at == device->ref());
  clear_failures(elements);
}

void ArrayState::invalidate_on(const device::DeviceBase* device, const IntervalSet& elements) noexcept {
  const base::Lock lock(mutex_);
  if (!device)
    host_valid_.remove(elements);
  else if (auto found = replicas_.find(device->ref()); found != replicas_.end())
    found->second.valid.remove(elements);
}

bool ArrayState::valid_elsewhere(const device::DeviceBase* device, const IntervalSet& elements) const {
  const base::Lock lock(mutex_);
  return only_on(device ? std::optional(device->ref()) : std::nullopt, elements).empty();
}

IntervalSet ArrayState::only_on(std::optional<device::DeviceRef> device, const IntervalSet& elements) const {
  IntervalSet only = elements;
  if (device) only.remove(host_valid_);
  for (const auto& [at, replica] : replicas_)
    if (at != device) only.remove(replica.valid);
  return only;
}

Result<void> HostAccess::wait(Instant until) {
  if (!state_->before.wait(until))
    return Error(Errc::timed_out, "Jobs that use the array did not complete before the deadline.");
  state_->before.clear();
  return {};
}

namespace {

/// Gives the host access to elements of an array, once the users before it are complete.
Result<View> access(const std::shared_ptr<ArrayState>& array, Interval elements, Access mode,
                    Deadline deadline) {
  if (writes(mode) && array->is_read_only()) return ArrayState::read_only_error();
  const Clock& clock = array->pool()->clock();
  const Instant until = base::parked_until(clock, deadline.at(clock));
  auto holder = base::make_own<HostAccess>(array, mode, elements);
  if (auto waited = holder->wait(until); !waited) return std::move(waited).error();
  if (writes(mode))
    if (auto error = array->abandoned())
      return error->with_context("while writing an array that the abandoned job may still use");
  const IntervalSet part(elements);
  if (writes(mode))
    if (auto charged = array->charge_host(); !charged) return std::move(charged).error();
  // The host overwrites the contents of a failed array.
  if (writes(mode) && array->failure(part)) array->mark_written_on(nullptr, part);
  auto bytes = array->on_host(part, until);
  if (!bytes) return std::move(bytes).error();
  if (writes(mode)) array->mark_written_on(nullptr, part);
  return View{std::move(holder), *bytes + array->offset_of(elements).count, elements.last - elements.first};
}

Result<View> checked_access(const std::shared_ptr<ArrayState>& array, std::uint64_t first,
                            std::uint64_t count, Access mode, Deadline deadline) {
  if (!array) return Error(Errc::invalid_argument, "The array handle is empty.");
  if (const Error* inherited = array->pool()->origin().error()) return *inherited;
  if (count == AnyArray::beyond) return array->beyond_error();
  try {
    return access(array, {first, first + count}, mode, deadline);
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory to read an array.");
  }
}

}  // namespace
}  // namespace data

AnyArray::AnyArray(std::shared_ptr<data::ArrayState> state)
    : state_(std::move(state)), count_(state_ ? state_->count() : 0) {}

void AnyArray::narrow(std::uint64_t first, std::uint64_t count) noexcept {
  if (count_ == beyond) return;
  if (first > count_ || count > count_ - first) {
    count_ = beyond;
    return;
  }
  first_ += first;
  count_ = count;
}

Operand AnyArray::operand(Access access) const {
  Operand operand;
  operand.kind = Operand::Kind::array;
  operand.access = access;
  if (state_) {
    operand.element = state_->element();
    operand.size = state_->element_size();
    operand.offset = first_;
    operand.count = count_;
    operand.object = state_;
  }
  return operand;
}

Result<data::View> AnyArray::read_bytes(Deadline deadline) const {
  return data::checked_access(state_, first_, count_, Access::read, deadline);
}

Result<data::View> AnyArray::write_bytes(Deadline deadline) {
  return data::checked_access(state_, first_, count_, Access::read_write, deadline);
}

}  // namespace wye
