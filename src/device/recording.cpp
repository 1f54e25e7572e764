#include "device/recording.hpp"

#include <utility>

#include "device/contract.hpp"

namespace wye {
inline namespace v0 {
namespace device {
namespace {

/// Whether memory given for `given` may be used for `wanted`.
bool covers(Access given, Access wanted) {
  return (static_cast<unsigned>(wanted) & ~static_cast<unsigned>(given)) == 0;
}

/// A range of bytes as an operand of one-byte elements.
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

void Recording::dispatch(std::shared_ptr<ExecutableBase> executable, const Arguments& arguments,
                         Extent3 items) {
  Command* command = add(Command::Kind::dispatch);
  if (!command) return;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Operand operand = arguments[i];
    // Memory that was given for less than the kernel does with it keeps its access: the checked decorator
    // sees that.
    if (executable && i < executable->artefact().schema.slots.size()) {
      const Access declared = executable->artefact().schema.slots[i].access;
      const bool memory = operand.kind != Operand::Kind::value;
      if (memory && (operand.access == Access::none || covers(operand.access, declared)))
        operand.access = declared;
    }
    add_operand(*command, std::move(operand));
  }
  command->executable = std::move(executable);
  command->items = items;
}

void Recording::close() {
  if (closed_) return;
  for (Command& command : commands_) {
    touches_.clear();
    for (const Operand& operand : operands(command)) touch(operand, touches_);
    command.barrier = planner_.next(touches_);
  }
  closed_ = true;
}

void Recording::clear() noexcept {
  commands_.clear();
  operands_.clear();
  planner_.clear();
  closed_ = false;
  misused_ = false;
}

}  // namespace device
}  // namespace v0
}  // namespace wye
