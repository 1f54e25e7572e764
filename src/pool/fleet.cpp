#include "pool/fleet.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "pool/discovery.hpp"

namespace wye::inline v0::pool {

Fleet::Fleet(std::shared_ptr<const PoolOptions> options, std::size_t limit,
             std::shared_ptr<device::Qualifier> qualifier, std::shared_ptr<base::Journal> journal)
    : options_(std::move(options)),
      clock_(options_->clock ? options_->clock : &Clock::steady()),
      log_(options_->log),
      qualifier_(std::move(qualifier)),
      journal_(std::move(journal)),
      members_(limit),
      processors_(limit) {}

std::vector<Device> Fleet::devices() const {
  const base::Lock lock = lock_here();
  std::vector<Device> devices;
  for (std::size_t d = 0; d < size(); ++d) devices.push_back(members_[d].device);
  return devices;
}

std::optional<std::size_t> Fleet::find(device::DeviceRef device) const noexcept {
  for (std::size_t d = 0; d < size(); ++d)
    if (members_[d].opening.load(std::memory_order_acquire) == device.generation) return d;
  return std::nullopt;
}

Result<std::size_t> Fleet::find(const device::DeviceBase& device) const {
  const auto d = device.lost() ? std::nullopt : find(device.ref());
  if (d) return *d;
  if (const Error* lost = device.lost()) return *lost;  // it may have been replaced meanwhile
  return Error(Errc::invalid_argument,
               base::text("Device '{}' does not belong to this pool.", device.info().id));
}

bool Fleet::has_candidate(const DeviceFilter& filter) const noexcept {
  for (std::size_t d = 0; d < size(); ++d)
    if (is_candidate(d, filter)) return true;
  return false;
}

Error Fleet::no_candidate(const DeviceFilter& filter) const {
  const std::string for_workload =
      filter.workload.empty() ? std::string() : base::text(" for workload '{}'", filter.workload);
  const base::Lock lock = base::lock_soon(mutex_);
  const AdapterInfo* named = nullptr;
  for (std::size_t d = 0; d < size(); ++d) {
    const Error* lost = is_able(d, filter) ? base::state_of(members_[d].device)->lost() : nullptr;
    if (lost) return lost->with_context("while leasing a context");
    if (!named && filter.names(d, members_[d].info)) named = &base::state_of(members_[d].device)->info();
  }
  if (named)
    return Error(Errc::unsupported,
                 base::text("No device has the needed features{} ({}): '{}' lacks {}.", for_workload,
                            to_string(filter.needs), named->id, device::lacking(*named, filter.needs)));
  std::vector<const AdapterInfo*> there;
  for (std::size_t d = 0; d < size(); ++d) there.push_back(&members_[d].info);
  return device::not_found(filter.on, there);
}

std::size_t Fleet::prepare(std::shared_ptr<device::DeviceBase> device,
                           std::shared_ptr<device::Adapter> adapter, std::string found_as) {
  Member& member = members_[prepared_];
  member.info = device->info();
  member.found_as = std::move(found_as);
  std::size_t p = 0;
  while (p < processors_of(prepared_) && processors_[p].silicon != device->silicon()) ++p;
  member.processor = p;
  processors_[p].silicon = device->silicon();
  member.is_replaceable = adapter != nullptr;
  member.opening.store(device->ref().generation, std::memory_order_relaxed);
  const base::Lock lock = base::lock_soon(mutex_);
  member.adapter = std::move(adapter);
  member.device = Device(std::move(device));
  return prepared_++;
}

/// Processors are numbered in the order in which devices use them first.
std::size_t Fleet::processors_of(std::size_t devices) const noexcept {
  std::size_t count = 0;
  for (std::size_t d = 0; d < devices; ++d) count = std::max(count, members_[d].processor + 1);
  return count;
}

void Fleet::discard(std::size_t from) noexcept {
  const std::size_t processors = processors_of(prepared_);
  while (prepared_ > from) {
    Member& member = members_[--prepared_];
    member.opening.store(0, std::memory_order_relaxed);
    const base::Lock lock = base::lock_soon(mutex_);
    member.device = {};
    member.adapter.reset();
  }
  for (std::size_t p = processors_of(prepared_); p < processors; ++p) processors_[p].silicon.reset();
}

void Fleet::publish() noexcept {
  processor_count_.store(processors_of(prepared_), std::memory_order_release);
  const std::size_t before = size_.exchange(prepared_, std::memory_order_release);
  for (std::size_t d = before; d < prepared_; ++d)
    journal_->emit(members_[d].changed(base::DeviceChanged::Change::opened));
}

}  // namespace wye::pool
