// The list of devices has the driver's description of each, and the reason for each unusable one.
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "backend/vulkan/driver.hpp"
#include "backend/vulkan/rig.hpp"
#include "backend/vulkan/vulkan_loader.hpp"
#include "base/file.hpp"

namespace wye::test {
namespace {

using vulkan::VulkanInstance;

#define no_driver_test "without a driver there is one entry with the reason"

/// Captures standard output and error while it lives.
class Listener {
 public:
  Listener() : file_(std::tmpfile()) {
    std::fflush(nullptr);
    for (int i = 0; i < 2; ++i) {
      kept_[i] = dup(i + 1);
      dup2(fileno(file_), i + 1);
    }
  }
  ~Listener() { stop(); }
  std::string stop() {
    std::string text;
    if (!file_) return text;
    std::fflush(nullptr);
    for (int i = 0; i < 2; ++i) {
      dup2(kept_[i], i + 1);
      close(kept_[i]);
    }
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) text += static_cast<char>(c);
    std::fclose(std::exchange(file_, nullptr));
    return text;
  }

 private:
  std::FILE* file_;
  int kept_[2];
};

/// The one entry of a backend that has no device; nothing has been printed.
AdapterInfo only_entry(const VulkanOptions& options) {
  Listener listener;
  const auto found = discover(options);
  CHECK(listener.stop() == "");
  REQUIRE(found.size() == 1);
  CHECK_FALSE(found[0].adapter);
  CHECK_FALSE(found[0].info.usable);
  CHECK_FALSE(found[0].info.reason.empty());
  CHECK(found[0].info.backend == "vulkan");
  UNSCOPED_INFO(found[0].info.reason);
  return found[0].info;
}

bool says(const AdapterInfo& info, std::string_view words) {
  return info.reason.find(words) != std::string::npos;
}

TEST_CASE("every device is listed with its driver's description", "[vulkan]") {
  Listener listener;
  const auto found = discover();
  CHECK(listener.stop() == "");
  REQUIRE_FALSE(found.empty());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const AdapterInfo& info = found[i].info;
    INFO(info.id << " " << info.name << " " << info.reason);
    CHECK(info.id == "vulkan:" + std::to_string(i));
    CHECK(info.backend == "vulkan");
    CHECK_FALSE(info.name.empty());
    CHECK(info.usable == info.reason.empty());
    if (!info.usable) continue;
    CHECK(info.device_uuid != Uuid{});
    CHECK(info.driver_uuid != Uuid{});
    CHECK_FALSE(info.driver.empty());
    CHECK(info.api.substr(0, 9) == "Vulkan 1.");
    CHECK(info.memory.count >= 64u << 20);
    const Limits& l = info.limits;
    CHECK(l.workgroup_invocations >= 128);
    CHECK(l.groups.x >= 65535);
    CHECK(l.buffer.count >= 1u << 30);
    CHECK(l.descriptor_range.count >= 1u << 27);
    CHECK(l.shared_memory.count >= 16384);
    CHECK(l.parameter_bytes.count >= 128);
    CHECK(l.bound_buffers >= 4);
    CHECK(l.offset_alignment >= 1);
    CHECK(l.subgroup_size >= 1);
  }
}

TEST_CASE("lavapipe is listed as a CPU", "[vulkan]") {
  for (const Discovered& one : discover())
    if (one.info.name.substr(0, 8) == "llvmpipe") {
      CHECK(one.info.type == AdapterType::cpu);
      CHECK(one.info.driver.substr(0, 14) == "llvmpipe Mesa ");
      CHECK(one.info.features.contains(
          {Feature::int64, Feature::float64, Feature::storage8, Feature::atomics_float32}));
    }
}

TEST_CASE("a machine without a loader has one entry with the reason", "[vulkan]") {
  const AdapterInfo info = only_entry({.loaders = {"libno_such_vulkan.so.1", "libnor_this.so"}});
  CHECK(info.id == "vulkan");
  CHECK(says(info, "libno_such_vulkan.so.1"));
  CHECK(says(info, "libnor_this.so"));
}

TEST_CASE("a library that is no loader has a reason of its own", "[vulkan]") {
  CHECK(says(only_entry({.loaders = {"libm.so.6"}}), "not a Vulkan loader"));
}

