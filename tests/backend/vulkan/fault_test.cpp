// Any call of the driver may fail at any time: nothing crashes, hangs, leaks, or gives stale data
// for a result.
#include "backend/vulkan/driver.hpp"
#include "backend/vulkan/rig.hpp"

namespace wye::test {
namespace {

constexpr Word poison = 0xdeadbeef;

/// The result of a run: the first error, if any, and the downloaded words.
struct Outcome {
  std::optional<Error> error;
  std::vector<Word> out = std::vector<Word>(length, poison);
};

std::vector<Word> expected() {
  auto a = random_words(1, length);
  const auto b = random_words(2, length);
  for (std::size_t i = 0; i < length; ++i) a[i] = ((a[i] + 4) * 3 + b[i] + 6) + 4;
  return a;
}

/// Opens, allocates, compiles, uploads on every way there is, dispatches, waits, downloads.
Outcome scenario(const std::shared_ptr<Adapter>& adapter) {
  Outcome outcome;
  const auto stop = [&](const Error& error) { return outcome.error = error, outcome; };
  auto opened = adapter->open();
  if (!opened) return stop(opened.error());
  const std::shared_ptr<DeviceBase> device = *opened;
  std::vector<std::shared_ptr<BufferBase>> buffers;
  for (int i = 0; i < 3; ++i) {
    auto buffer =
        device->create_buffer({.bytes = Bytes{4 * length}, .use = MemoryUse::device, .account = nullptr});
    if (!buffer) return stop(buffer.error());
    buffers.push_back(*buffer);
  }
  std::vector<std::shared_ptr<ExecutableBase>> kernels;
  for (const auto& [name, twin] : {std::pair{"add", Twin::descriptors}, std::pair{"mix", Twin::addresses}}) {
    auto kernel = device->create_executable(good(test_kernel(name, "spirv", twin)));
    if (!kernel) return stop(kernel.error());
    kernels.push_back(*kernel);
  }
  auto code = device->driver_code();
  if (!code) return stop(code.error());
  auto first = device->create_lane();
  if (!first) return stop(first.error());
  auto second = device->create_lane();
  if (!second) return stop(second.error());
  auto gate = device->create_timeline();
  if (!gate) return stop(gate.error());
  auto stamps = device->create_stamps();
  if (!stamps) return stop(stamps.error());

  Lane lane(*std::move(first)), other(*std::move(second));
  const auto a = random_words(1, length), b = random_words(2, length);
  lane.upload(bytes_of(a), range(buffers[0]));
  lane.upload(bytes_of(b), range(buffers[1]));
  lane.dispatch(kernels[0], arguments_of(argument(buffers[0]), Word{4}), length);
  const TimelinePoint point = lane.submit();
  other.wait_for({*gate, 1});
  if (!lane.failure()) other.wait_for(point);
  other.dispatch(kernels[1], arguments_of(argument(buffers[1]), argument(buffers[0]), Word{6}), length);
  other.copy(range(buffers[0]), range(buffers[2]));
  const TimelinePoint parked = other.submit();
  if (auto signaled = (*gate)->signal(1); !signaled) return stop(signaled.error());
  if (auto waited = other.wait(Instant::max()); !waited) return stop(waited.error());
  if (!lane.failure()) lane.wait_for(parked);
  lane.stamp_begin(*stamps);
  lane.dispatch(kernels[0], arguments_of(argument(buffers[2]), Word{4}), length);
  lane.stamp_end(*stamps);
  lane.download(range(buffers[2]), writable_bytes_of(outcome.out));
  lane.submit();
  lane.fill(range(buffers[2]), 1);
  if (auto waited = lane.wait(Instant::max()); !waited) return stop(waited.error());
  if (const auto times = (*stamps)->read()) REQUIRE(times->begin <= times->end);
  return outcome;
}

/// The calls that can answer with an error (vkResetDescriptorPool cannot), and are made between
/// opening a device and closing it.
constexpr const char* functions[] = {"vkCreateDevice",
                                     "vkAllocateMemory",
                                     "vkMapMemory",
                                     "vkCreateBuffer",
                                     "vkBindBufferMemory",
                                     "vkFlushMappedMemoryRanges",
                                     "vkInvalidateMappedMemoryRanges",
                                     "vkCreateShaderModule",
                                     "vkCreateDescriptorSetLayout",
                                     "vkCreatePipelineLayout",
                                     "vkCreatePipelineCache",
                                     "vkGetPipelineCacheData",
                                     "vkCreateComputePipelines",
                                     "vkCreateDescriptorPool",
                                     "vkAllocateDescriptorSets",
                                     "vkCreateCommandPool",
                                     "vkAllocateCommandBuffers",
                                     "vkBeginCommandBuffer",
                                     "vkEndCommandBuffer",
                                     "vkQueueSubmit",
                                     "vkCreateSemaphore",
                                     "vkGetSemaphoreCounterValue",
                                     "vkWaitSemaphores",
                                     "vkCreateQueryPool",
                                     "vkDeviceWaitIdle"};

void sweep(const VulkanOptions& options, const std::vector<std::string>& reached) {
  Driver driver;
  VulkanOptions with = options;
  with.wrap = driver.wrap();
  std::map<std::string, unsigned> failures;
  {
    const auto found = discover(with);
    const auto usable =
        std::find_if(found.begin(), found.end(), [](const Discovered& one) { return one.adapter; });
    REQUIRE(usable != found.end());
    const auto idle = driver.alive();
    for (const char* function : functions)
      for (const VkResult result :
           {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST})
        for (unsigned nth = 1;; ++nth) {
          INFO(function << " answers " << result << " at call " << nth);
          driver.fail(function, nth, result);
          const Outcome outcome = scenario(usable->adapter);
          if (driver.alive() != idle) FAIL("left behind: " << driver.alive_text());
          if (outcome.error) {
            INFO(outcome.error->describe());
            REQUIRE(driver.failed());
            REQUIRE(*outcome.error ==
                    (result == VK_ERROR_DEVICE_LOST ? Errc::device_lost : Errc::out_of_memory));
            REQUIRE(outcome.error->native());
            REQUIRE(outcome.error->native()->api == function);
            REQUIRE(outcome.error->native()->number == result);
          } else {
            REQUIRE(outcome.out == expected());  // it was got round
          }
          if (!driver.failed()) break;  // it is called nth - 1 times
          ++failures[function];
        }
  }
  CHECK(driver.alive_text() == "");
  for (const std::string& function : reached) {
    INFO(function << " was never called");
    CHECK(failures[function] > 0);
  }
}

const std::vector<std::string> always = {"vkCreateDevice",
                                         "vkAllocateMemory",
                                         "vkMapMemory",
                                         "vkCreateBuffer",
                                         "vkBindBufferMemory",
                                         "vkCreateShaderModule",
                                         "vkCreatePipelineLayout",
                                         "vkCreatePipelineCache",
                                         "vkGetPipelineCacheData",
                                         "vkCreateComputePipelines",
                                         "vkCreateDescriptorPool",
                                         "vkAllocateDescriptorSets",
                                         "vkCreateCommandPool",
                                         "vkAllocateCommandBuffers",
                                         "vkBeginCommandBuffer",
                                         "vkEndCommandBuffer",
                                         "vkQueueSubmit",
                                         "vkCreateSemaphore",
                                         "vkWaitSemaphores",
                                         "vkCreateQueryPool"};

TEST_CASE("every call of the driver may fail at every use: on shared memory", "[vulkan][faults]") {
  sweep({}, always);
}

TEST_CASE("every call of the driver may fail at every use: on memory that is flushed",
          "[vulkan][faults][no_tsan]") {
  auto calls = always;
  calls.insert(calls.end(), {"vkFlushMappedMemoryRanges", "vkInvalidateMappedMemoryRanges"});
  sweep({.host_coherent = false}, calls);
}

TEST_CASE("every call of the driver may fail at every use: through staging memory",
          "[vulkan][faults][no_tsan]") {
  sweep({.host_visible = false}, always);
}

}  // namespace
}  // namespace wye::test
