#pragma once
/// Stamps as timestamp queries.
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backend/vulkan/vulkan_dispatch.hpp"
#include "device/stamps.hpp"

namespace wye::inline v0::vulkan {

class VulkanBuffer;
class VulkanDevice;

/// The clock of a queue, as the driver describes it.
struct QueueClock {
  std::uint32_t valid_bits = 0;  ///< of a timestamp; zero: the queue has no clock
  float period = 0;              ///< nanoseconds of one tick
  bool exists() const noexcept { return valid_bits != 0 && period > 0; }
  /// Returns the times of two timestamps, of which the clock may have wrapped around once between
  /// them; nothing if `end` is before `begin`. A clock wraps around too soon to tell a span of more
  /// than half its range from that.
  std::optional<device::StampedTimes> times(std::uint64_t begin, std::uint64_t end) const noexcept;
};

/// Two adjacent queries.
struct QueryPair {
  VkQueryPool pool = VK_NULL_HANDLE;
  std::uint32_t first = 0;
};

/// The timestamp queries of a device. Pools stay until it ends, and stamps take turns with their
/// queries.
/// Threads: thread-safe.
class VulkanQueries {
 public:
  explicit VulkanQueries(VulkanDevice& device) : device_(device) {}
  VulkanQueries(const VulkanQueries&) = delete;
  ~VulkanQueries();
  /// Errors: out_of_memory, device_lost.
  Result<QueryPair> take();
  /// Takes back queries that no work in flight uses.
  void give_back(QueryPair pair) noexcept;

 private:
  VulkanDevice& device_;
  std::mutex mutex_;
  std::vector<VkQueryPool> pools_;
  std::vector<QueryPair> idle_;  // has room for the pairs of all pools
};

/// The device copies the timestamps to memory that the host reads. vkGetQueryPoolResults would be a
/// call of the driver for each span, and the one of lavapipe (Mesa 22.3) waits until the device is
/// idle.
/// Threads: thread-safe; one thread at a time records.
class VulkanStamps final : public device::StampsBase {
 public:
  /// Errors: unsupported (the queue has no clock), out_of_memory, device_lost.
  static Result<std::shared_ptr<device::StampsBase>> create(std::shared_ptr<VulkanDevice> device);
  VulkanStamps(std::shared_ptr<VulkanDevice> device, QueryPair queries,
               std::shared_ptr<VulkanBuffer> results) noexcept;
  ~VulkanStamps() override;
  /// Records commands into `commands`. A barrier orders them after all earlier commands.
  void record_begin(VkCommandBuffer commands);
  void record_end(VkCommandBuffer commands);

 private:
  std::optional<device::StampedTimes> times() noexcept override;
  VulkanDevice& vulkan() const noexcept;
  const QueryPair queries_;
  const std::shared_ptr<VulkanBuffer> results_;  // both timestamps
};

}  // namespace wye::vulkan
