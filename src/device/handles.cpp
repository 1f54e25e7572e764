// The public handles: Buffer, Executable, Device.
#include <wye/device/buffer.hpp>
#include <wye/device/device.hpp>
#include <wye/device/executable.hpp>
#include <wye/device/sequence.hpp>

#include "base/text.hpp"
#include "device/buffer.hpp"
#include "device/device.hpp"
#include "silicon/memory_account.hpp"

namespace wye::inline v0 {

Buffer::Buffer(std::shared_ptr<device::BufferBase> state, ElementType element, std::uint32_t element_size)
    : state_(std::move(state)), element_(element), element_size_(element_size == 0 ? 1 : element_size) {}

Bytes Buffer::bytes() const noexcept { return state_ ? state_->bytes() : Bytes{}; }
std::uint64_t Buffer::size() const noexcept { return bytes().count / element_size_; }
std::uint64_t Buffer::address() const noexcept { return state_ ? state_->address() : 0; }

Operand Buffer::operand(Access access) const { return operand(access, 0, size()); }

Operand Buffer::operand(Access access, std::uint64_t first, std::uint64_t count) const {
  Operand o;
  o.kind = Operand::Kind::buffer;
  o.access = access;
  o.element = element_;
  o.size = element_size_;
  o.count = count;
  o.offset = first;
  o.object = state_;
  return o;
}

std::uint64_t Executable::resident_groups() const noexcept { return state_ ? state_->resident_groups() : 0; }

const std::string& Executable::name() const {
  static const std::string none;
  return state_ ? state_->artefact().kernel : none;
}

const ParamSchema& Executable::schema() const {
  static const ParamSchema none;
  return state_ ? state_->artefact().schema : none;
}

bool SyncPoint::reached() const noexcept {
  return !state_ || (!state_->origin().is_inherited() && state_->reached() >= value_);
}

Result<void> SyncPoint::wait(Deadline deadline) const {
  if (!state_) return {};
  if (const Error* inherited = state_->origin().error()) return *inherited;
  return state_->wait(value_, deadline.at(Clock::steady()));
}

const AdapterInfo& Device::info() const {
  static const AdapterInfo none;
  return state_ ? state_->info() : none;
}

Monitoring Device::monitor() const {
  if (!state_) return device::unmonitored({}, "The device handle is empty; an empty handle has no monitor.");
  if (const Error* inherited = state_->origin().error())
    return device::unmonitored(state_->info().id, inherited->sentence());
  return state_->monitor();
}

MemoryInfo Device::memory() const {
  return state_ && !state_->origin().is_inherited() ? state_->memory() : MemoryInfo{};
}

Result<Buffer> Device::allocate(std::uint64_t count, ElementType element, std::uint32_t element_size,
                                const std::shared_ptr<silicon::MemoryAccount>& account,
                                const std::shared_ptr<silicon::MemoryAccount>& tag) const {
  if (!state_) return Error(Errc::invalid_argument, "The device handle is empty; a buffer needs a device.");
  if (const Error* inherited = state_->origin().error()) return *inherited;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, std::uint64_t{element_size}, &bytes))
    return Error(Errc::invalid_argument,
                 base::text("Buffer size ({} elements of {} bytes) exceeds the largest 64-bit number.", count,
                            element_size));
  auto buffer = state_->allocate(
      {.bytes = Bytes{bytes}, .use = device::MemoryUse::device, .account = account, .tag = tag});
  if (!buffer) return std::move(buffer).error();
  return Buffer(*std::move(buffer), element, element_size);
}

}  // namespace wye
