#include "silicon/silicon.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "base/gate.hpp"
#include "base/host_info.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::silicon {
namespace {

struct KnownSilicon {
  std::string key;
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

/// Returns the limit of the account of the processor.
Bytes limit_of(const ProcessorInfo& info) {
  const Bytes memory = info.memory ? *info.memory : base::host_memory();
  return memory == Bytes{} ? MemoryAccount::no_limit : memory;  // unknown
}

}  // namespace

Silicon::~Silicon() {
  if (share_) account_->share(nullptr);
}

Silicon::Silicon(SiliconId id, const ProcessorInfo& info)
    : id_(id),
      key_(info.key),
      slots_(info.slots),
      memory_(limit_of(info)),
      account_(std::make_shared<MemoryAccount>(info.name, memory_, AccountLevel::silicon)) {}

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
  Bytes budget = MemoryAccount::no_limit;
  for (const Bytes one : budgets_) budget = std::min(budget, one);
  account_->set_limit(std::min(limit, budget));
  if (published_) published_->set_budget(budget);
}

Result<void> Silicon::share(const std::string& folder) {
  if (key_.empty()) return {};
  const std::lock_guard sharing(sharing_);
  if (share_) {
    auto wanted = base::make_shared_directory(folder);
    if (!wanted) return std::move(wanted).error();
    if (*wanted == share_->folder()) return {};
    return Error(Errc::invalid_argument,
                 base::text("Processor '{}' is shared in folder '{}', and cannot be shared in '{}', too.",
                            name(), share_->folder(), *wanted));
  }
  auto joined = MachineShare::join(folder, key_);
  if (!joined) return std::move(joined).error();
  if (auto watched = (*joined)->watch([this] { slots_.serve(); }); !watched) return watched;
  share_ = *std::move(joined);
  {
    const base::Lock lock = base::lock_soon(mutex_);
    published_ = share_.get();
    update_limit_locked();
  }
  slots_.share(*share_);
  account_->share(share_.get());
  return {};
}

std::vector<MachineShare::Process> Silicon::processes() {
  const std::lock_guard sharing(sharing_);
  return share_ ? share_->processes() : std::vector<MachineShare::Process>();
}

std::shared_ptr<Silicon> Silicon::of(const ProcessorInfo& info) {
  if (info.key.empty()) return base::make_own<Silicon>(next_silicon(), info);
  auto& [mutex, known] = silicon_registry.get();
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const KnownSilicon& one) { return one.silicon.expired(); });
  for (const KnownSilicon& one : known)
    if (one.key == info.key)
      if (auto silicon = one.silicon.lock()) {
        silicon->slots().add_device(info.slots);
        return silicon;
      }
  auto made = base::make_own<Silicon>(next_silicon(), info);
  known.push_back({info.key, made});
  return made;
}

}  // namespace wye::silicon
