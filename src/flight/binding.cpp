#include "flight/binding.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"

namespace wye::inline v0::flight {
namespace {

/// Returns whether parameter `i` of a call's kernel is batchable: `Kernel::Options::batchable`.
bool is_batchable(const Call& call, std::size_t i) noexcept {
  return i < 32 && (base::programs_of(call)[0]->batchable() >> i & 1) != 0;
}

/// Returns the number of the operand of a call that is a range of host memory.
std::size_t operand_of(const Call& call, const Region& region) noexcept {
  std::size_t i = 0;
  while (call.arguments()[i].kind != Operand::Kind::host || begin_of(call.arguments()[i]) != region.first ||
         call.arguments()[i].count == 0)
    ++i;
  return i;
}

/// Returns whether one launch can have both operands, each of the call of one job. Those of a
/// batchable parameter may differ.
bool fits_launch(const Operand& a, const Operand& b, bool is_batchable) noexcept {
  if (a.kind != b.kind || a.count != b.count || a.size != b.size) return false;
  if (is_batchable) return borrows_memory(a);
  if (a.kind == Operand::Kind::value) return std::ranges::equal(a.value(), b.value());
  return a.data == b.data && a.object == b.object && a.offset == b.offset && a.id == b.id;
}

}  // namespace

Binding::Binding(Calls calls, const Device& device, const Operands* operands)
    : calls_(calls), device_(device), is_in_place_(device.info().features.has(Feature::host_memory)) {
  if (operands) {
    regions_ = operands->regions;
    arrays_ = operands->arrays;
    return;
  }
  find_arrays();
  if (!is_in_place_) find_regions();
}

Binding::Operands Binding::operands() && { return {std::move(arrays_), std::move(regions_)}; }

void Binding::find_regions() {
  each_operand(calls_, [&](const Operand& operand) {
    if (!borrows_memory(operand)) return;
    regions_.push_back({.first = begin_of(operand), .last = end_of(operand)});
  });
  std::sort(regions_.begin(), regions_.end(),
            [](const Region& a, const Region& b) { return a.first < b.first; });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < regions_.size(); ++i) {
    if (regions_[i].first < regions_[kept].last)
      regions_[kept].last = std::max(regions_[kept].last, regions_[i].last);
    else
      regions_[++kept] = regions_[i];
  }
  if (!regions_.empty()) regions_.truncate(kept + 1);

  // A region is not uploaded if its first user overwrites all of it.
  for (Region& region : regions_) {
    bool first = true;
    each_operand(calls_, [&](const Operand& operand) {
      if (!borrows_memory(operand)) return;
      if (begin_of(operand) < region.first || end_of(operand) > region.last) return;
      const bool overwrites = operand.access == Access::write && begin_of(operand) == region.first &&
                              end_of(operand) == region.last;
      if (first) region.upload = !overwrites;
      first = false;
      region.download |= writes(operand.access);
    });
  }
}

void Binding::find_arrays() {
  each_operand(calls_, [&](const Operand& operand) {
    if (operand.kind != Operand::Kind::array) return;
    auto* array = static_cast<data::ArrayState*>(operand.object.get());
    Use* use = std::find_if(arrays_.begin(), arrays_.end(), [&](const Use& u) { return u.array == array; });
    if (use == arrays_.end()) use = &arrays_.emplace_back(Use{array});
    const data::IntervalSet elements(data::Interval{operand.offset, operand.offset + operand.count});
    // Contents that an operand before this one has overwritten are not needed.
    if (operand.access != Access::write) {
      const data::IntervalSet needed = elements.without(use->written);
      use->reads |= operand.count == 0 || !needed.empty();
      use->needed.add(needed);
    }
    if (writes(operand.access)) use->written.add(elements);
  });
}

/// Returns the size of the scratch buffer `id`. Its first operand may be a slice of it.
std::uint64_t Binding::scratch_bytes(std::uint64_t id) const {
  std::uint64_t bytes = 0;
  each_operand(calls_, [&](const Operand& other) {
    if (other.kind == Operand::Kind::scratch && other.id == id)
      bytes = std::max(bytes, (other.offset + other.count) * other.size);
  });
  return bytes;
}

pool::WorkingSet Binding::working_set() {
  pool::WorkingSet set;
  const auto add = [](Bytes& sum, std::uint64_t bytes) {
    if (__builtin_add_overflow(sum.count, bytes, &sum.count)) sum.count = ~std::uint64_t{0};
  };
  for (const Region& region : regions_)
    if (!region.buffer) add(set.own, region.bytes());
  each_operand(calls_, [&](const Operand& operand) {
    if (operand.kind != Operand::Kind::scratch) return;
    const bool is_first = &operand == find_operand(calls_, [&](const Operand& other) {
      return other.kind == Operand::Kind::scratch && other.id == operand.id;
    });
    if (is_first) add(set.own, scratch_bytes(operand.id));
  });
  for (Use& use : arrays_) {
    if (!is_in_place_) use.replica = use.array->replica_on(*base::state_of(device_));
    if (!use.replica && !use.array->has_replica_on(*base::state_of(device_)))
      add(set.replicas, use.array->bytes().count);
  }
  return set;
}

