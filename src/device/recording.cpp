#include "device/recording.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/text.hpp"
#include "device/buffer.hpp"
#include "device/executable.hpp"
#include "device/stamps.hpp"

namespace wye::inline v0::device {
namespace {

/// Returns whether the access `allowed` includes `needed`.
bool covers(Access allowed, Access needed) {
  return (static_cast<unsigned>(needed) & ~static_cast<unsigned>(allowed)) == 0;
}

/// Returns a range of bytes as an operand of one-byte elements.
Operand bytes_of(BufferRange range, Access access) {
  Operand o;
  o.kind = Operand::Kind::buffer;
  o.access = access;
  o.size = 1;
  o.count = range.size.count;
  o.offset = range.offset.count;
  o.object = std::move(range.buffer);
  return o;
}

void touch(const Operand& operand, std::vector<Touch>& touches) {
  switch (operand.kind) {
    case Operand::Kind::buffer:
      if (const BufferBase* buffer = buffer_of(operand)) {
        const std::uint64_t first = operand.offset * operand.size;
        touches.push_back({buffer->id(), first, first + operand.bytes().count, operand.access});
      }
      return;
    case Operand::Kind::address:
      if (const BufferBase* buffer = buffer_of(operand))
        touches.push_back({buffer->id(), 0, buffer->bytes().count, operand.access});
      return;
    case Operand::Kind::host: {
      const std::uint64_t first = reinterpret_cast<std::uintptr_t>(operand.data);
      touches.push_back({0, first, first + operand.bytes().count, operand.access});
      return;
    }
    case Operand::Kind::none:
    case Operand::Kind::array:
    case Operand::Kind::scratch:
    case Operand::Kind::value: return;
  }
}

}  // namespace

Command* Recording::add(Command::Kind kind) {
  if (closed_) {
    misused_ = true;
    return nullptr;
  }
  Command& command = commands_.emplace_back();
  command.kind = kind;
  command.first = static_cast<std::uint32_t>(operands_.size());
  return &command;
}

void Recording::add_operand(Command& command, Operand operand) {
  operands_.push_back(std::move(operand));
  ++command.count;
}

void Recording::upload(std::span<const std::byte> source, BufferRange target) {
  if (Command* command = add(Command::Kind::upload)) {
    command->source = source.data();
    command->host_bytes = Bytes{source.size()};
    add_operand(*command, bytes_of(std::move(target), Access::write));
  }
}

void Recording::download(BufferRange source, std::span<std::byte> target) {
  if (Command* command = add(Command::Kind::download)) {
    command->target = target.data();
    command->host_bytes = Bytes{target.size()};
    add_operand(*command, bytes_of(std::move(source), Access::read));
  }
}

void Recording::copy(BufferRange source, BufferRange target) {
  if (Command* command = add(Command::Kind::copy)) {
    add_operand(*command, bytes_of(std::move(source), Access::read));
    add_operand(*command, bytes_of(std::move(target), Access::write));
  }
}

void Recording::fill(BufferRange target, std::uint32_t pattern) {
  if (Command* command = add(Command::Kind::fill)) {
    command->pattern = pattern;
    add_operand(*command, bytes_of(std::move(target), Access::write));
  }
}

void Recording::release(BufferRange memory) {
  if (Command* command = add(Command::Kind::release))
    add_operand(*command, bytes_of(std::move(memory), Access::read_write));
}

void Recording::acquire(BufferRange memory) {
  if (Command* command = add(Command::Kind::acquire))
    add_operand(*command, bytes_of(std::move(memory), Access::read_write));
}

void Recording::dispatch(std::shared_ptr<ExecutableBase> executable, const Arguments& arguments,
                         Extent3 items) {
  Command* command = add(Command::Kind::dispatch);
  if (!command) return;
  command->executable = std::move(executable);
  command->items = items;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    add_operand(*command, arguments[i]);
    declare(*command, i, operands_.back());
  }
}