TEST_CASE("an instance that cannot be made is an entry with the driver's words", "[vulkan]") {
  const struct {
    VkResult result;
    const char* words;
  } rows[] = {{VK_ERROR_INCOMPATIBLE_DRIVER, "No Vulkan driver is installed"},
              {VK_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY"},
              {VK_ERROR_INITIALIZATION_FAILED, "VK_ERROR_INITIALIZATION_FAILED"},
              {VK_ERROR_LAYER_NOT_PRESENT, "VK_ERROR_LAYER_NOT_PRESENT"}};
  for (const auto& row : rows) {
    Driver driver;
    driver.fail("vkCreateInstance", 1, row.result);
    const AdapterInfo info = only_entry({.wrap = driver.wrap()});
    CHECK(says(info, row.words));
    CHECK(says(info, "vkCreateInstance"));
    CHECK(driver.alive_text() == "");
  }
}

TEST_CASE("an icd list that points nowhere means no driver, and nothing is printed", "[vulkan]") {
  // In a child process: the loader reads its environment.
  for (const char* variable : {"VK_ICD_FILENAMES", "VK_DRIVER_FILES"}) {
    const std::string command = std::string(variable) + "=/nonexistent/icd.json '" + base::own_path() +
                                "' '" + no_driver_test + "' 2>&1";
    std::FILE* child = popen(command.c_str(), "r");
    REQUIRE(child);
    std::string said;
    for (int c = std::fgetc(child); c != EOF; c = std::fgetc(child)) said += static_cast<char>(c);
    INFO(said);
    CHECK(pclose(child) == 0);
    CHECK(said.find("All tests passed") != std::string::npos);
  }
}

TEST_CASE(no_driver_test, "[.]") { CHECK(says(only_entry({}), "No Vulkan driver is installed")); }

TEST_CASE("drivers without a device are an entry with the reason", "[vulkan]") {
  Driver driver;
  driver.replace<PFN_vkEnumeratePhysicalDevices>(
      "vkEnumeratePhysicalDevices", [](PFN_vkEnumeratePhysicalDevices, VkInstance, std::uint32_t* count,
                                       VkPhysicalDevice*) { return *count = 0, VK_SUCCESS; });
  CHECK(says(only_entry({.wrap = driver.wrap()}), "have no device"));
}

TEST_CASE("drivers that do not answer are an entry with their words", "[vulkan]") {
  for (const unsigned nth : {1u, 2u}) {
    Driver driver;
    driver.fail("vkEnumeratePhysicalDevices", nth, VK_ERROR_INITIALIZATION_FAILED);
    CHECK(says(only_entry({.wrap = driver.wrap()}), "vkEnumeratePhysicalDevices"));
    CHECK(driver.alive_text() == "");
  }
}

TEST_CASE("an old loader is refused with both versions", "[vulkan]") {
  Driver driver;
  driver.replace<PFN_vkEnumerateInstanceVersion>("vkEnumerateInstanceVersion",
                                                 [](PFN_vkEnumerateInstanceVersion, std::uint32_t* version) {
                                                   return *version = VK_API_VERSION_1_1, VK_SUCCESS;
                                                 });
  CHECK(says(only_entry({.wrap = driver.wrap()}), "version 1.1; wye needs 1.2"));
}

TEST_CASE("a device that lacks a feature is listed with the feature's name", "[vulkan]") {
  using V12 = VkPhysicalDeviceVulkan12Features;
  const struct {
    VkBool32 V12::*feature;
    const char* name;
  } rows[] = {{&V12::timelineSemaphore, "timelineSemaphore"},
              {&V12::bufferDeviceAddress, "bufferDeviceAddress"}};
  for (const auto& row : rows) {
    Driver driver;
    driver.replace<PFN_vkGetPhysicalDeviceFeatures2>(
        "vkGetPhysicalDeviceFeatures2", [&](PFN_vkGetPhysicalDeviceFeatures2 real, VkPhysicalDevice device,
                                            VkPhysicalDeviceFeatures2* features) {
          real(device, features);
          for (auto* next = static_cast<VkBaseOutStructure*>(features->pNext); next; next = next->pNext)
            if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES)
              reinterpret_cast<V12*>(next)->*row.feature = VK_FALSE;
        });
    const auto found = discover({.wrap = driver.wrap()});
    for (const Discovered& one : found) {
      CHECK_FALSE(one.adapter);
      INFO(one.info.reason);
      CHECK(says(one.info, row.name));
      CHECK(says(one.info, one.info.name));
    }
  }
}