Result<void> Binding::fetch(Instant until, std::string_view job) {
  for (Use& use : arrays_) {  // first, because memory for one array must not be that of the next
    if (!use.written.empty() && !std::exchange(use.is_writing, true)) use.array->begin_write();
    if (!is_in_place_) use.replica = use.array->replica_on(*base::state_of(device_));
  }
  for (Use& use : arrays_) {
    if (is_in_place_)
      if (auto charged = use.array->charge_host(&reserved_.replicas); !charged)
        return std::move(charged).error();
    if (!use.reads) continue;
    if (auto failure = use.array->failure(use.needed))
      return failure->with_context(base::text("while job '{}' read an array that has failed", job));
    use.missing = use.needed;
    if (!is_in_place_) {
      auto placed = use.array->on_device(*base::state_of(device_), use.needed, data::ArrayState::Room::make,
                                         &reserved_.replicas);
      if (!placed) return std::move(placed).error();
      use.missing = std::move(placed->missing);
      use.replica = std::move(placed->buffer);
      if (use.missing.empty()) continue;
      use.source = use.array->source_for(*base::state_of(device_), use.missing);
      if (use.source) continue;
    }
    transferred_ += Bytes{use.array->missing_on_host(use.missing).count() * use.array->element_size()};
    if (auto bytes = use.array->on_host(use.missing, until); !bytes) return std::move(bytes).error();
  }
  return {};
}

bool Binding::can_share_launch(const Binding& other) const noexcept {
  const Call& call = calls_[0];
  const Call& next = other.calls_[0];
  const detail::Programs& programs = base::programs_of(call);
  if (programs.size() != 1 || base::programs_of(next).size() != 1) return false;  // variants
  if (programs[0] != base::programs_of(next)[0] || programs[0]->batchable() == 0) return false;
  if (call.items() != next.items() || call.items().z != 1) return false;
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < call.arguments().size(); ++i) {
    const Operand& operand = call.arguments()[i];
    if (!fits_launch(operand, next.arguments()[i], is_batchable(call, i))) return false;
    if (borrows_memory(operand)) ++ranges;
  }
  // Operands that overlap share a range: their places in the memory of several jobs would differ.
  return regions_.size() == ranges && other.regions_.size() == ranges;
}

void Binding::begin_launch(std::uint32_t jobs) {
  launch_ = jobs;
  for (Region& region : regions_)
    if (is_batchable(calls_[0], operand_of(calls_[0], region))) region.copies = jobs;
}

void Binding::join_launch(const Binding& first, std::uint32_t number) {
  launch_ = 0;
  for (Region& region : regions_) {
    const auto same_operand = [&](const Region& other) {
      return operand_of(calls_[0], region) == operand_of(first.calls_[0], other);
    };
    const Region& of_first = *std::find_if(first.regions_.begin(), first.regions_.end(), same_operand);
    region.buffer = of_first.buffer;
    if (of_first.copies == 1)
      region.is_set = true;  // all jobs have the same operand
    else
      region.buffer_offset = region.bytes() * number;
  }
}

void Binding::clear(device::Lane& lane, const std::shared_ptr<device::BufferBase>& buffer,
                    std::uint64_t offset, std::uint64_t bytes) {
  constexpr std::uint64_t word = 4;
  static constexpr std::byte zeros[word] = {};
  const auto copy = [&](std::uint64_t count) {
    if (count != 0) lane.upload(std::span(zeros, count), {buffer, Bytes{offset}, Bytes{count}});
    offset += count, bytes -= count;
  };
  copy(std::min(bytes, (word - offset % word) % word));
  const std::uint64_t words = bytes / word * word;
  if (words != 0) lane.fill({buffer, Bytes{offset}, Bytes{words}}, 0);
  offset += words, bytes -= words;
  copy(bytes);
}

Binding::~Binding() {
  end_fills();
  for (const Use& use : arrays_)
    if (use.is_writing) use.array->end_write();
}

/// Records the copies of `Use::filling`. Returns their bytes.
Bytes Binding::copy(device::Lane& lane, const Use& use,
                    const std::shared_ptr<device::BufferBase>& replica) const {
  Bytes sum;
  for (const data::Interval& one : use.filling) {
    const Bytes offset = use.array->offset_of(one), bytes = use.array->bytes_of(one);
    if (use.source)
      lane.copy({use.source, offset, bytes}, {replica, offset, bytes});
    else
      lane.upload({use.array->host_memory() + offset.count, bytes.count}, {replica, offset, bytes});
    sum += bytes;
  }
  return sum;
}

