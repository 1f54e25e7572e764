#include "backend/vulkan/spirv.hpp"

#include <cstring>

#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {
namespace spirv {

Result<Module> Module::parse(std::span<const std::byte> code, std::string_view kernel, std::uint32_t newest) {
  const auto refused = [&](std::string why) {
    return Error(Errc::compile_failed, base::text("The SPIR-V of kernel '{}' {}.", kernel, why));
  };
  if (code.size() % 4 != 0 || code.size() / 4 < header_words)
    return refused(base::text("is cut short ({} bytes)", code.size()));
  std::vector<std::uint32_t> words(code.size() / 4);
  std::memcpy(words.data(), code.data(), code.size());
  if (words[0] == 0x03022307) return refused("has the byte order of another machine");
  if (words[0] != magic) return refused("does not begin as SPIR-V does");
  if (words[1] > newest)
    return refused(base::text("has version {}.{}, and the device takes up to {}.{}", words[1] >> 16,
                              words[1] >> 8 & 0xff, newest >> 16, newest >> 8 & 0xff));
  for (std::size_t at = header_words; at < words.size();) {
    const std::size_t length = words[at] >> 16;
    if (length == 0 || length > words.size() - at)
      return refused(base::text("is broken at word {} of {}", at, words.size()));
    at += length;
  }
  return Module(std::move(words));
}

Text text_at(const Instruction& instruction, std::size_t operand) {
  if (operand >= instruction.operands.size()) return {};
  const auto words = instruction.operands.subspan(operand);
  const char* first = reinterpret_cast<const char*>(words.data());
  const std::size_t room = words.size_bytes();
  const void* end = std::memchr(first, 0, room);
  const std::size_t length = end ? static_cast<std::size_t>(static_cast<const char*>(end) - first) : room;
  return {std::string_view(first, length), length / 4 + 1};
}

}  // namespace spirv
}  // namespace vulkan
}  // namespace v0
}  // namespace wye
