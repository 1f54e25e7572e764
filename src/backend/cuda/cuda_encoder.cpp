#include "backend/cuda/cuda_encoder.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "backend/cuda/cuda_executable.hpp"
#include "backend/cuda/cuda_stamps.hpp"

namespace wye::inline v0::cuda {
namespace {

using CommandKind = device::Command::Kind;

class Encoder {
 public:
  Encoder(device::DeviceBase& device, Plan& plan) : device_(device), plan_(plan) {}
  Result<void> command(const device::Recording& recording, const device::Command& command);

 private:
  Result<void> dispatch(const device::Command& command, std::span<const Operand> operands);
  static void pass(const device::Artefact& artefact, std::size_t slot, const Operand& operand,
                   std::byte* block);
  void pass_native(const Operand& operand);
  void stamp(CUevent event);
  /// Adds a step. It has a barrier if any command since the last step has one; some commands add no
  /// step.
  void add(const Step& step);
  device::DeviceBase& device_;
  Plan& plan_;
  bool barrier_ = false;
};

void Encoder::add(const Step& step) {
  plan_.steps.push_back(step);
  plan_.steps.back().barrier = std::exchange(barrier_, false);
}

/// Adds the record of an event, with a barrier before and behind it: the nodes of a graph beside it
/// would run at the same time.
void Encoder::stamp(CUevent event) {
  barrier_ = true;
  add({.kind = Step::Kind::stamp, .event = event});
  barrier_ = true;
}

Result<void> Encoder::command(const device::Recording& recording, const device::Command& command) {
  const std::span<const Operand> operands = recording.operands(command);
  barrier_ |= command.barrier;
  if (command.kind == CommandKind::dispatch) return dispatch(command, operands);
  if (command.kind == CommandKind::stamp_begin || command.kind == CommandKind::stamp_end) {
    const auto& stamps = static_cast<const CudaStamps&>(recording.stamps_of(command));
    stamp(command.kind == CommandKind::stamp_begin ? stamps.begin() : stamps.end());
    return {};
  }
  const device::BufferView first = device::view_of(operands[0]);
  // CUDA needs no transfer of ownership: the semaphores order the accesses.
  if (command.kind == CommandKind::release || command.kind == CommandKind::acquire) return {};
  if (command.kind == CommandKind::fill) {
    if (first.bytes != 0)
      add({.kind = Step::Kind::fill,
           .pattern = command.pattern,
           .to = first.address(),
           .bytes = first.bytes});
    return {};
  }
  if (command.kind == CommandKind::copy) {
    const device::BufferView second = device::view_of(operands[1]);
    assert(first.bytes == second.bytes && second.buffer->device().get() == &device_);
    const auto& source = static_cast<const CudaDevice&>(*first.buffer->device());
    if (first.bytes != 0)
      add({.kind = Step::Kind::copy,
           .to = second.address(),
           .from = first.address(),
           .peer = &source == &device_ ? nullptr : source.context(),
           .bytes = first.bytes});
    return {};
  }
  assert(first.buffer->device().get() == &device_);
  for (std::uint64_t done = 0; done < first.bytes;) {
    Step step{.kind = Step::Kind::copy, .bytes = std::min(first.bytes - done, Staging::largest_chunk)};
    if (command.kind == CommandKind::upload) {
      step.to = first.address() + done;
      step.source = command.source + done;
    } else {
      step.from = first.address() + done;
      step.target = command.target + done;
    }
    done += step.bytes;
    add(step);
  }
  return {};
}

Result<void> Encoder::dispatch(const device::Command& command, std::span<const Operand> operands) {
  assert(command.executable->device().get() == &device_);
  const auto& executable = static_cast<const CudaExecutable&>(*command.executable);
  const device::Artefact& artefact = executable.artefact();
  Step step{.executable = &executable};
  if (executable.is_native()) {
    step.kind = Step::Kind::native;
    step.grid = command.items;
    step.parameters = plan_.arguments.size();
    step.parameter_count = operands.size();
    for (const Operand& operand : operands) pass_native(operand);
  } else {
    step.kind = Step::Kind::launch;
    step.grid = device::groups_for(artefact, command.items);
    // The driver states the limits of clusters and cooperative grids for each function.
    if (auto checked = executable.check_grid(step.grid); !checked) return checked;
    step.parameters = (plan_.parameters.size() + 15) & ~std::size_t{15};
    step.parameter_count = artefact.parameter_bytes;
    plan_.parameters.resize(step.parameters + step.parameter_count);
    for (std::size_t slot = 0; slot < operands.size(); ++slot)
      pass(artefact, slot, operands[slot], plan_.parameters.data() + step.parameters);
  }
  if (step.grid.count() != 0) add(step);
  return {};
}

/// Writes one argument into the parameter block of a launch.
void Encoder::pass(const device::Artefact& artefact, std::size_t slot, const Operand& operand,
                   std::byte* block) {
  const device::Passing& passing = artefact.passing[slot];
  std::byte* const parameter = block + passing.offset;
  if (passing.kind == device::Passing::Kind::bytes) {
    const std::span<const std::byte> value = operand.value();
    assert(value.size() == artefact.schema.slots[slot].size);
    std::memcpy(parameter, value.data(), value.size());
    return;
  }
  const std::uint64_t address = device::view_of(operand).address();
  std::memcpy(parameter, &address, sizeof(address));
  if (passing.kind == device::Passing::Kind::span)
    std::memcpy(parameter + sizeof(address), &operand.count, sizeof(operand.count));
}

void Encoder::pass_native(const Operand& operand) {
  wye::detail::NativeArgument& argument = plan_.arguments.emplace_back();
  if (operand.kind == Operand::Kind::value) {
    argument.value = operand.value();  // the recording keeps it
    return;
  }
  const device::BufferView range = device::view_of(operand);
  argument.address = range.address();
  argument.count = operand.kind == Operand::Kind::address ? range.bytes : operand.count;
}

}  // namespace

Result<void> encode(const device::Recording& recording, device::DeviceBase& device, Plan& plan) {
  Encoder encoder(device, plan);
  for (const device::Command& command : recording.commands())
    if (auto encoded = encoder.command(recording, command); !encoded) return encoded;
  return {};
}

}  // namespace wye::cuda
