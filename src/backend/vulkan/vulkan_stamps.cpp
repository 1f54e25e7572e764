#include "backend/vulkan/vulkan_stamps.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "backend/vulkan/vulkan_buffer.hpp"
#include "backend/vulkan/vulkan_device.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::vulkan {
namespace {

constexpr std::uint32_t first_pairs = 32;
constexpr std::uint32_t most_pairs = 1024;
constexpr std::uint64_t results_size = 2 * sizeof(std::uint64_t);

/// Nanoseconds, 146 years: the sum of two such times is a `Duration`.
constexpr long double range = 4611686018427387904.0L;

/// Returns `ticks` in nanoseconds, modulo `range`.
Duration to_duration(std::uint64_t ticks, float period) noexcept {
  return Duration(static_cast<Duration::rep>(std::fmod(static_cast<long double>(ticks) * period, range)));
}

}  // namespace

std::optional<device::StampedTimes> QueueClock::times(std::uint64_t begin, std::uint64_t end) const noexcept {
  const std::uint64_t mask = valid_bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << valid_bits) - 1;
  const std::uint64_t ticks = (end - begin) & mask;
  if (ticks > mask / 2 || static_cast<long double>(ticks) * period >= range) return std::nullopt;
  const Duration from = to_duration(begin & mask, period);
  return device::StampedTimes{
      .begin = from, .end = from + to_duration(ticks, period), .clock = device::StampClock::device};
}

VulkanQueries::~VulkanQueries() {
  for (const VkQueryPool pool : pools_) device_.vk.DestroyQueryPool(device_.handle(), pool, nullptr);
}

Result<QueryPair> VulkanQueries::take() {
  std::uint32_t pairs = first_pairs;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      const QueryPair pair = idle_.back();
      idle_.pop_back();
      return pair;
    }
    for (std::size_t i = 0; i < pools_.size() && pairs < most_pairs; ++i) pairs *= 2;
    pools_.reserve(pools_.capacity() + 1);
    idle_.reserve(idle_.capacity() + pairs);
  }
  const VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                   .pNext = nullptr,
                                   .flags = 0,
                                   .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                   .queryCount = 2 * pairs,
                                   .pipelineStatistics = 0};
  VkQueryPool pool = VK_NULL_HANDLE;
  if (const VkResult r = device_.vk.CreateQueryPool(device_.handle(), &info, nullptr, &pool); r != VK_SUCCESS)
    return device_.failed(r, "vkCreateQueryPool",
                          base::text("Device '{}' cannot create timestamp queries.", device_.info().id));
  const std::lock_guard lock(mutex_);
  pools_.push_back(pool);
  for (std::uint32_t i = pairs; i > 1; --i) idle_.push_back({pool, 2 * (i - 1)});
  return QueryPair{pool, 0};
}

void VulkanQueries::give_back(QueryPair pair) noexcept {
  const std::lock_guard lock(mutex_);
  idle_.push_back(pair);
}

VulkanStamps::VulkanStamps(std::shared_ptr<VulkanDevice> device, QueryPair queries,
                           std::shared_ptr<VulkanBuffer> results) noexcept
    : StampsBase(std::move(device)), queries_(queries), results_(std::move(results)) {}

VulkanStamps::~VulkanStamps() { vulkan().queue().queries().give_back(queries_); }

VulkanDevice& VulkanStamps::vulkan() const noexcept { return static_cast<VulkanDevice&>(*device()); }

Result<std::shared_ptr<device::StampsBase>> VulkanStamps::create(std::shared_ptr<VulkanDevice> device) {
  if (const Error* lost = device->lost()) return *lost;
  if (!device->physical().clock.exists())
    return Error(
        Errc::unsupported,
        base::text("The queue of device '{}' has no clock: it has timestamps of {} bits, with a "
                   "period of {} ns.",
                   device->info().id, device->physical().clock.valid_bits, device->physical().clock.period));
  auto results = VulkanBuffer::create(device, {.bytes = Bytes{results_size},
                                               .use = device::MemoryUse::transfer,
                                               .account = nullptr,
                                               .is_overwritten = true});
  if (!results) return std::move(results).error().with_context("while creating stamps");
  auto queries = device->queue().queries().take();
  if (!queries) return std::move(queries).error();
  try {
    return std::shared_ptr<device::StampsBase>(
        base::make_own<VulkanStamps>(device, *queries, *std::move(results)));
  } catch (...) {
    device->queue().queries().give_back(*queries);
    throw;
  }
}

void VulkanStamps::record_begin(VkCommandBuffer commands) {
  const DeviceTable& vk = vulkan().vk;
  vk.CmdResetQueryPool(commands, queries_.pool, queries_.first, 2);
  vk.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_.pool, queries_.first);
}

void VulkanStamps::record_end(VkCommandBuffer commands) {
  const DeviceTable& vk = vulkan().vk;
  vk.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_.pool, queries_.first + 1);
  vk.CmdCopyQueryPoolResults(commands, queries_.pool, queries_.first, 2, results_->handle(), 0,
                             sizeof(std::uint64_t), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
}

std::optional<device::StampedTimes> VulkanStamps::times() noexcept {
  std::uint64_t ticks[2] = {};
  static_assert(sizeof(ticks) == results_size);
  try {
    if (!results_->invalidate(0, results_size)) return std::nullopt;
  } catch (...) {  // no memory for the error
    return std::nullopt;
  }
  std::memcpy(ticks, results_->mapped(), results_size);
  return vulkan().physical().clock.times(ticks[0], ticks[1]);
}

}  // namespace wye::vulkan
