// The driver's pipeline cache, stored outside of the driver.
#include "backend/vulkan/driver.hpp"
#include "backend/vulkan/rig.hpp"

namespace wye::test {
namespace {

using Code = std::vector<std::byte>;

/// The initial data of the driver's pipeline cache.
struct Given {
  Driver driver;
  std::vector<Code> begun;
  Code tells;  ///< the data that it returns, after its own header

  Given() {
    driver.replace<PFN_vkCreatePipelineCache>(
        "vkCreatePipelineCache",
        [this](PFN_vkCreatePipelineCache real, VkDevice device, const VkPipelineCacheCreateInfo* info,
               const VkAllocationCallbacks* allocation, VkPipelineCache* made) {
          const auto* data = static_cast<const std::byte*>(info->pInitialData);
          begun.emplace_back(data, data + info->initialDataSize);
          return real(device, info, allocation, made);
        });
    driver.replace<PFN_vkGetPipelineCacheData>(
        "vkGetPipelineCacheData", [this](PFN_vkGetPipelineCacheData real, VkDevice device,
                                         VkPipelineCache cache, std::size_t* size, void* data) {
          constexpr std::size_t header = sizeof(VkPipelineCacheHeaderVersionOne);
          std::size_t own = header;
          if (!data) return *size = header + tells.size(), VK_SUCCESS;
          if (*size < header + tells.size()) return VK_INCOMPLETE;
          const VkResult result = real(device, cache, &own, data);
          std::copy(tells.begin(), tells.end(), static_cast<std::byte*>(data) + header);
          *size = header + tells.size();
          return result;
        });
  }
  VulkanOptions options() { return {.wrap = driver.wrap()}; }
};

TEST_CASE("driver code is loaded into a new device", "[vulkan]") {
  Given given;
  given.tells = Code(5000, std::byte{9});
  Code code;
  {
    Rig rig(given.options());
    CHECK(good(rig.device().driver_code()).empty());
    rig.kernel("add");
    rig.kernel("mix");
    CHECK(given.begun == std::vector<Code>{{}});  // one memory for all pipelines
    code = good(rig.device().driver_code());
    CHECK(code.size() == 5032);
  }
  given.begun.clear();
  Rig rig(given.options(), false);
  good(rig.device().preload(code));
  CHECK(given.begun == std::vector<Code>{code});
  rig.kernel("add");
  CHECK(given.begun.size() == 1);
  good(rig.device().preload(code));  // too late
  CHECK(given.begun.size() == 1);
  CHECK(rig.device().driver_identity() == Rig().device().driver_identity());
}

TEST_CASE("data of another driver never reaches this driver", "[vulkan]") {
  Given given;
  given.tells = Code(50, std::byte{9});
  Rig rig(given.options());
  rig.kernel("add");
  const Code code = good(rig.device().driver_code());
  rig.close();
  given.begun.clear();
  Rig other(given.options());
  for (std::size_t at = 0; at < sizeof(VkPipelineCacheHeaderVersionOne); ++at) {
    Code wrong = code;
    wrong[at] ^= std::byte{1};
    const auto refused = other.device().preload(wrong);
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == Errc::corrupt);
    CHECK_FALSE(other.device().preload(std::span(code).first(at)));
  }
  CHECK(given.begun.empty());
  CHECK(other.device().preload(code));
}

TEST_CASE("lavapipe returns 32 bytes, and accepts them again", "[vulkan]") {
  Code code;
  {
    Rig rig;
    rig.kernel("add");
    code = good(rig.device().driver_code());
    CHECK(code.size() >= sizeof(VkPipelineCacheHeaderVersionOne));
  }
  Rig rig;
  good(rig.device().preload(code));
  rig.kernel("add");
  CHECK(good(rig.device().driver_code()).size() >= code.size());
}

TEST_CASE("a memory of pipelines that grows while it is read is read again", "[vulkan]") {
  Driver driver;
  Rig rig({.wrap = driver.wrap()});
  rig.kernel("add");
  int calls = 0;
  driver.replace<PFN_vkGetPipelineCacheData>(
      "vkGetPipelineCacheData",
      [&](PFN_vkGetPipelineCacheData real, VkDevice device, VkPipelineCache cache, std::size_t* size,
          void* data) { return data && ++calls == 1 ? VK_INCOMPLETE : real(device, cache, size, data); });
  CHECK_FALSE(good(rig.device().driver_code()).empty());
  CHECK(calls == 2);
  driver.replace<PFN_vkGetPipelineCacheData>(
      "vkGetPipelineCacheData",
      [&](PFN_vkGetPipelineCacheData real, VkDevice device, VkPipelineCache cache, std::size_t* size,
          void* data) { return data ? VK_INCOMPLETE : real(device, cache, size, data); });
  CHECK(good(rig.device().driver_code()).empty());
}

}  // namespace
}  // namespace wye::test
