#pragma once
/// A pipeline, its layout, and how arguments reach it.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/vulkan/vulkan_device.hpp"
#include "device/artefact.hpp"
#include "device/executable.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

/// Threads: thread-safe; only its second pipeline comes later.
class VulkanExecutable final : public device::ExecutableBase {
 public:
  /// Errors: unsupported, compile_failed, out_of_memory, device_lost.
  static Result<std::shared_ptr<VulkanExecutable>> create(std::shared_ptr<VulkanDevice> device,
                                                          const device::Artefact& artefact);
  ~VulkanExecutable() override;
  VulkanExecutable(std::shared_ptr<VulkanDevice> device, const device::Artefact& artefact, Bytes code)
      : ExecutableBase(std::move(device), artefact), code_(code) {}

  Bytes bytes() const noexcept override { return code_ + Bytes{words_.size() * sizeof(words_[0])}; }
  /// All that rows of limits.groups.x workgroups can be, and GlobalInvocationId can count.
  std::uint64_t row_groups() const noexcept override;
  VkPipeline pipeline() const noexcept { return pipeline_; }
  /// Returns the pipeline for a grid of one row of workgroups that is dispatched as rows of limits.groups.x. The first call makes
  /// it. It has the layout of the other one.
  /// Errors: as `create`; unsupported: why the kernel cannot be dispatched so.
  Result<VkPipeline> row_pipeline() const;
  VkPipelineLayout layout() const noexcept { return layout_; }

  /// Bindings of its descriptor set, ascending; the one that spilled parameters take is among them.
  const std::vector<std::uint32_t>& bindings() const noexcept { return bindings_; }
  VkDescriptorSetLayout set_layout() const noexcept { return set_layout_; }
  /// The binding of the parameter block where it does not fit into push constants.
  std::optional<std::uint32_t> spilled() const noexcept { return spilled_; }
  /// Size of the parameter block as it is passed: a multiple of 4.
  std::uint32_t parameter_bytes() const noexcept { return (artefact().parameter_bytes + 3) & ~3u; }

 private:
  Result<void> build(const device::Artefact& artefact);
  Result<void> make_layout();
  Result<VkPipeline> make_pipeline(std::span<const std::uint32_t> words, VkPipelineCreateFlags flags) const;
  VulkanDevice& vulkan() const noexcept { return static_cast<VulkanDevice&>(*device()); }
  Error failed(VkResult result, const char* api) const;

  Bytes code_;
  std::vector<std::uint32_t> bindings_;
  std::optional<std::uint32_t> spilled_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  std::vector<std::uint32_t> words_;  // what the row pipeline is made of; empty if there can be none
  mutable std::atomic<VkPipeline> row_pipeline_{VK_NULL_HANDLE};
};

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
