#include <wye/pool/context_pool.hpp>
#include <wye/pool/lease.hpp>

#include <new>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "pool/pool.hpp"

namespace wye::inline v0 {
namespace {

device::BufferRange range_of(const Buffer& buffer, Bytes offset, Bytes size) {
  return {base::state_of(buffer), offset, size};
}

/// Calls `command` with the lane of `state`. Without memory of the host the lane fails.
template <class Command>
void on_lane(pool::LeaseState& state, Command command) {
  try {
    command(state.lane());
  } catch (const std::bad_alloc&) {
    state.lane().fail(state.leases->no_memory());
  }
}

}  // namespace

void Lease::End::operator()(pool::LeaseState* state) const noexcept {
  // Another thread may lease the context, and so set `leases`, as soon as it is returned.
  const std::shared_ptr<pool::Leases> leases = std::move(state->leases);
  leases->give_back(*state->context);
}

Lease::Lease(Lease&& other) noexcept = default;
Lease& Lease::operator=(Lease&& other) noexcept = default;
Lease::~Lease() = default;

const Device& Lease::device() const { return state_->device(); }
const std::string& Lease::id() const { return state_->context->id; }
Id Lease::lease_id() const noexcept { return state_->context->lease_id; }

Result<Buffer> Lease::allocate(std::uint64_t count, ElementType element, std::uint32_t element_size) {
  auto buffer =
      base::allocate(device(), count, element, element_size, state_->context->account, state_->context->tag);
  state_->leases->accounts().note_pressure(state_->context->device);
  return buffer;
}

void Lease::upload_bytes(std::span<const std::byte> source, const Buffer& target, Bytes offset) {
  on_lane(*state_, [&](device::Lane& lane) {
    lane.upload(source, range_of(target, offset, Bytes{source.size()}));
    lane.submit();  // the caller may change the source when this returns
  });
}

void Lease::download_bytes(const Buffer& source, std::span<std::byte> target, Bytes offset) {
  on_lane(*state_,
          [&](device::Lane& lane) { lane.download(range_of(source, offset, Bytes{target.size()}), target); });
}

void Lease::copy(const Buffer& source, const Buffer& target, Bytes bytes) {
  on_lane(*state_,
          [&](device::Lane& lane) { lane.copy(range_of(source, {}, bytes), range_of(target, {}, bytes)); });
}

void Lease::fill(const Buffer& target, std::uint32_t pattern) {
  on_lane(*state_, [&](device::Lane& lane) { lane.fill(range_of(target, {}, target.bytes()), pattern); });
}

void Lease::dispatch(const Executable& executable, const Arguments& arguments) {
  dispatch(executable, arguments, device::items_of(executable, arguments));
}

void Lease::dispatch(const Executable& executable, const Arguments& arguments, Extent3 items) {
  state_->context->dispatches.fetch_add(1, std::memory_order_relaxed);
  on_lane(*state_, [&](device::Lane& lane) { lane.dispatch(base::state_of(executable), arguments, items); });
}

void Lease::submit() {
  on_lane(*state_, [](device::Lane& lane) { lane.submit(); });
}

void Lease::submit(Sequence& sequence) {
  state_->context->dispatches.fetch_add(sequence.size(), std::memory_order_relaxed);
  on_lane(*state_, [&](device::Lane& lane) { lane.submit(*base::state_of(sequence)); });
}

SyncPoint Lease::point() {
  submit();
  device::TimelinePoint point = state_->lane().submit();  // nothing is left to submit
  return SyncPoint(std::move(point.timeline), point.value);
}

void Lease::wait_for(const SyncPoint& point) {
  if (!base::state_of(point)) return;
  on_lane(*state_, [&](device::Lane& lane) {
    lane.wait_for({base::state_of(point), base::value_of(point)});
  });
}

void Lease::signal(const SyncPoint& point) {
  on_lane(*state_, [&](device::Lane& lane) { lane.signal({base::state_of(point), base::value_of(point)}); });
}

Result<void> Lease::wait(Deadline deadline) {
  const Clock& clock = state_->leases->clock();
  const Instant until = base::parked_until(clock, deadline.at(clock));
  device::Lane& lane = state_->lane();
  try {
    return lane.wait(until);
  } catch (const std::bad_alloc&) {
    lane.fail(state_->leases->no_memory());
    (void)lane.idle(until);
    lane.discard();  // the caller may free the targets of its downloads
    return state_->leases->no_memory();
  }
}

Result<ContextPool> ContextPool::open(PoolOptions options, Headers headers) {
  if (auto ok = base::check_headers<PoolOptions>(headers); !ok) return std::move(ok).error();
  try {
    auto state = pool::Pool::open(std::move(options));
    if (!state) return std::move(state).error();
    return ContextPool(std::move(*state));
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory for a context pool.");
  }
}

const std::vector<AdapterInfo>& ContextPool::adapters() const { return state_->adapters(); }
std::vector<Device> ContextPool::devices() const { return state_->fleet().devices(); }

Result<std::vector<AdapterInfo>> ContextPool::rescan() {
  try {
    return state_->rescan();
  } catch (const std::bad_alloc&) {
    return state_->no_memory();
  }
}

Result<Lease> ContextPool::lease(const LeaseRequest& request, SourceLocation where) {
  return state_->lease(request, state_->deadline_of(request), where);
}

Result<Lease> ContextPool::try_lease(const LeaseRequest& request, SourceLocation where) {
  return state_->lease(request, Instant::min(), where);
}

std::vector<ContextInfo> ContextPool::contexts() const {
  if (state_->origin().is_inherited()) return {};
  std::vector<ContextInfo> list;
  {
    const base::Lock still = state_->freeze();
    list = state_->contexts_locked();
  }
  state_->add_reserved(list);
  return list;
}

std::vector<SiliconInfo> ContextPool::silicon() const {
  if (state_->origin().is_inherited()) return {};
  return state_->silicon();
}

Bytes ContextPool::trim(IdleMemory last) {
  if (state_->origin().is_inherited()) return {};
  try {
    return state_->trim(last);
  } catch (const std::bad_alloc&) {  // a part of it may be freed
    return {};
  }
}

Bytes ContextPool::defragment() {
  if (state_->origin().is_inherited()) return {};
  try {
    return state_->defragment();
  } catch (const std::bad_alloc&) {
    return {};
  }
}

PoolMetrics ContextPool::metrics() const {
  if (state_->origin().is_inherited()) return {};
  const base::Lock still = state_->freeze();
  return state_->metrics_locked();
}

void ContextPool::close() { state_->close(); }

Result<void> ContextPool::close(Deadline deadline) {
  return state_->close(base::parked_until(state_->clock(), deadline.at(state_->clock())));
}

}  // namespace wye
