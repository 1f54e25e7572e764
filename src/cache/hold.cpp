#include "cache/hold.hpp"

#include <wye/cache/kernel_handle.hpp>

#include <new>
#include <utility>

namespace wye {
inline namespace v0 {
namespace cache {

Hold::Hold(std::shared_ptr<Cache> cache, std::shared_ptr<const device::Program> program,
           std::shared_ptr<device::DeviceBase> device)
    : cache_(std::move(cache)), program_(std::move(program)), device_(std::move(device)) {}

Hold::~Hold() { let_go(); }

/// Finds what there is now, which is counted there.
Result<const Executable*> Hold::find(Deadline deadline) {
  if (const Error* inherited = cache_->origin().error()) return *inherited;
  let_go();
  const Instant until = deadline.at(cache_->clock());
  const device::Program* now = &program_->current();
  auto provided = cache_->provide(program_, device_, until);
  while (now != &program_->current()) {  // it was replaced meanwhile
    now = &program_->current();
    provided = cache_->provide(program_, device_, until);
  }
  if (!provided) return std::move(provided).error();
  auto digest = now->key(*device_);
  if (!digest) return std::move(digest).error();
  key_ = {*digest, device_.get()};
  cache_->enter(*this);
  executable_ = std::move(provided->executable);
  found_ = now;
  return &executable_;
}

void Hold::begin(std::shared_ptr<Tally> tally) noexcept {
  tally_ = std::move(tally);
  used_ = hits_ = told_ = 0;
}

void Hold::settle() noexcept {
  const std::uint64_t hits = hits_.load(std::memory_order_relaxed);
  tally_->hits.fetch_add(hits - std::exchange(told_, hits), std::memory_order_relaxed);
  Cache::raise(*tally_, used_.load(std::memory_order_relaxed));
}

/// The executable ends here, if it does: no lock is held.
void Hold::let_go() noexcept {
  if (!std::exchange(found_, nullptr)) return;
  cache_->leave(*this);
  executable_ = {};
}

}  // namespace cache

KernelHandle::KernelHandle(std::unique_ptr<cache::Hold> hold) : hold_(std::move(hold)) {}
KernelHandle::KernelHandle(KernelHandle&&) noexcept = default;
KernelHandle& KernelHandle::operator=(KernelHandle&&) noexcept = default;
KernelHandle::~KernelHandle() = default;

Result<const Executable*> KernelHandle::find_or_build(Deadline deadline) {
  if (!hold_) return Error(Errc::closed, "The handle of a kernel was moved elsewhere.");
  try {
    return hold_->find_or_build(deadline);
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory left to find or build a kernel.");
  }
}

}  // namespace v0
}  // namespace wye
