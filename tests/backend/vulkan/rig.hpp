#pragma once
/// A Vulkan device under test, with the driver's checks listening, and short ways to use it.
#include <wye/base/clock.hpp>
#include <wye/device/buffer.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/vulkan/vulkan_adapter.hpp"
#include "backend/vulkan/vulkan_device.hpp"
#include "backend/vulkan/vulkan_options.hpp"
#include "device/artefact.hpp"
#include "device/backend.hpp"
#include "device/buffer.hpp"
#include "device/checked.hpp"
#include "device/executable.hpp"
#include "device/lane.hpp"
#include "device/recording.hpp"
#include "support/catch.hpp"
#include "support/device/test_kernels.hpp"

namespace wye::test {

using namespace device;
using namespace literals;
using namespace std::chrono_literals;
using vulkan::VulkanOptions;

using Word = std::uint32_t;

/// The default number of words of a buffer. It is no multiple of a workgroup.
constexpr std::size_t length = 5000;

/// Whether the driver's checks are on: everywhere but under the thread sanitizer, which sees races
/// inside them.
bool validates();

/// Opens the first usable Vulkan device. Fails the test if there is none.
std::shared_ptr<vulkan::VulkanDevice> open_device(const VulkanOptions& options = {},
                                                  const BackendOptions& backend = {});
/// Returns the adapters that a backend with these options discovers.
std::vector<Discovered> discover(const VulkanOptions& options = {}, const BackendOptions& backend = {});

/// A device, by default with validation. Its destruction checks that validation reported nothing.
class Rig {
 public:
  explicit Rig(const VulkanOptions& options = {}, bool validate = validates());
  ~Rig();

  vulkan::VulkanDevice& device() { return *device_; }
  std::shared_ptr<vulkan::VulkanDevice> shared() { return device_; }
  /// Returns the messages of validation since the last call.
  std::vector<std::string> messages();
  /// Destroys the device now.
  void close() { device_.reset(); }

  std::unique_ptr<Lane> lane();
  std::shared_ptr<BufferBase> buffer(std::uint64_t bytes, MemoryUse use = MemoryUse::device);
  std::shared_ptr<BufferBase> buffer(const std::vector<Word>& words);
  std::shared_ptr<ExecutableBase> kernel(std::string_view name, Twin twin = Twin::addresses) {
    return test_executable(*device_, name, twin);
  }
  std::shared_ptr<ExecutableBase> executable(const Artefact& artefact);
  std::vector<Word> read(const std::shared_ptr<BufferBase>& buffer);

 private:
  std::vector<std::string> messages_;
  std::mutex mutex_;
  std::shared_ptr<vulkan::VulkanDevice> device_;
};

BufferRange range(const std::shared_ptr<BufferBase>& buffer);
BufferRange range(const std::shared_ptr<BufferBase>& buffer, std::uint64_t offset, std::uint64_t size);
Operand argument(const std::shared_ptr<BufferBase>& buffer);
Operand argument(const std::shared_ptr<BufferBase>& buffer, std::uint64_t first, std::uint64_t count);
inline Operand argument(Operand operand) { return operand; }
template <class T>
requires std::is_arithmetic_v<T> Operand argument(T value) { return Operand::of_value(value); }
template <class... A>
Arguments arguments_of(const A&... values) {
  Arguments list;
  (list.push_back(argument(values)), ...);
  return list;
}

/// Words that are never zero, from a seed.
std::vector<Word> random_words(std::uint64_t seed, std::size_t count);
template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}
template <class T>
std::span<std::byte> writable_bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

/// Describes the first word in which two runs differ. Empty if they are equal.
std::string difference(const std::vector<Word>& seen, const std::vector<Word>& wanted);

/// Fails the test with the description of the error.
template <class T>
T good(Result<T> result) {
  if (!result) FAIL(result.error().describe());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// Waits for everything on a lane; fails the test if it failed.
void settle(Lane& lane);

/// Compiles a compute shader to SPIR-V. `vulkan_1_0` gives SPIR-V 1.0, in which storage buffers are
/// blocks of another kind.
std::vector<std::byte> compile(const std::string& glsl, bool vulkan_1_0 = false);

}  // namespace wye::test
