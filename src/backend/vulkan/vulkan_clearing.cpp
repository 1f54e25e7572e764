#include "backend/vulkan/vulkan_clearing.hpp"

#include <limits>
#include <utility>

#include "backend/vulkan/vulkan_device.hpp"
#include "base/backoff.hpp"
#include "base/text.hpp"

namespace wye::inline v0::vulkan {

VulkanClearing::~VulkanClearing() { destroy(all_); }

void VulkanClearing::destroy(One& list) noexcept {
  for (const Commands& one : list) {
    if (one.pool != VK_NULL_HANDLE) device_.vk.DestroyCommandPool(device_.handle(), one.pool, nullptr);
    if (one.done != VK_NULL_HANDLE) device_.vk.DestroySemaphore(device_.handle(), one.done, nullptr);
  }
  list.clear();
}

Result<VulkanClearing::Fill> VulkanClearing::clear(VkBuffer buffer) {
  auto one = take();
  if (!one) return std::move(one).error();
  Commands& commands = one->front();
  auto done = record(commands, buffer);
  if (done) done = device_.queue().submit(commands.done, commands.value + 1, commands.commands, {}, {});
  if (done) ++commands.value;
  const Fill fill{commands.done, commands.value};
  const std::lock_guard lock(mutex_);
  all_.splice(all_.end(), *one);
  if (!done) return std::move(done).error();
  return fill;
}

/// Returns commands whose last fill has completed.
Result<VulkanClearing::One> VulkanClearing::take() {
  One one;
  {
    const std::lock_guard lock(mutex_);
    if (!all_.empty()) one.splice(one.begin(), all_, all_.begin());
  }
  if (!one.empty()) {
    std::uint64_t value = 0;
    const VkResult r = device_.vk.GetSemaphoreCounterValue(device_.handle(), one.front().done, &value);
    if (r == VK_SUCCESS && value >= one.front().value) return one;
    {
      const std::lock_guard lock(mutex_);
      all_.splice(all_.begin(), one);
    }
    if (r == VK_ERROR_DEVICE_LOST) return device_.lose("vkGetSemaphoreCounterValue");
  }
  if (auto created = create(one.emplace_back()); !created) {
    destroy(one);
    return std::move(created).error();
  }
  return one;
}

Result<void> VulkanClearing::create(Commands& commands) {
  const auto failed = [&](VkResult result, const char* api) {
    return device_.failed(result, api,
                          base::text("Device '{}' cannot clear a buffer now.", device_.info().id));
  };
  const VkCommandPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                     .pNext = nullptr,
                                     .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                     .queueFamilyIndex = device_.physical().queue_family};
  if (const VkResult r = device_.vk.CreateCommandPool(device_.handle(), &pool, nullptr, &commands.pool);
      r != VK_SUCCESS)
    return commands.pool = VK_NULL_HANDLE, failed(r, "vkCreateCommandPool");
  const VkCommandBufferAllocateInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                         .pNext = nullptr,
                                         .commandPool = commands.pool,
                                         .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                         .commandBufferCount = 1};
  if (const VkResult r = device_.vk.AllocateCommandBuffers(device_.handle(), &info, &commands.commands);
      r != VK_SUCCESS)
    return failed(r, "vkAllocateCommandBuffers");
  const VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                       .pNext = nullptr,
                                       .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
                                       .initialValue = 0};
  const VkSemaphoreCreateInfo semaphore{
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type, .flags = 0};
  if (const VkResult r = device_.vk.CreateSemaphore(device_.handle(), &semaphore, nullptr, &commands.done);
      r != VK_SUCCESS)
    return commands.done = VK_NULL_HANDLE, failed(r, "vkCreateSemaphore");
  return {};
}

Result<void> VulkanClearing::record(const Commands& commands, VkBuffer buffer) {
  const VkCommandBufferBeginInfo once{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .pNext = nullptr,
                                      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
                                      .pInheritanceInfo = nullptr};
  const auto failed = [&](VkResult result, const char* api) {
    return device_.failed(
        result, api, base::text("Device '{}' cannot record the clearing of a buffer.", device_.info().id));
  };
  if (const VkResult r = device_.vk.BeginCommandBuffer(commands.commands, &once); r != VK_SUCCESS)
    return failed(r, "vkBeginCommandBuffer");
  device_.vk.CmdFillBuffer(commands.commands, buffer, 0, VK_WHOLE_SIZE, 0);
  if (const VkResult r = device_.vk.EndCommandBuffer(commands.commands); r != VK_SUCCESS)
    return failed(r, "vkEndCommandBuffer");
  return {};
}

bool VulkanClearing::wait(const Fill& fill) noexcept {
  const auto has_ended = [&] {
    std::uint64_t value = 0;
    const VkResult r = device_.vk.GetSemaphoreCounterValue(device_.handle(), fill.done, &value);
    if (r == VK_ERROR_DEVICE_LOST) device_.lose("vkGetSemaphoreCounterValue");
    return r == VK_SUCCESS && value >= fill.value;
  };
  const VkSemaphoreWaitInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                 .pNext = nullptr,
                                 .flags = 0,
                                 .semaphoreCount = 1,
                                 .pSemaphores = &fill.done,
                                 .pValues = &fill.value};
  base::Backoff backoff;
  while (!device_.lost() && !has_ended()) {
    const VkResult r =
        device_.vk.WaitSemaphores(device_.handle(), &info, std::numeric_limits<std::uint64_t>::max());
    if (r == VK_SUCCESS) return true;
    if (r == VK_ERROR_DEVICE_LOST) device_.lose("vkWaitSemaphores");
    if (!device_.lost() && r != VK_TIMEOUT && !backoff.sleep(Instant::max())) return false;
  }
  return true;
}

}  // namespace wye::vulkan
