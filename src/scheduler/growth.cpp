// Devices that the pool adds after the scheduler was opened.
#include <memory>
#include <new>
#include <utility>

#include "device/backend.hpp"
#include "scheduler/core.hpp"

namespace wye::inline v0::scheduler {

/// Adds a table with the devices that the pool has now, and the queues of these devices. Throws:
/// std::bad_alloc.
void Core::add_table() {
  std::vector<Choice> choices;
  for (std::size_t d = 0; d < pool_->fleet().size(); ++d) {
    const AdapterInfo& info = pool_->fleet().info(d);
    choices.push_back({.backend = info.backend,
                       .emulated = device::is_emulated(info),
                       .is_host = info.features.has(Feature::host_memory),
                       .type = info.type,
                       .name = info.name,
                       .silicon = &pool_->fleet().silicon(pool_->fleet().processor_of(d))});
  }
  auto made = std::make_unique<const Table>(options_.preferences, std::move(choices));
  const base::Lock lock = base::lock_soon(mutex_);
  const Table* const last = table_.load(std::memory_order_relaxed);
  if (last && last->choices.size() >= made->choices.size()) return;  // another thread has added it
  tables_.push_back(std::move(made));
  ready_.places().add(*tables_.back());
  table_.store(tables_.back().get(), std::memory_order_release);
}

/// Returns the new table; the last one if there is no memory for it.
const Table& Core::add_devices() noexcept {
  try {
    add_table();
  } catch (const std::bad_alloc&) {  // the next job tries it again
  }
  return *table_.load(std::memory_order_acquire);
}

}  // namespace wye::scheduler
