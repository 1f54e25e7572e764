#include "device/silicon.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "base/gate.hpp"
#include "base/host_info.hpp"
#include "base/process.hpp"

namespace wye {
inline namespace v0 {
namespace device {
namespace {

struct KnownSilicon {
  bool is_cpu;
  Uuid uuid;
  std::weak_ptr<Silicon> silicon;
};

/// The processors in use. They end with their last device.
struct SiliconRegistry {
  std::mutex mutex;
  std::vector<KnownSilicon> known;
};
constinit base::PerProcess<SiliconRegistry> silicon_registry;

SiliconId next_silicon() noexcept {
  static std::atomic<std::uint32_t> last{0};
  return SiliconId{last.fetch_add(1, std::memory_order_relaxed) + 1};
}

/// Returns the limit of the account of the processor that `adapter` reaches.
Bytes memory_of(const AdapterInfo& adapter) {
  if (adapter.type != AdapterType::cpu) return MemoryAccount::no_limit;
  // A driver that emulates a GPU states the size of a heap. The memory of the machine is read from files: not once more.
  return adapter.features.has(Feature::host_memory) ? adapter.memory : base::host_memory();
}

}  // namespace

Silicon::Silicon(SiliconId id, const AdapterInfo& adapter)
    : id_(id),
      slots_(default_slots(adapter)),
      memory_(memory_of(adapter)),
      account_(std::make_shared<MemoryAccount>(adapter.name.empty() ? adapter.id : adapter.name, memory_,
                                               AccountLevel::silicon)) {}

void Silicon::add_budget(Bytes budget) {
  const base::Lock lock = base::lock_soon(mutex_);
  budgets_.push_back(budget);
  update_limit_locked();
}

void Silicon::remove_budget(Bytes budget) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  budgets_.erase(std::find(budgets_.begin(), budgets_.end(), budget));
  update_limit_locked();
}

void Silicon::note_available(Bytes available) noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  const Bytes held = account_->held();
  told_ = available <= MemoryAccount::no_limit - held ? held + available : MemoryAccount::no_limit;
  update_limit_locked();
}

void Silicon::update_limit_locked() noexcept {
  Bytes limit = std::min(memory_, told_);
  for (const Bytes budget : budgets_) limit = std::min(limit, budget);
  account_->set_limit(limit);
}

std::shared_ptr<Silicon> Silicon::of(const AdapterInfo& adapter) {
  const bool is_cpu = adapter.type == AdapterType::cpu;
  if (!is_cpu && adapter.device_uuid == Uuid{}) return base::make_own<Silicon>(next_silicon(), adapter);
  auto& [mutex, known] = silicon_registry.get();
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const KnownSilicon& one) { return one.silicon.expired(); });
  for (const KnownSilicon& one : known)
    if (one.is_cpu == is_cpu && (is_cpu || one.uuid == adapter.device_uuid))
      if (auto silicon = one.silicon.lock()) {
        silicon->slots().add_device(default_slots(adapter));
        return silicon;
      }
  auto made = base::make_own<Silicon>(next_silicon(), adapter);
  known.push_back({is_cpu, adapter.device_uuid, made});
  return made;
}

}  // namespace device
}  // namespace v0
}  // namespace wye
