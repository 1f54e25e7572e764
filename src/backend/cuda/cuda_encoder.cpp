#include "backend/cuda/cuda_encoder.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/cuda/cuda_executable.hpp"
#include "base/text.hpp"
#include "device/native.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {
namespace {

using CommandKind = device::Command::Kind;

class Encoder {
 public:
  Encoder(device::DeviceBase& device, Plan& plan) : device_(device), plan_(plan) {}
  Result<void> command(const device::Command& command, std::span<const Operand> operands);

 private:
  Result<void> dispatch(const device::Command& command, std::span<const Operand> operands);
  Result<void> pass(const CudaExecutable& executable, std::size_t slot, const Operand& operand,
                    std::byte* block);
  Result<void> pass_native(const CudaExecutable& executable, std::size_t slot, const Operand& operand);
  Error refused(const CudaExecutable& executable, std::size_t slot, std::string what) const;
  Error in_argument(const Error& error, const CudaExecutable& executable, std::size_t slot) const;
  /// Adds a step. It has a barrier if any command since the last step has one; some commands add no step.
  void add(const Step& step);
  device::DeviceBase& device_;
  Plan& plan_;
  bool barrier_ = false;
};

void Encoder::add(const Step& step) {
  plan_.steps.push_back(step);
  plan_.steps.back().barrier = std::exchange(barrier_, false);
}

Result<void> Encoder::command(const device::Command& command, std::span<const Operand> operands) {
  barrier_ |= command.barrier;
  if (command.kind == CommandKind::dispatch) return dispatch(command, operands);
  const device::DeviceBase& source =
      command.kind == CommandKind::copy ? device::source_device(operands[0], device_) : device_;
  auto first = device::view_of(operands[0], source);
  if (!first) return std::move(first).error();
  // CUDA needs no transfer of ownership: the semaphores order the accesses.
  if (command.kind == CommandKind::release || command.kind == CommandKind::acquire) return {};
  if (command.kind == CommandKind::fill) {
    if ((first->offset | first->bytes) % 4 != 0)
      return Error(
          Errc::invalid_argument,
          base::text(
              "A fill in a lane of device '{}' has offset {} and size {}, which are not multiples of 4.",
              device_.info().id, first->offset, first->bytes));
    if (first->bytes != 0)
      add({.kind = Step::Kind::fill,
           .pattern = command.pattern,
           .to = first->address(),
           .bytes = first->bytes});
    return {};
  }
  if (command.kind == CommandKind::copy) {
    auto second = device::view_of(operands[1], device_);
    if (!second) return std::move(second).error();
    if (first->bytes != second->bytes)
      return Error(Errc::invalid_argument, base::text("A copy in a lane of device '{}' is of {} bytes to {}.",
                                                      device_.info().id, first->bytes, second->bytes));
    if (first->bytes != 0)
      add({.kind = Step::Kind::copy,
           .to = second->address(),
           .from = first->address(),
           .peer = &source == &device_ ? nullptr : static_cast<const CudaDevice&>(source).context(),
           .bytes = first->bytes});
    return {};
  }
  if (command.host_bytes.count != first->bytes)
    return Error(
        Errc::invalid_argument,
        base::text("A transfer in a lane of device '{}' is of {} bytes of the host and {} of a buffer.",
                   device_.info().id, command.host_bytes.count, first->bytes));
  for (std::uint64_t done = 0; done < first->bytes;) {
    Step step{.kind = Step::Kind::copy, .bytes = std::min(first->bytes - done, Staging::largest_chunk)};
    if (command.kind == CommandKind::upload) {
      step.to = first->address() + done;
      step.source = command.source + done;
    } else {
      step.from = first->address() + done;
      step.target = command.target + done;
    }
    done += step.bytes;
    add(step);
  }
  return {};
}

Result<void> Encoder::dispatch(const device::Command& command, std::span<const Operand> operands) {
  if (!command.executable || command.executable->device().get() != &device_)
    return Error(Errc::invalid_argument,
                 base::text("A dispatch in a lane of device '{}' has no executable of this device.",
                            device_.info().id));
  const auto& executable = static_cast<const CudaExecutable&>(*command.executable);
  const device::Artefact& artefact = executable.artefact();
  if (operands.size() != artefact.schema.slots.size())
    return Error(Errc::invalid_argument,
                 base::text("Kernel '{}' takes {} arguments, and is given {}.", artefact.kernel,
                            artefact.schema.slots.size(), operands.size()));
  Step step{.executable = &executable};
  if (executable.is_native()) {
    step.kind = Step::Kind::native;
    step.grid = command.items;
    step.parameters = plan_.arguments.size();
    step.parameter_count = operands.size();
    for (std::size_t slot = 0; slot < operands.size(); ++slot)
      if (auto passed = pass_native(executable, slot, operands[slot]); !passed) return passed;
  } else {
    auto groups = device::groups_for(artefact, command.items, device_.info().limits, device_.info().id);
    if (!groups) return std::move(groups).error();
    if (auto checked = executable.check_grid(*groups); !checked) return checked;
    step.kind = Step::Kind::launch;
    step.grid = *groups;
    step.parameters = (plan_.parameters.size() + 15) & ~std::size_t{15};
    step.parameter_count = artefact.parameter_bytes;
    plan_.parameters.resize(step.parameters + step.parameter_count);
    for (std::size_t slot = 0; slot < operands.size(); ++slot)
      if (auto passed = pass(executable, slot, operands[slot], plan_.parameters.data() + step.parameters);
          !passed)
        return passed;
  }
  if (step.grid.count() != 0) add(step);
  return {};
}

Error Encoder::refused(const CudaExecutable& executable, std::size_t slot, std::string what) const {
  return Error(Errc::invalid_argument,
               base::text("Argument {} ('{}') of kernel '{}' {}.", slot,
                          executable.artefact().schema.slots[slot].name, executable.artefact().kernel, what));
}

Error Encoder::in_argument(const Error& error, const CudaExecutable& executable, std::size_t slot) const {
  return error.with_context(base::text("as argument {} of kernel '{}'", slot, executable.artefact().kernel));
}

/// Writes one argument into the parameter block of a launch.
Result<void> Encoder::pass(const CudaExecutable& executable, std::size_t slot, const Operand& operand,
                           std::byte* block) {
  const device::Passing& passing = executable.artefact().passing[slot];
  std::byte* const parameter = block + passing.offset;
  if (passing.kind == device::Passing::Kind::bytes) {
    const std::uint32_t size = executable.artefact().schema.slots[slot].size;
    const std::span<const std::byte> value = operand.value();
    if (value.size() != size)
      return refused(executable, slot, base::text("has {} bytes instead of {}", value.size(), size));
    std::memcpy(parameter, value.data(), size);
    return {};
  }
  auto range = device::view_of(operand, device_);
  if (!range) return in_argument(range.error(), executable, slot);
  const std::uint64_t address = range->address();
  std::memcpy(parameter, &address, sizeof(address));
  if (passing.kind == device::Passing::Kind::span)
    std::memcpy(parameter + sizeof(address), &operand.count, sizeof(operand.count));
  return {};
}

Result<void> Encoder::pass_native(const CudaExecutable& executable, std::size_t slot,
                                  const Operand& operand) {
  wye::detail::NativeArgument& argument = plan_.arguments.emplace_back();
  if (operand.kind == Operand::Kind::value) {
    argument.value = operand.value();  // the recording keeps it
    return {};
  }
  auto range = device::view_of(operand, device_);
  if (!range) return in_argument(range.error(), executable, slot);
  argument.address = range->address();
  argument.count = operand.kind == Operand::Kind::address ? range->bytes : operand.count;
  return {};
}

}  // namespace

Result<void> encode(const device::Recording& recording, device::DeviceBase& device, Plan& plan) {
  Encoder encoder(device, plan);
  for (const device::Command& command : recording.commands())
    if (auto encoded = encoder.command(command, recording.operands(command)); !encoded) return encoded;
  return {};
}

}  // namespace cuda
}  // namespace v0
}  // namespace wye
