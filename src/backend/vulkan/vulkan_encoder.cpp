#include "backend/vulkan/vulkan_encoder.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "base/text.hpp"

namespace wye::inline v0::vulkan {
namespace {

/// Downloads of at least this size are always done in place, even if the buffer prefers staging.
/// From this size, an additional copy costs more than a wait.
constexpr std::uint64_t large_download = 1u << 20;

constexpr VkPipelineStageFlags device_stages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags device_writes = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags device_reads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

bool same(const std::vector<VkDescriptorBufferInfo>& a, const std::vector<VkDescriptorBufferInfo>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const VkDescriptorBufferInfo& x, const VkDescriptorBufferInfo& y) {
                      return x.buffer == y.buffer && x.offset == y.offset && x.range == y.range;
                    });
}

}  // namespace

Encoder::Encoder(VulkanLane& lane, Batch& batch, const device::Submission& submission)
    : lane_(lane),
      device_(lane.vulkan()),
      batch_(&batch),
      submission_(submission),
      ready_(lane.ready_ && std::all_of(submission.waits.begin(), submission.waits.end(),
                                        [](const device::TimelinePoint& point) {
                                          return !point.timeline->is_foreign() ||
                                                 point.timeline->reached() >= point.value;
                                        })) {}

Result<void> Encoder::encode() {
  for (const device::Command& command : submission_.recording->commands())
    if (auto encoded = encode(command); !encoded) return encoded;
  return finish();
}

Result<void> Encoder::encode(const device::Command& command) {
  using Kind = device::Command::Kind;
  pending_ |= command.barrier;
  if (command.kind == Kind::stamp_begin || command.kind == Kind::stamp_end) return stamp(command);
  leading_ &= command.kind == Kind::upload;
  if (command.kind == Kind::dispatch) return dispatch(command);
  const auto operands = submission_.recording->operands(command);
  const bool is_copy = command.kind == Kind::copy;
  const Range first = range_of(operands[0]), second = is_copy ? range_of(operands[1]) : first;
  assert(first.bytes == second.bytes);
  const std::uint64_t bytes = first.bytes;
  if (bytes == 0) return {};
  // An upload in place completes before the device begins. All other commands are uses of the
  // buffer.
  if (command.kind == Kind::upload && ready_ && first.buffer->mapped() &&
      first.buffer->uses.load(std::memory_order_acquire) == 0) {
    batch_->uploads.push_back({first.buffer, first.offset, bytes, command.source});
    return {};
  }
  batch_->use(*first.buffer, operands[0].object);
  if (is_copy) batch_->use(*second.buffer, operands[1].object);
  switch (command.kind) {
    case Kind::upload: return upload(command.source, first, operands[0]);
    case Kind::download: return download(first, command.target);
    case Kind::copy: return copy(first, second);
    case Kind::fill: return fill(command.pattern, first);
    case Kind::release: return transfer(first, device_.physical().queue_family, VK_QUEUE_FAMILY_EXTERNAL);
    case Kind::acquire: return transfer(first, VK_QUEUE_FAMILY_EXTERNAL, device_.physical().queue_family);
    case Kind::dispatch:
    case Kind::stamp_begin:
    case Kind::stamp_end: break;
  }
  return {};
}

/// Takes a time. At the end no barrier is needed: the timestamp itself is written when all earlier
/// commands have completed.
Result<void> Encoder::stamp(const device::Command& command) {
  auto& stamps = static_cast<VulkanStamps&>(submission_.recording->stamps_of(command));
  if (auto begun = before_command(); !begun) return begun;
  if (command.kind == device::Command::Kind::stamp_begin)
    stamps.record_begin(batch_->commands);
  else
    stamps.record_end(batch_->commands);
  return {};
}

Encoder::Range Encoder::range_of(const Operand& operand) const {
  const device::BufferView view = device::view_of(operand);
  assert(view.buffer->device() == lane_.device());
  return {static_cast<VulkanBuffer*>(view.buffer), view.offset, view.bytes};
}

