#include "cache/handle_state.hpp"

#include <mutex>
#include <utility>

#include "base/with_memory.hpp"

namespace wye::inline v0 {
namespace cache {

HandleState::HandleState(std::shared_ptr<Cache> cache, std::shared_ptr<const device::Program> program,
                         std::shared_ptr<device::DeviceBase> device)
    : cache_(std::move(cache)), program_(std::move(program)), device_(std::move(device)) {}

/// The cache counts this use itself.
Result<const Executable*> HandleState::find(Deadline deadline) {
  if (const Error* inherited = cache_->origin().error()) return *inherited;
  release();
  const Instant until = deadline.at(cache_->clock());
  for (;;) {
    const device::Program* const program = &program_->current();
    auto provided = cache_->provide(program_, device_, until);
    if (program != &program_->current()) continue;  // it was replaced meanwhile
    if (!provided) return std::move(provided).error();
    auto digest = program->key(*device_);
    if (!digest) return std::move(digest).error();
    const std::lock_guard lock(cache_->lock_);
    uses_.entry = cache_->table_.entry_of({*digest, device_->ref().generation});
    if (!uses_.entry) uses_.entry = std::make_shared<Entry>();  // removed since: its device is lost
    uses_.used = uses_.hits = uses_.settled = 0;
    cache_->table_.add(uses_);
    executable_ = std::move(provided->executable);
    found_ = program;
    return &executable_;
  }
}

/// The executable may end here, after the lock.
void HandleState::release() noexcept {
  if (!std::exchange(found_, nullptr) || cache_->origin().is_inherited()) return;
  {
    const std::lock_guard lock(cache_->lock_);
    cache_->table_.remove(uses_);
  }
  executable_ = {};
}

}  // namespace cache

KernelHandle::KernelHandle(std::unique_ptr<cache::HandleState> state) : state_(std::move(state)) {}
KernelHandle::KernelHandle(KernelHandle&&) noexcept = default;
KernelHandle& KernelHandle::operator=(KernelHandle&&) noexcept = default;
KernelHandle::~KernelHandle() = default;

Result<const Executable*> KernelHandle::find_or_build(Deadline deadline) {
  if (!state_) return Error(Errc::closed, "The kernel handle is empty: it was moved from.");
  return base::with_memory("find or build a kernel", [&] { return state_->find_or_build(deadline); });
}

}  // namespace wye