TEST_CASE("a device of Vulkan 1.1 is listed with the reason", "[vulkan]") {
  Driver driver;
  driver.replace<PFN_vkGetPhysicalDeviceProperties2>(
      "vkGetPhysicalDeviceProperties2",
      [](PFN_vkGetPhysicalDeviceProperties2 real, VkPhysicalDevice device, VkPhysicalDeviceProperties2* out) {
        real(device, out);
        out->properties.apiVersion = VK_MAKE_API_VERSION(0, 1, 1, 200);
      });
  for (const Discovered& one : discover({.wrap = driver.wrap()})) {
    CHECK_FALSE(one.adapter);
    CHECK(says(one.info, "Vulkan 1.1.200; wye needs Vulkan 1.2"));
  }
}

TEST_CASE("peers 10: a device without a queue that computes, or any, is listed with the reason", "[vulkan]") {
  for (const bool any : {true, false}) {
    Driver driver;
    driver.replace<PFN_vkGetPhysicalDeviceQueueFamilyProperties>(
        "vkGetPhysicalDeviceQueueFamilyProperties",
        [any](PFN_vkGetPhysicalDeviceQueueFamilyProperties real, VkPhysicalDevice device,
              std::uint32_t* count, VkQueueFamilyProperties* families) {
          real(device, count, families);
          for (std::uint32_t i = 0; families && i < *count; ++i)
            families[i].queueFlags = VK_QUEUE_GRAPHICS_BIT;
          if (!any) *count = 0;
        });
    const auto found = discover({.wrap = driver.wrap()});
    CHECK_FALSE(found.empty());
    for (const Discovered& one : found) {
      CHECK_FALSE(one.adapter);
      CHECK(says(one.info, "no queue family that supports compute"));
    }
  }
}

TEST_CASE("a device that fails to open reports the reason and leaves no objects", "[vulkan]") {
  for (const VkResult result :
       {VK_ERROR_INITIALIZATION_FAILED, VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_DEVICE_LOST}) {
    Driver driver;
    {
      const auto found = discover({.wrap = driver.wrap()});
      driver.fail("vkCreateDevice", 1, result);
      for (const Discovered& one : found) {
        if (!one.adapter) continue;
        auto opened = one.adapter->open();
        REQUIRE_FALSE(opened);
        REQUIRE(opened.error().native());
        CHECK(opened.error().native()->api == "vkCreateDevice");
        CHECK(opened.error().native()->number == result);
        good(one.adapter->open());  // it may work the next time
        break;
      }
    }
    CHECK(driver.alive_text() == "");
  }
}

TEST_CASE("drivers without VK_KHR_cooperative_matrix do not get its struct", "[vulkan]") {
  for (const bool has : {false, true})
    for (const bool has_atomic_float : {false, true}) {
      vulkan::FeatureChain chain;
      chain.has_cooperative_matrix = has;
      chain.has_atomic_float = has_atomic_float;
      int seen = 0;
      for (auto* next = static_cast<const VkBaseInStructure*>(chain.link()->pNext); next; next = next->pNext)
        seen += next->sType == vulkan::cooperative_matrix_features ? 1 : 0;
      CHECK(seen == (has ? 1 : 0));
    }
  Driver driver;
  bool seen = false;
  driver.replace<PFN_vkGetPhysicalDeviceFeatures2>(
      "vkGetPhysicalDeviceFeatures2", [&](PFN_vkGetPhysicalDeviceFeatures2 real, VkPhysicalDevice device,
                                          VkPhysicalDeviceFeatures2* features) {
        for (auto* next = static_cast<const VkBaseInStructure*>(features->pNext); next; next = next->pNext)
          seen |= next->sType == vulkan::cooperative_matrix_features;
        real(device, features);
      });
  for (const Discovered& one : discover({.wrap = driver.wrap()})) {
    const bool has = one.info.features.has(Feature::cooperative_matrix);
    CHECK((!has || seen));
    CHECK(has == (one.info.limits.cooperative_matrix != Extent3(0, 0, 0)));
  }
  CHECK(seen == (driver.calls("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR") != 0));
}