/// Uploads through staging memory, in pieces. Uploads at the beginning of a recording are launched
/// in parts, so any size fits the staging budget.
Result<void> Encoder::upload(const std::byte* source, const Range& to, const Operand& operand) {
  if (auto settled = before_write(*to.buffer); !settled) return settled;
  for (std::uint64_t done = 0; done < to.bytes;) {
    if (leading_ && ready_ && lane_.staging_.is_enough(batch_->staging)) {
      if (auto ahead = launch_part(); !ahead) return ahead;
      batch_->use(*to.buffer, operand.object);
    }
    auto piece = lane_.staging_.allocate(batch_->staging, to.bytes - done, 16, false);
    if (!piece) return std::move(piece).error();
    std::memcpy(piece->host(), source + done, piece->bytes);
    if (auto begun = before_command(); !begun) return begun;
    copy_bytes(*piece->buffer, piece->offset, *to.buffer, to.offset + done, piece->bytes);
    done += piece->bytes;
  }
  return {};
}

Result<void> Encoder::launch_part() {
  if (auto finished = finish(); !finished) return finished;
  begun_ = false;
  auto next = lane_.launch_part(*std::exchange(batch_, nullptr));
  if (!next) return std::move(next).error();
  batch_ = *next;
  pending_ = true;
  pipeline_ = VK_NULL_HANDLE;
  bound_ = nullptr;
  return {};
}

Result<void> Encoder::download(const Range& from, std::byte* target) {
  const bool in_place =
      ready_ && from.buffer->mapped() &&
      (submission_.caller_waits || !from.buffer->prefers_staging() || from.bytes >= large_download);
  if (!in_place) return stage_download(from, target);
  batch_->downloads.push_back({from.buffer, from.offset, from.bytes, target, true});
  return {};
}

Result<void> Encoder::stage_download(const Range& from, std::byte* target) {
  for (std::uint64_t done = 0; done < from.bytes;) {
    auto piece = lane_.staging_.allocate(batch_->staging, from.bytes - done, 16, false);
    if (!piece) return std::move(piece).error();
    if (auto begun = before_command(); !begun) return begun;
    copy_bytes(*from.buffer, from.offset + done, *piece->buffer, piece->offset, piece->bytes);
    batch_->downloads.push_back({piece->buffer, piece->offset, piece->bytes, target + done, false});
    done += piece->bytes;
  }
  return {};
}

Result<void> Encoder::copy(const Range& from, const Range& to) {
  if (auto settled = before_write(*to.buffer); !settled) return settled;
  if (auto begun = before_command(); !begun) return begun;
  copy_bytes(*from.buffer, from.offset, *to.buffer, to.offset, to.bytes);
  return {};
}

Result<void> Encoder::fill(std::uint32_t pattern, const Range& to) {
  if (auto settled = before_write(*to.buffer); !settled) return settled;
  if (auto begun = before_command(); !begun) return begun;
  device_.vk.CmdFillBuffer(batch_->commands, to.buffer->handle(), to.offset, to.bytes, pattern);
  return {};
}

/// Transfers memory between this queue's family and the family of other drivers. Each side executes
/// half of the transfer.
Result<void> Encoder::transfer(const Range& memory, std::uint32_t from, std::uint32_t to) {
  if (auto begun = before_command(); !begun) return begun;
  const bool is_release = to == VK_QUEUE_FAMILY_EXTERNAL;
  const VkBufferMemoryBarrier half{
      .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
      .pNext = nullptr,
      .srcAccessMask = is_release ? device_writes : VkAccessFlags{0},
      .dstAccessMask = is_release ? VkAccessFlags{0} : device_reads | device_writes,
      .srcQueueFamilyIndex = from,
      .dstQueueFamilyIndex = to,
      .buffer = memory.buffer->handle(),
      .offset = memory.offset,
      .size = memory.bytes};
  device_.vk.CmdPipelineBarrier(batch_->commands, device_stages, device_stages, 0, 0, nullptr, 1, &half, 0,
                                nullptr);
  return {};
}