void Recording::stamp_begin(std::shared_ptr<StampsBase> stamps) {
  if (!stamps) return;
  if (closed_) {
    misused_ = true;
    return;
  }
  const auto is_same = [&](std::uint32_t i) { return stamps_[i] == stamps; };
  has_unpaired_stamp_ |= std::any_of(open_stamps_.begin(), open_stamps_.end(), is_same);
  const auto index = static_cast<std::uint32_t>(stamps_.size());
  stamps_.push_back(std::move(stamps));
  open_stamps_.push_back(index);  // before the command: if there is no memory for it, the pair is open
  Command* command = add(Command::Kind::stamp_begin);
  command->is_ordered = true;
  command->pattern = index;
}

void Recording::stamp_end(const std::shared_ptr<StampsBase>& stamps) {
  if (!stamps) return;
  Command* command = add(Command::Kind::stamp_end);
  if (!command) return;
  const auto open = std::find_if(open_stamps_.begin(), open_stamps_.end(),
                                 [&](std::uint32_t i) { return stamps_[i] == stamps; });
  if (open == open_stamps_.end()) {  // `checked` refuses the recording
    has_unpaired_stamp_ = true;
    commands_.pop_back();
    return;
  }
  command->pattern = *open;
  open_stamps_.erase(open);
}

/// Sets the access of memory to the access of the kernel. If the operand allows less, its access
/// stays, and the checked decorator refuses it.
void Recording::declare(const Command& command, std::size_t slot, Operand& operand) {
  if (!command.executable || slot >= command.executable->artefact().schema.slots.size()) return;
  const Access declared = command.executable->artefact().schema.slots[slot].access;
  const bool memory = operand.kind != Operand::Kind::value;
  if (memory && (operand.access == Access::none || covers(operand.access, declared)))
    operand.access = declared;
}

Result<void> Recording::set(std::size_t command, std::size_t slot, Operand operand) {
  if (closed_) return base::invalid("The recording is closed; its arguments cannot be replaced.");
  if (command >= commands_.size() || commands_[command].kind != Command::Kind::dispatch)
    return base::invalid(
        base::text("Step {} of a recording ({} commands) is not a dispatch.", command, commands_.size()));
  const Command& dispatch = commands_[command];
  if (slot >= dispatch.count)
    return base::invalid(base::text("Step {} of a recording has no argument {}; it has {} arguments.",
                                    command, slot, dispatch.count));
  declare(dispatch, slot, operand);
  operands_[dispatch.first + slot] = std::move(operand);
  return {};
}

namespace {

/// Returns a number that no other recording of this process has. Each thread takes many at a time,
/// because threads that record at the same time would wait for the counter.
std::uint64_t next_revision() noexcept {
  constexpr std::uint64_t at_once = 1024;
  static constinit std::atomic<std::uint64_t> taken{1};
  static constinit thread_local std::uint64_t next = 0;
  if (next % at_once == 0) next = taken.fetch_add(1, std::memory_order_relaxed) * at_once;
  return ++next;
}

}  // namespace

void Recording::close() {
  if (closed_) return;
  planner_.clear();
  if (commands_.size() > 1) {  // nothing comes before a single command
    for (Command& command : commands_) {
      touches_.clear();
      for (const Operand& operand : operands(command)) touch(operand, touches_);
      if (command.is_ordered) planner_.clear();
      command.barrier = planner_.next(touches_) || command.is_ordered;
    }
  }
  revision_ = next_revision();
  closed_ = true;
}

void Recording::assign(const Recording& other) {
  commands_ = other.commands_;
  operands_ = other.operands_;
  stamps_ = other.stamps_;
  open_stamps_ = other.open_stamps_;
  revision_ = other.revision_;
  closed_ = other.closed_;
  misused_ = other.misused_;
  has_unpaired_stamp_ = other.has_unpaired_stamp_;
}

void Recording::clear() noexcept {
  commands_.clear();
  operands_.clear();
  stamps_.clear();
  open_stamps_.clear();
  planner_.clear();
  closed_ = false;
  misused_ = false;
  has_unpaired_stamp_ = false;
}

bool unused(const std::shared_ptr<Recording>& recording) noexcept {
  if (recording.use_count() != 1) return false;
  // Copying and dropping a reference synchronizes with the release by the last other holder;
  // `use_count` does not.
  const std::shared_ptr<Recording> another = recording;  // NOLINT: dropped at once
  return true;
}

}  // namespace wye::device