TEST_CASE("cooperative matrices are offered in a size that kernels can use, with the memory model",
          "[vulkan]") {
  using Product = VkCooperativeMatrixPropertiesKHR;
  const auto half = VK_COMPONENT_TYPE_FLOAT16_KHR;
  const auto sum = VK_COMPONENT_TYPE_FLOAT32_KHR;
  const auto of = [&](std::uint32_t m, std::uint32_t n, std::uint32_t k) {
    return Product{vulkan::cooperative_matrix_properties,
                   nullptr,
                   m,
                   n,
                   k,
                   half,
                   half,
                   sum,
                   sum,
                   VK_FALSE,
                   VK_SCOPE_SUBGROUP_KHR};
  };
  CHECK(vulkan::cooperative_matrix_of({}) == Extent3(0, 0, 0));
  const Product nvidia[] = {of(16, 8, 8), of(16, 16, 16), of(16, 8, 16)}, intel[] = {of(8, 16, 16)},
                others[] = {of(16, 16, 32), of(12, 16, 16)};
  CHECK(vulkan::cooperative_matrix_of(nvidia) == Extent3(16, 16, 16));
  CHECK(vulkan::cooperative_matrix_of(intel) == Extent3(8, 16, 16));
  CHECK(vulkan::cooperative_matrix_of(others) == Extent3(0, 0, 0));
  Product rounded = of(16, 16, 16);
  rounded.ResultType = half;
  CHECK(vulkan::cooperative_matrix_of(std::span(&rounded, 1)) == Extent3(0, 0, 0));

  vulkan::FeatureChain offered;
  offered.has_cooperative_matrix = true;
  offered.cooperative_matrix.cooperativeMatrix = VK_TRUE;
  offered.v12.vulkanMemoryModel = VK_TRUE;
  const auto has = [&](const Extent3& size) {
    return vulkan::features_of(vulkan::wanted_of(offered), 0, size).has(Feature::cooperative_matrix);
  };
  CHECK_FALSE(has({16, 16, 16}));  // no atomics of device scope, therefore no memory model
  offered.v12.vulkanMemoryModelDeviceScope = VK_TRUE;
  CHECK(has({16, 16, 16}));
  CHECK_FALSE(has({0, 0, 0}));
}

TEST_CASE("only listed features are enabled", "[vulkan]") {
  Driver driver;
  bool seen = false;
  driver.replace<PFN_vkCreateDevice>(
      "vkCreateDevice",
      [&](PFN_vkCreateDevice real, VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
          const VkAllocationCallbacks* callbacks, VkDevice* device) {
        seen = true;
        CHECK(info->pEnabledFeatures == nullptr);
        CHECK(info->queueCreateInfoCount == 1);
        CHECK(info->pQueueCreateInfos->queueCount == 1);
        CHECK(info->enabledExtensionCount <= 5);
        const auto* features = static_cast<const VkPhysicalDeviceFeatures2*>(info->pNext);
        CHECK_FALSE(features->features.robustBufferAccess);
        CHECK_FALSE(features->features.geometryShader);
        CHECK_FALSE(features->features.shaderImageGatherExtended);
        for (auto* next = static_cast<const VkBaseInStructure*>(features->pNext); next; next = next->pNext)
          if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) {
            const auto* v12 = reinterpret_cast<const VkPhysicalDeviceVulkan12Features*>(next);
            CHECK(v12->timelineSemaphore);
            CHECK(v12->bufferDeviceAddress);
            CHECK_FALSE(v12->bufferDeviceAddressCaptureReplay);
            CHECK_FALSE(v12->descriptorIndexing);
          }
        return real(physical, info, callbacks, device);
      });
  open_device({.wrap = driver.wrap()});
  CHECK(seen);
}

TEST_CASE("backends without validation and wrapping share one instance, which ends with the last of them",
          "[vulkan]") {
  std::weak_ptr<VulkanInstance> weak;
  {
    const auto first = good(VulkanInstance::open({}, {})), second = good(VulkanInstance::open({}, {}));
    CHECK(first == second);
    weak = first;
    const auto validating = good(VulkanInstance::open({}, {.cpu_threads = 0, .validate = true, .log = {}}));
    CHECK(validating != first);
  }
  CHECK(weak.expired());
  CHECK(good(VulkanInstance::open({}, {})));
}

TEST_CASE("the instance lives as long as a device of it", "[vulkan]") {
  Driver driver;
  {
    auto device = open_device({.wrap = driver.wrap()});
    CHECK(driver.alive()["Instance"] == 1);
    device.reset();
    CHECK(driver.alive_text() == "");
  }
}

}  // namespace
}  // namespace wye::test