Result<void> Encoder::dispatch(const device::Command& command) {
  assert(command.executable->device() == lane_.device());
  const auto& executable = static_cast<const VulkanExecutable&>(*command.executable);
  const device::Artefact& artefact = executable.artefact();
  const auto operands = submission_.recording->operands(command);
  const Limits& limits = device_.info().limits;
  const Extent3 groups = device::groups_for(artefact, command.items);
  const bool in_rows = groups.x > limits.groups.x;
  auto pipeline = in_rows ? executable.row_pipeline() : executable.pipeline();
  if (!pipeline)
    return std::move(pipeline).error().with_context(
        base::text("for a grid of {} workgroups in x, over the limit of '{}' ({})", groups.x,
                   device_.info().id, limits.groups.x));

  lane_.parameters_.assign(executable.parameter_bytes(), std::byte{0});
  lane_.set_.resize(executable.bindings().size());
  for (std::size_t slot = 0; slot < operands.size(); ++slot)
    if (auto passed = pass(executable, slot, operands[slot]); !passed) return passed;
  if (auto begun = before_command(); !begun) return begun;
  if (auto bound = bind(executable, *pipeline); !bound) return bound;
  if (in_rows) return dispatch_rows(groups.x), Result<void>();
  device_.vk.CmdDispatch(batch_->commands, static_cast<std::uint32_t>(groups.x),
                         static_cast<std::uint32_t>(groups.y), static_cast<std::uint32_t>(groups.z));
  return {};
}

/// Dispatches exactly `groups` workgroups: full rows of the largest size in x, then the rest as
/// part of another row. Needs no barrier between them, because the workgroups of a grid are
/// unordered.
void Encoder::dispatch_rows(std::uint64_t groups) {
  const std::uint64_t width = device_.info().limits.groups.x;
  const auto rows = static_cast<std::uint32_t>(groups / width),
             rest = static_cast<std::uint32_t>(groups % width);
  device_.vk.CmdDispatch(batch_->commands, static_cast<std::uint32_t>(width), rows, 1);
  if (rest != 0) device_.vk.CmdDispatchBase(batch_->commands, 0, rows, 0, rest, 1, 1);
}

/// Writes one argument to the parameter block or the descriptor set.
Result<void> Encoder::pass(const VulkanExecutable& executable, std::size_t slot, const Operand& operand) {
  using Passing = device::Passing;
  const Passing& passing = executable.artefact().passing[slot];
  std::byte* const parameter = lane_.parameters_.data() + passing.offset;
  if (passing.kind == Passing::Kind::bytes) {
    const std::span<const std::byte> value = operand.value();
    assert(value.size() == executable.artefact().schema.slots[slot].size);
    std::memcpy(parameter, value.data(), value.size());
    return {};
  }
  const Range range = range_of(operand);
  batch_->use(*range.buffer, operand.object);
  if (writes(operand.access))
    if (auto settled = before_write(*range.buffer); !settled) return settled;
  if (passing.kind == Passing::Kind::descriptor) {
    const auto& bindings = executable.bindings();
    const auto at = std::lower_bound(bindings.begin(), bindings.end(), passing.binding) - bindings.begin();
    // A descriptor range cannot be empty. One byte is less than any wider element.
    const bool empty = range.bytes == 0;
    lane_.set_[static_cast<std::size_t>(at)] = {range.buffer->handle(), empty ? 0 : range.offset,
                                                empty ? 1 : range.bytes};
    return {};
  }
  const std::uint64_t address = range.buffer->address() + range.offset;
  std::memcpy(parameter, &address, sizeof(address));
  if (passing.kind == Passing::Kind::span)
    std::memcpy(parameter + sizeof(address), &operand.count, sizeof(operand.count));
  return {};
}

Result<void> Encoder::bind(const VulkanExecutable& executable, VkPipeline pipeline) {
  const VkCommandBuffer commands = batch_->commands;
  std::vector<std::byte>& parameters = lane_.parameters_;
  if (const auto binding = executable.spilled()) {
    auto piece = lane_.staging_.allocate(batch_->staging, parameters.size(),
                                         device_.info().limits.offset_alignment, true);
    if (!piece) return std::move(piece).error();
    std::memcpy(piece->host(), parameters.data(), parameters.size());
    const auto& bindings = executable.bindings();
    const auto at = std::lower_bound(bindings.begin(), bindings.end(), *binding) - bindings.begin();
    lane_.set_[static_cast<std::size_t>(at)] = {piece->buffer->handle(), piece->offset, piece->bytes};
  } else if (!parameters.empty()) {
    device_.vk.CmdPushConstants(commands, executable.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                static_cast<std::uint32_t>(parameters.size()), parameters.data());
  }
  const bool rebind = bound_ != &executable;
  if (std::exchange(pipeline_, pipeline) != pipeline)
    device_.vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  if (!lane_.set_.empty() && (rebind || !same(lane_.set_, lane_.last_set_)))
    if (auto bound = bind_set(executable); !bound) return bound;
  bound_ = &executable;
  return {};
}

