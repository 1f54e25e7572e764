#include <wye/data/array.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/internals.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "data/array_state.hpp"
#include "device/lane.hpp"
#include "device/native.hpp"

namespace wye {
inline namespace v0 {
namespace data {

std::shared_ptr<ArrayState> ArrayState::make(std::shared_ptr<pool::Pool> pool,
                                             std::span<const std::byte> values, std::uint64_t count,
                                             ElementType element, std::uint32_t size) {
  auto array = base::own(new ArrayState);
  array->pool_ = std::move(pool);
  array->count_ = count;
  array->element_ = element;
  array->size_ = size;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, std::uint64_t{size}, &bytes)) {
    array->count_ = 0;
    array->failure_ =
        Error(Errc::invalid_argument,
              base::text("Array size ({} elements of {} bytes) overflows 64 bits.", count, size));
    return array;
  }
  array->owned_.reset(new (std::nothrow) std::byte[std::max<std::uint64_t>(bytes, 1)]);
  if (!array->owned_) {
    array->count_ = 0;
    array->failure_ = Error(Errc::out_of_memory, base::text("The host has no memory for an array of {}.",
                                                            to_string(Bytes{bytes})));
    return array;
  }
  array->host_ = array->owned_.get();
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
  return array;
}

std::shared_ptr<ArrayState> ArrayState::over(std::shared_ptr<pool::Pool> pool,
                                             std::shared_ptr<device::BufferBase> buffer, std::uint64_t count,
                                             ElementType element, std::uint32_t size) {
  std::shared_ptr<ArrayState> array = make(std::move(pool), {}, count, element, size);
  const device::DeviceRef device = buffer->device()->ref();
  array->replicas_.emplace(device, Replica{std::move(buffer), true});
  array->host_valid_ = false;
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

void ArrayState::follow(Access access, const std::shared_ptr<Completion>& user, Predecessors& before) {
  const base::Lock lock(mutex_);
  std::erase_if(readers_, [](const auto& reader) { return reader->is_complete(); });
  before.reserve(1 + (writes(access) ? readers_.size() : 0));
  if (!writes(access)) readers_.push_back(user);
  // Nothing fails from here on.
  if (writer_ && !writer_->is_complete()) before.add(writer_);
  if (!writes(access)) return;
  for (auto& reader : readers_) before.add(std::move(reader));
  readers_.clear();
  writer_ = user;
}

std::optional<Error> ArrayState::failure() const {
  const base::Lock lock(mutex_);
  return failure_;
}

void ArrayState::fail(Error error) {
  const base::Lock lock(mutex_);
  if (!abandoned_) failure_ = std::move(error);
}

void ArrayState::abandon(const Error& error, Access access) noexcept {
  const base::Lock lock(mutex_);
  if (!abandoned_) abandoned_ = error;
  if (writes(access) && !failure_) failure_ = error;
  copied_.wake_all();  // the user may be in the middle of a copy
}

std::optional<Error> ArrayState::abandoned() const {
  const base::Lock lock(mutex_);
  return abandoned_;
}

bool ArrayState::valid_on_host() const {
  const base::Lock lock(mutex_);
  return host_valid_;
}

Result<std::byte*> ArrayState::on_host(Instant until) {
  Replica from;
  {
    base::Lock lock(mutex_);
    // Several readers may have the array at the same time; one of them fetches.
    if (!copied_.wait(lock, until, [&] { return !fetching_ || abandoned_; }))
      return Error(Errc::timed_out,
                   "The transfer of the array to the host did not complete before the deadline.");
    if (fetching_)
      return abandoned_->with_context("while reading an array that the abandoned job was copying");
    if (failure_)
      return failure_->with_context("while reading an array that the failed job should have written");
    if (host_valid_) return host_;
    for (const auto& [device, replica] : replicas_)
      if (replica.valid) from = replica;
    if (!from.valid) return Error(Errc::internal, "An array has no valid copy and no failure.");
    fetching_ = true;
  }
  auto done = fetch(from, until);
  const base::Lock lock(mutex_);
  fetching_ = false;
  copied_.wake_all();
  if (!done) return std::move(done).error();
  host_valid_ = true;
  return host_;
}

Result<void> ArrayState::fetch(const Replica& from, Instant until) {
  auto lease = pool_->lease_for(*from.buffer->device(), until);
  if (!lease) return std::move(lease).error();
  device::Lane& lane = base::state_of(*lease)->lane();
  if (!from.is_filled()) lane.wait_for(from.filled);
  lane.download({from.buffer, Bytes{0}, bytes()}, std::span(host_, bytes().count));
  return lane.wait(until);
}

Result<ArrayState::Replica> ArrayState::on_device(device::DeviceBase& device) {
  {
    const base::Lock lock(mutex_);
    if (auto found = replicas_.find(device.ref()); found != replicas_.end() && found->second.buffer)
      return found->second;
  }
  auto buffer = device.allocate(
      {.bytes = bytes(), .use = device::MemoryUse::device, .account = pool_->account_on(device)});
  if (!buffer) return std::move(buffer).error();
  bool is_new = false;
  Replica replica;
  {
    const base::Lock lock(mutex_);
    const auto [place, added] = replicas_.try_emplace(device.ref());
    if (!place->second.buffer) place->second.buffer = *std::move(buffer);
    is_new = added;
    replica = place->second;
  }
  if (is_new) device.add_reclaimable(weak_from_this());
  return replica;
}

Result<std::shared_ptr<device::BufferBase>> ArrayState::await(const Replica& replica, Instant until) {
  if (!replica.is_filled())
    if (auto ok = replica.filled.timeline->wait(replica.filled.value, until); !ok)
      return std::move(ok).error();
  return replica.buffer;
}

bool ArrayState::is_in_use() const {
  return fetching_ || abandoned_ || (writer_ && !writer_->is_complete()) ||
         std::any_of(readers_.begin(), readers_.end(),
                     [](const auto& reader) { return !reader->is_complete(); });
}

Bytes ArrayState::reclaim(const device::DeviceBase& device, Bytes) {
  std::shared_ptr<device::BufferBase> freed;  // destroyed after the lock, because a driver frees it
  const base::Lock lock(mutex_);
  const auto found = replicas_.find(device.ref());
  if (found == replicas_.end() || is_in_use()) return {};
  Replica& replica = found->second;
  // A buffer with other holders, such as a recording in flight, would not be freed now.
  if (replica.buffer.use_count() != 1 || (replica.valid && !is_valid_elsewhere(device.ref()))) return {};
  replica.valid = false;
  freed = std::move(replica.buffer);
  return bytes();
}

std::shared_ptr<device::BufferBase> ArrayState::source_for(device::DeviceBase& device) const {
  std::vector<Replica> valid;
  {
    const base::Lock lock(mutex_);
    for (const auto& [at, replica] : replicas_)
      if (at != device.ref() && replica.valid) valid.push_back(replica);
  }
  for (Replica& replica : valid)  // a device cannot wait for a copy in flight on another one
    if (replica.is_filled() && device::reaches(device, *replica.buffer->device()))
      return std::move(replica.buffer);
  return nullptr;
}

Result<std::shared_ptr<device::BufferBase>> ArrayState::transfer_to(device::DeviceBase& device,
                                                                    Instant until) {
  auto replica = on_device(device);
  if (!replica) return std::move(replica).error();
  if (replica->valid) return await(*replica, until);
  const std::shared_ptr<device::BufferBase> source = failure() ? nullptr : source_for(device);
  if (!source)
    if (auto bytes = on_host(until); !bytes) return std::move(bytes).error();
  auto mine = begin_fill(device, until);
  if (!mine) return std::move(mine).error();
  if (!*mine) {  // another reader has filled it meanwhile
    replica = on_device(device);
    if (!replica) return std::move(replica).error();
    return await(*replica, until);
  }
  Result<void> done;
  if (auto lease = pool_->lease_for(device, until)) {
    device::Lane& lane = base::state_of(*lease)->lane();
    if (source)
      lane.copy({source, Bytes{0}, bytes()}, {replica->buffer, Bytes{0}, bytes()});
    else
      lane.upload(std::span(host_, bytes().count), {replica->buffer, Bytes{0}, bytes()});
    done = lane.wait(until);
  } else {
    done = std::move(lease).error();
  }
  end_fill(device, done.has_value());
  if (!done) return std::move(done).error();
  return replica->buffer;
}

Result<bool> ArrayState::begin_fill(const device::DeviceBase& device, Instant until) {
  base::Lock lock(mutex_);
  Replica& replica = replicas_.find(device.ref())->second;
  if (!copied_.wait(lock, until, [&] { return !replica.filling || abandoned_; }))
    return Error(Errc::timed_out,
                 base::text("The transfer of the array to '{}' did not complete before the deadline.",
                            device.info().id));
  if (replica.valid) return false;
  if (replica.filling)
    return abandoned_->with_context("while using an array that the abandoned job was copying");
  return replica.filling = true;
}

void ArrayState::end_fill(const device::DeviceBase& device, bool valid,
                          device::TimelinePoint filled) noexcept {
  device::TimelinePoint ended;  // ends after the lock: a driver frees it
  const base::Lock lock(mutex_);
  Replica& replica = replicas_.find(device.ref())->second;
  replica.filling = false;
  replica.valid = valid;
  ended = std::exchange(replica.filled, std::move(filled));
  copied_.wake_all();
}

void ArrayState::mark_written_on(const device::DeviceBase* device) {
  const base::Lock lock(mutex_);
  if (abandoned_) return;  // an abandoned job has completed; its followers have its error already
  host_valid_ = device == nullptr;
  for (auto& [at, replica] : replicas_) replica.valid = device && at == device->ref();
  failure_.reset();
}

void ArrayState::invalidate_on(const device::DeviceBase* device) {
  const base::Lock lock(mutex_);
  if (!device)
    host_valid_ = false;
  else if (auto found = replicas_.find(device->ref()); found != replicas_.end())
    found->second.valid = false;
}

bool ArrayState::valid_elsewhere(const device::DeviceBase* device) const {
  const base::Lock lock(mutex_);
  return is_valid_elsewhere(device ? std::optional(device->ref()) : std::nullopt);
}

bool ArrayState::is_valid_elsewhere(std::optional<device::DeviceRef> device) const {
  if (device && host_valid_) return true;
  return std::any_of(replicas_.begin(), replicas_.end(),
                     [&](const auto& entry) { return entry.first != device && entry.second.valid; });
}

Result<void> HostAccess::wait(Instant until) {
  if (!state_->before.wait(until))
    return Error(Errc::timed_out, "Jobs that use the array did not complete before the deadline.");
  state_->before.clear();
  return {};
}

namespace {

/// Gives the host access to an array, once the users before it are complete.
Result<View> access(const std::shared_ptr<ArrayState>& array, Access mode, Deadline deadline) {
  if (writes(mode) && array->is_read_only()) return ArrayState::read_only_error();
  const Clock& clock = array->pool()->clock();
  const Instant until = base::parked_until(clock, deadline.at(clock));
  auto holder = base::make_own<HostAccess>(array, mode);
  if (auto waited = holder->wait(until); !waited) return std::move(waited).error();
  if (writes(mode))
    if (auto error = array->abandoned())
      return error->with_context("while writing an array that the abandoned job may still use");
  // The host overwrites the contents of a failed array.
  if (writes(mode) && array->failure()) array->mark_written_on(nullptr);
  auto bytes = array->on_host(until);
  if (!bytes) return std::move(bytes).error();
  if (writes(mode)) array->mark_written_on(nullptr);
  return View{std::move(holder), *bytes, array->count()};
}

Result<View> checked_access(const std::shared_ptr<ArrayState>& array, Access mode, Deadline deadline) {
  if (!array) return Error(Errc::invalid_argument, "The array handle is empty.");
  if (const Error* inherited = array->pool()->origin().error()) return *inherited;
  try {
    return access(array, mode, deadline);
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory to read an array.");
  }
}

}  // namespace
}  // namespace data

std::uint64_t AnyArray::size() const noexcept { return state_ ? state_->count() : 0; }

Operand AnyArray::operand(Access access) const {
  Operand operand;
  operand.kind = Operand::Kind::array;
  operand.access = access;
  if (state_) {
    operand.element = state_->element();
    operand.size = state_->element_size();
    operand.count = state_->count();
    operand.object = state_;
  }
  return operand;
}

Result<data::View> AnyArray::read_bytes(Deadline deadline) const {
  return data::checked_access(state_, Access::read, deadline);
}

Result<data::View> AnyArray::write_bytes(Deadline deadline) {
  return data::checked_access(state_, Access::read_write, deadline);
}

}  // namespace v0
}  // namespace wye
