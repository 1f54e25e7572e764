#include "backend/vulkan/rig.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <shaderc/shaderc.hpp>
#include <utility>

#include "support/sanitizers.hpp"
#include "support/skip.hpp"

namespace wye::test {

bool validates() {
  if (under_tsan) skip("the validation layer is off under the thread sanitizer");
  return !under_tsan;
}

std::vector<Discovered> discover(const VulkanOptions& options, const BackendOptions& backend) {
  return vulkan::make_backend(options)->discover(backend);
}

std::shared_ptr<vulkan::VulkanDevice> open_device(const VulkanOptions& options,
                                                  const BackendOptions& backend) {
  std::string reasons;
  for (const Discovered& one : discover(options, backend)) {
    if (one.adapter) return std::static_pointer_cast<vulkan::VulkanDevice>(good(one.adapter->open()));
    reasons += one.info.id + ": " + one.info.reason + "; ";
  }
  FAIL("no Vulkan device: " << reasons);
  return nullptr;
}

Rig::Rig(const VulkanOptions& options, bool validate) {
  BackendOptions backend;
  backend.validate = validate;
  backend.log = [this](const LogRecord& record) {
    const std::lock_guard lock(mutex_);
    messages_.emplace_back(record.text);
  };
  device_ = open_device(options, backend);
}

Rig::~Rig() {
  device_.reset();
  for (const std::string& message : messages()) {
    INFO(message);
    CHECK(message.empty());
  }
}

std::vector<std::string> Rig::messages() {
  const std::lock_guard lock(mutex_);
  return std::exchange(messages_, {});
}

std::unique_ptr<Lane> Rig::lane() { return good(Lane::create(*device_)); }

std::shared_ptr<BufferBase> Rig::buffer(std::uint64_t bytes, MemoryUse use) {
  return good(device_->create_buffer({.bytes = Bytes{bytes}, .use = use, .account = nullptr}));
}

std::shared_ptr<BufferBase> Rig::buffer(const std::vector<Word>& words) {
  auto made = buffer(words.size() * sizeof(Word));
  auto filling = lane();
  filling->upload(bytes_of(words), range(made));
  settle(*filling);
  return made;
}

std::shared_ptr<ExecutableBase> Rig::executable(const Artefact& artefact) {
  return good(device_->create_executable(artefact));
}

std::vector<Word> Rig::read(const std::shared_ptr<BufferBase>& buffer) {
  std::vector<Word> words(buffer->bytes().count / sizeof(Word), 0xdeadbeef);
  auto reading = lane();
  reading->download(range(buffer), writable_bytes_of(words));
  settle(*reading);
  return words;
}

BufferRange range(const std::shared_ptr<BufferBase>& buffer) { return {buffer, Bytes{}, buffer->bytes()}; }

BufferRange range(const std::shared_ptr<BufferBase>& buffer, std::uint64_t offset, std::uint64_t size) {
  return {buffer, Bytes{offset}, Bytes{size}};
}

Operand argument(const std::shared_ptr<BufferBase>& buffer) {
  return Buffer(buffer, ElementType::uint32, sizeof(Word)).operand(Access::read_write);
}

Operand argument(const std::shared_ptr<BufferBase>& buffer, std::uint64_t first, std::uint64_t count) {
  return Buffer(buffer, ElementType::uint32, sizeof(Word)).operand(Access::read_write, first, count);
}

std::vector<Word> random_words(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<Word> words(count);
  for (Word& word : words) word = static_cast<Word>(random()) | 1;
  return words;
}

std::string difference(const std::vector<Word>& seen, const std::vector<Word>& wanted) {
  if (seen.size() != wanted.size())
    return std::to_string(seen.size()) + " words instead of " + std::to_string(wanted.size());
  const auto [a, b] = std::mismatch(seen.begin(), seen.end(), wanted.begin());
  if (a == seen.end()) return {};
  return "word " + std::to_string(a - seen.begin()) + " is " + std::to_string(*a) + " instead of " +
         std::to_string(*b);
}

void settle(Lane& lane) { good(lane.wait(Clock::steady().now() + 60s)); }

std::vector<std::byte> compile(const std::string& glsl, bool vulkan_1_0) {
  static std::map<std::pair<std::string, bool>, std::vector<std::byte>> known;
  auto& code = known[{glsl, vulkan_1_0}];
  if (!code.empty()) return code;
  static const shaderc::Compiler compiler;
  shaderc::CompileOptions options;
  options.SetTargetEnvironment(shaderc_target_env_vulkan,
                               vulkan_1_0 ? shaderc_env_version_vulkan_1_0 : shaderc_env_version_vulkan_1_2);
  const auto compiled = compiler.CompileGlslToSpv(glsl, shaderc_compute_shader, "test", options);
  if (compiled.GetCompilationStatus() != shaderc_compilation_status_success)
    FAIL(compiled.GetErrorMessage() << glsl);
  const auto bytes = std::as_bytes(std::span(compiled.cbegin(), compiled.cend()));
  return code = std::vector<std::byte>(bytes.begin(), bytes.end());
}

}  // namespace wye::test