Result<void> Encoder::bind_set(const VulkanExecutable& executable) {
  auto set = batch_->sets.allocate(executable);
  if (!set) return std::move(set).error();
  std::vector<VkWriteDescriptorSet>& writes = lane_.writes_;
  writes.clear();
  for (std::size_t i = 0; i < lane_.set_.size(); ++i) {
    VkWriteDescriptorSet& write = writes.emplace_back();
    write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    write.dstSet = *set;
    write.dstBinding = executable.bindings()[i];
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = &lane_.set_[i];
  }
  device_.vk.UpdateDescriptorSets(device_.handle(), static_cast<std::uint32_t>(writes.size()), writes.data(),
                                  0, nullptr);
  device_.vk.CmdBindDescriptorSets(batch_->commands, VK_PIPELINE_BIND_POINT_COMPUTE, executable.layout(), 0,
                                   1, &*set, 0, nullptr);
  lane_.last_set_ = lane_.set_;
  return {};
}

/// Protects pending downloads from a later write. Stages those of this recording before the write,
/// and performs those of earlier submissions now.
Result<void> Encoder::before_write(VulkanBuffer& buffer) {
  std::vector<Batch::Download>& downloads = batch_->downloads;
  for (std::size_t i = 0; i < downloads.size(); ++i) {
    const Batch::Download old = downloads[i];
    if (!old.in_place || old.from != &buffer) continue;
    downloads.erase(downloads.begin() + static_cast<std::ptrdiff_t>(i--));
    if (auto staged = stage_download({old.from, old.offset, old.bytes}, old.target); !staged) return staged;
    pending_ = true;
  }
  return buffer.has_pending_reads() ? buffer.complete_all_reads() : Result<void>();
}

/// Begins the command buffer on the first call, and encodes a pending barrier.
Result<void> Encoder::before_command() {
  if (!begun_) {
    const VkCommandBufferBeginInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                        .pNext = nullptr,
                                        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
                                        .pInheritanceInfo = nullptr};
    if (const VkResult r = device_.vk.BeginCommandBuffer(batch_->commands, &info); r != VK_SUCCESS)
      return device_.failed(r, "vkBeginCommandBuffer",
                            base::text("Device '{}' cannot record commands.", device_.info().id));
    begun_ = true;
  }
  if (std::exchange(pending_, false)) barrier(device_stages, device_reads | device_writes);
  return {};
}

/// Makes all earlier writes visible to `access` of later commands.
void Encoder::barrier(VkPipelineStageFlags stages, VkAccessFlags access) {
  const VkMemoryBarrier all{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                            .pNext = nullptr,
                            .srcAccessMask = device_writes,
                            .dstAccessMask = access};
  device_.vk.CmdPipelineBarrier(batch_->commands, device_stages, stages, 0, 1, &all, 0, nullptr, 0, nullptr);
}

void Encoder::copy_bytes(VulkanBuffer& from, std::uint64_t from_offset, VulkanBuffer& to,
                         std::uint64_t to_offset, std::uint64_t bytes) {
  const VkBufferCopy region{.srcOffset = from_offset, .dstOffset = to_offset, .size = bytes};
  device_.vk.CmdCopyBuffer(batch_->commands, from.handle(), to.handle(), 1, &region);
}

/// Ends the command buffer, then performs the uploads in place. They are last, so a failure writes
/// nothing.
Result<void> Encoder::finish() {
  batch_->has_commands = begun_;
  if (begun_) {
    // The host may read mapped memory as soon as the timeline reaches the value.
    barrier(VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    if (const VkResult r = device_.vk.EndCommandBuffer(batch_->commands); r != VK_SUCCESS)
      return device_.failed(r, "vkEndCommandBuffer",
                            base::text("Device '{}' cannot record commands.", device_.info().id));
  }
  return batch_->write();
}

}  // namespace wye::vulkan
