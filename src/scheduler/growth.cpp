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
    choices.push_back({info.backend, device::is_emulated(info)});
  }
  auto made = std::make_unique<const Table>(options_.preferences, std::move(choices));
  const base::Lock lock = base::lock_soon(mutex_);
  const Table* const last = table_.load(std::memory_order_relaxed);
  if (last && last->choices.size() >= made->choices.size()) return;  // another thread has added it
  tables_.push_back(std::move(made));
  while (queues_.size() <= tables_.back()->choices.size()) {  // within the reserved memory
    Queue& queue = queues_.emplace_back();
    queue.limit = pool_->options().lanes_per_device;
    queue.staged_limit = pool_->options().lanes_per_device * (options_.committed_per_lane - 1);
  }
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