bool Binding::may_prefetch(const Calls& calls, const Device& device) noexcept {
  return find_operand(calls, [&](const Operand& operand) {
    return operand.kind == Operand::Kind::array && operand.access != Access::write &&
           !static_cast<data::ArrayState*>(operand.object.get())
                ->is_valid_on(*base::state_of(device), {operand.offset, operand.offset + operand.count});
  });
}

Bytes Binding::prefetch(pool::Pool& pool) {
  if (is_in_place_) return {};
  device::DeviceBase& device = *base::state_of(device_);
  std::optional<Lease> lease;
  Bytes sum;
  for (Use& use : arrays_) {
    if (use.needed.empty() || use.array->failure(use.needed)) continue;
    auto placed = use.array->on_device(device, use.needed, data::ArrayState::Room::free);
    if (!placed || placed->missing.empty()) continue;
    use.source = use.array->source_for(device, placed->missing);
    if (!use.source && !use.array->missing_on_host(placed->missing).empty()) continue;
    if (!lease && !(lease = pool.leases().lease_copies(device.ref()))) break;
    device::Lane& lane = base::state_of(*lease)->lane();
    auto mine = use.array->begin_fill(device, use.needed, placed->missing, Instant::min());
    if (!mine || mine->empty()) continue;  // another job copies it
    use.filling = *std::move(mine);        // `end_fills` if this throws
    for (const device::TimelinePoint& fill : placed->fills) lane.wait_for(fill);
    sum += copy(lane, use, placed->buffer);
    const device::TimelinePoint filled = lane.submit();
    use.array->end_fill(device, std::exchange(use.filling, {}), !lane.failure(), filled);
    if (lane.failure()) break;
  }
  return sum;
}

/// Copies arrays to the device. One job at a time does so for an array. Other readers follow the
/// submitted copy on the device: none of them waits for this job.
Result<void> Binding::fill(device::Lane& lane, Instant until) {
  const device::DeviceBase& device = *base::state_of(device_);
  std::sort(arrays_.begin(), arrays_.end(),
            [](const Use& a, const Use& b) { return std::less<>()(a.array, b.array); });
  bool fills = false;
  for (Use& use : arrays_) {
    data::IntervalSet used = use.needed;
    used.add(use.written);
    if (used.empty()) continue;
    if (!use.needed.empty()) {
      auto mine = use.array->begin_fill(device, use.needed, use.missing, until);
      if (!mine) return std::move(mine).error();
      use.filling = *std::move(mine);
      fills |= !use.filling.empty();
    }
    // A copy in flight that was made for another job must not end after this job has written its
    // elements.
    auto placed = use.array->on_device(*base::state_of(device_), used, data::ArrayState::Room::make,
                                       &reserved_.replicas);
    if (!placed) return std::move(placed).error();
    for (const device::TimelinePoint& filled : placed->fills) lane.wait_for(filled);
    transferred_ += copy(lane, use, placed->buffer);
  }
  if (!fills) return {};
  const device::TimelinePoint filled = lane.submit();
  if (const auto& failure = lane.failure()) return *failure;
  for (Use& use : arrays_) {
    if (use.filling.empty()) continue;
    use.filled = filled;
    use.array->end_fill(device, use.filling, true, filled);
  }
  return {};
}

/// Ends the fills of this job. A copy that has completed stays valid even if the job has failed.
void Binding::end_fills() noexcept {
  for (Use& use : arrays_) {
    if (use.filling.empty()) continue;
    const device::DeviceBase& device = *base::state_of(device_);
    const device::TimelinePoint filled = std::exchange(use.filled, {});
    if (filled.timeline)
      use.array->settle_fill(device, use.filling, filled.timeline->reached() >= filled.value, filled);
    else
      use.array->end_fill(device, use.filling, false);
    use.filling.clear();
  }
}

Result<void> Binding::bind(device::Lane& lane, std::shared_ptr<silicon::MemoryAccount> account,
                           std::shared_ptr<silicon::MemoryAccount> tag, Instant until) {
  if (reserved_.own.bytes() != Bytes{})
    if (auto ok = reserved_.own.narrow(account); !ok) return ok;
  struct Unused {  // is not needed after this call
    pool::Reservation& reserved;
    ~Unused() { reserved = {}; }
  } const unused{reserved_};
  if (!is_in_place_)
    if (auto filled = fill(lane, until); !filled) return filled;
  device::BufferRequest charges{.bytes = {},
                                .use = device::MemoryUse::device,
                                .account = std::move(account),
                                .tag = std::move(tag),
                                .reserved = &reserved_.own};
  if (auto ok = upload(lane, charges); !ok) return ok;
  if (has_joined() || !binds()) return {};
  return bind_calls(lane, charges);
}

