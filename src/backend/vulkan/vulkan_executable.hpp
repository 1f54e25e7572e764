#pragma once
/// Pipelines, their layouts, and how arguments are passed.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/vulkan/vulkan_device.hpp"
#include "device/artefact.hpp"
#include "device/executable.hpp"

namespace wye::inline v0::vulkan {

/// A pipeline of one kernel, and a second pipeline for long rows, which is created on demand.
/// Threads: thread-safe.
class VulkanExecutable final : public device::ExecutableBase {
 public:
  /// Errors: unsupported, compile_failed, out_of_memory, device_lost.
  static Result<std::shared_ptr<VulkanExecutable>> create(std::shared_ptr<VulkanDevice> device,
                                                          const device::Artefact& artefact);
  ~VulkanExecutable() override;
  VulkanExecutable(std::shared_ptr<VulkanDevice> device, const device::Artefact& artefact, Bytes code)
      : ExecutableBase(std::move(device), artefact), code_(code) {}

  Bytes bytes() const noexcept override { return code_ + Bytes{words_.size() * sizeof(words_[0])}; }
  /// Returns the most workgroups in rows of limits.groups.x. GlobalInvocationId, a 32-bit number,
  /// limits it, too.
  std::uint64_t row_groups() const noexcept override;
  bool may_end_loops_early() const noexcept override { return may_end_loops_early_; }
  VkPipeline pipeline() const noexcept { return pipeline_; }
  /// Returns the pipeline for a one-dimensional grid that is dispatched as rows of limits.groups.x
  /// workgroups. The first call creates it. Both pipelines have the same layout.
  /// Errors: as `create`; unsupported (the kernel cannot be dispatched in rows).
  Result<VkPipeline> row_pipeline() const;
  VkPipelineLayout layout() const noexcept { return layout_; }

  /// Returns the bindings of its descriptor set, ascending, including that of spilled parameters.
  const std::vector<std::uint32_t>& bindings() const noexcept { return bindings_; }
  VkDescriptorSetLayout set_layout() const noexcept { return set_layout_; }
  /// Returns the binding of the parameter block if it exceeds the push constants.
  std::optional<std::uint32_t> spilled() const noexcept { return spilled_; }
  /// Returns the size of the passed parameter block, a multiple of 4.
  std::uint32_t parameter_bytes() const noexcept { return (artefact().parameter_bytes + 3) & ~3u; }

 private:
  Result<void> build(const device::Artefact& artefact);
  Result<void> make_layout();
  Result<VkPipeline> make_pipeline(std::span<const std::uint32_t> words, VkPipelineCreateFlags flags) const;
  VulkanDevice& vulkan() const noexcept { return static_cast<VulkanDevice&>(*device()); }
  Error failed(VkResult result, const char* api) const;

  Bytes code_;
  bool may_end_loops_early_ = false;
  std::vector<std::uint32_t> bindings_;
  std::optional<std::uint32_t> spilled_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  std::vector<std::uint32_t> words_;  // the code of the row pipeline; empty if there is none
  mutable std::atomic<VkPipeline> row_pipeline_{VK_NULL_HANDLE};
};

}  // namespace wye::vulkan
