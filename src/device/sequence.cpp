#include "device/sequence.hpp"

#include <wye/device/sequence.hpp>

#include <algorithm>
#include <utility>

#include "base/internals.hpp"

namespace wye::inline v0 {
namespace device {

Recording& SequenceState::open() {
  if (!unused(recording_)) {
    auto next = std::find_if(before_.begin(), before_.end(), unused);
    if (next == before_.end()) next = before_.insert(next, std::make_shared<Recording>());
    (*next)->assign(*recording_);
    std::swap(*next, recording_);
  }
  recording_->reopen();
  return *recording_;
}

Submission SequenceState::submission() {
  recording_->close();
  for (const auto& recording : before_)
    if (unused(recording)) recording->clear();  // releases its buffers
  return {.recording = recording_, .waits = {}, .stop = {}, .caller_waits = false, .replay = replay_};
}

std::uint64_t items_of(const Executable& executable, const Arguments& arguments) {
  if (!executable) return 1;
  const auto& slots = executable.schema().slots;
  for (std::size_t i = 0; i < slots.size() && i < arguments.size(); ++i)
    if (slots[i].kind == SlotKind::buffer && writes(slots[i].access)) return arguments[i].count;
  return 1;
}

}  // namespace device

Sequence::Sequence(const Device& device)
    : state_(std::make_unique<device::SequenceState>(base::state_of(device))) {}
Sequence::Sequence(Sequence&& other) noexcept = default;
Sequence& Sequence::operator=(Sequence&& other) noexcept = default;
Sequence::~Sequence() = default;

std::size_t Sequence::size() const noexcept { return state_->recording().commands().size(); }

std::size_t Sequence::copy(const Buffer& source, const Buffer& target, Bytes bytes) {
  state_->open().copy({base::state_of(source), {}, bytes}, {base::state_of(target), {}, bytes});
  return size() - 1;
}

std::size_t Sequence::fill(const Buffer& target, std::uint32_t pattern) {
  state_->open().fill({base::state_of(target), {}, target.bytes()}, pattern);
  return size() - 1;
}

std::size_t Sequence::dispatch(const Executable& executable, const Arguments& arguments) {
  return dispatch(executable, arguments, device::items_of(executable, arguments));
}

std::size_t Sequence::dispatch(const Executable& executable, const Arguments& arguments, Extent3 items) {
  state_->open().dispatch(base::state_of(executable), arguments, items);
  return size() - 1;
}

Result<void> Sequence::set_operand(std::size_t step, std::size_t argument, Operand operand) {
  return state_->open().set(step, argument, std::move(operand));
}

}  // namespace wye