/// Allocates the buffers of host memory, and records the uploads to them.
Result<void> Binding::upload(device::Lane& lane, device::BufferRequest& charges) {
  if (regions_.empty()) return {};
  device::DeviceBase& device = *base::state_of(device_);
  // An element that a kernel does not write, against its declaration, keeps the caller's value if
  // that costs as little as clearing it. It never has contents of another buffer.
  const bool keeps_values = device.has_unified_memory();
  for (Region& region : regions_) {
    if (!region.buffer) {
      charges.bytes = Bytes{region.bytes()} * region.copies;
      charges.is_overwritten = true;
      auto buffer = device.allocate(charges);
      if (!buffer) return std::move(buffer).error();
      region.buffer = std::move(*buffer);
    }
    if (region.is_set || (!region.upload && !keeps_values)) continue;
    const Bytes bytes{region.bytes()};
    lane.upload({region.first, bytes.count}, {region.buffer, Bytes{region.buffer_offset}, bytes});
    transferred_ += bytes;
  }
  for (const Region& region : regions_)  // last: large uploads are submitted in parts if they come first
    if (!region.is_set && !region.upload && !keeps_values)
      clear(lane, region.buffer, region.buffer_offset, region.bytes());
  return {};
}

/// Returns whether an argument is replaced by memory on the device.
bool Binding::binds() const noexcept {
  return find_operand(calls_, [&](const Operand& operand) {
    return operand.kind == Operand::Kind::array || operand.kind == Operand::Kind::scratch ||
           (operand.kind == Operand::Kind::host && !is_in_place_);
  });
}

/// Copies the arguments of the calls, with the memory on the device.
Result<void> Binding::bind_calls(device::Lane& lane, device::BufferRequest& charges) {
  device::DeviceBase& device = *base::state_of(device_);
  const std::span<const Region> regions(regions_.begin(), regions_.size());
  bound_.reserve(calls_.size());
  for (std::size_t c = 0; c < calls_.size(); ++c) {
    bound_.push_back(calls_[c].arguments());
    for (std::size_t i = 0; i < bound_[c].size(); ++i) {
      Operand& operand = bound_[c][i];
      auto ok = operand.kind == Operand::Kind::scratch ? bind_scratch(operand, lane, charges)
                                                       : bind_operand(operand, device, regions, charges);
      if (!ok)
        return std::move(ok).error().with_context(
            base::text("while preparing argument {} of '{}'", i + 1, calls_[c].name()));
      if (launch_ > 1 && is_batchable(calls_[c], i)) operand.count *= launch_;
    }
  }
  return {};
}

Result<void> Binding::bind_scratch(Operand& operand, device::Lane& lane, device::BufferRequest& charges) {
  auto found =
      std::find_if(scratch_.begin(), scratch_.end(), [&](const auto& s) { return s.first == operand.id; });
  if (found == scratch_.end()) {
    device::DeviceBase& device = *base::state_of(device_);
    // A fill among the job's commands needs no submission of its own.
    const bool fills = !device.has_unified_memory();
    charges.bytes = Bytes{scratch_bytes(operand.id)};
    charges.is_overwritten = fills;
    auto buffer = device.allocate(charges);
    if (!buffer) return std::move(buffer).error();
    if (fills) clear(lane, *buffer, 0, charges.bytes.count);
    found = scratch_.insert(scratch_.end(), {operand.id, std::move(*buffer)});
  }
  set_buffer(operand, found->second, operand.offset);
  return {};
}

Bytes Binding::returning() const {
  Bytes sum;
  for (const Region& region : regions_)
    if (region.download) sum += Bytes{region.bytes()};
  return sum;
}

void Binding::downloads(device::Lane& lane) {
  for (const Region& region : regions_) {
    if (!region.download) continue;
    const std::span<std::byte> bytes(region.first, region.last);
    lane.download({region.buffer, Bytes{region.buffer_offset}, Bytes{bytes.size()}}, bytes);
    transferred_ += Bytes{bytes.size()};
  }
}

void Binding::publish() {
  end_fills();
  for (const Use& use : arrays_)
    if (!use.written.empty())
      use.array->mark_written_on(is_in_place_ ? nullptr : base::state_of(device_).get(), use.written);
}

void Binding::invalidate(const Error& error, bool began, const device::TimelinePoint& end) {
  end_fills();
  const device::DeviceBase* here = is_in_place_ ? nullptr : base::state_of(device_).get();
  for (Use& use : arrays_) {
    if (!began || use.written.empty()) continue;
    if (use.array->valid_elsewhere(here, use.written))
      use.array->invalidate_on(here, use.written);
    else
      use.array->fail(error, use.written);
    if (here && !end.timeline->is_known(end.value))
      use.array->note_in_flight(*here, std::move(use.written), end);
  }
}

}  // namespace wye::flight
