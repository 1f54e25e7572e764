#include "backend/vulkan/spirv_spill.hpp"

#include <string_view>

namespace wye {
inline namespace v0 {
namespace vulkan {
namespace {

using spirv::Instruction;
using Words = std::vector<std::uint32_t>;

constexpr std::string_view storage_class_extension = "SPV_KHR_storage_buffer_storage_class";
constexpr std::uint32_t version_1_3 = 0x00010300;

void append(Words& words, std::uint32_t op, std::initializer_list<std::uint32_t> operands) {
  words.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16 | op);
  words.insert(words.end(), operands);
}

/// Before SPIR-V 1.3 the storage class is an extension's.
void append_extension(Words& words) {
  const std::size_t text_words = storage_class_extension.size() / 4 + 1;
  words.push_back(static_cast<std::uint32_t>(text_words + 1) << 16 | spirv::op_extension);
  for (std::size_t w = 0; w < text_words; ++w) {
    std::uint32_t word = 0;
    for (std::size_t c = 4 * w; c < 4 * w + 4 && c < storage_class_extension.size(); ++c)
      word |= static_cast<std::uint32_t>(static_cast<unsigned char>(storage_class_extension[c]))
              << (8 * (c % 4));
    words.push_back(word);
  }
}

}  // namespace

std::vector<std::uint32_t> spill_push_constants(const spirv::Module& module, std::uint32_t binding) {
  Words variables;
  bool has_extension = module.version() >= version_1_3;
  module.each([&](const Instruction& i) {
    if (i.op == spirv::op_variable && i[2] == spirv::push_constant) variables.push_back(i[1]);
    if (i.op == spirv::op_extension && spirv::text_at(i, 0).text == storage_class_extension)
      has_extension = true;
  });

  const auto all = module.words();
  Words out(all.begin(), all.begin() + spirv::header_words);
  bool decorated = false;
  module.each([&](const Instruction& i) {
    if (!has_extension && i.op != spirv::op_capability) {  // extensions follow capabilities
      append_extension(out);
      has_extension = true;
    }
    if (!decorated && (i.op == spirv::op_decorate || i.op == spirv::op_member_decorate)) {
      for (const std::uint32_t variable : variables) {
        append(out, spirv::op_decorate, {variable, spirv::descriptor_set, 0});
        append(out, spirv::op_decorate, {variable, spirv::binding, binding});
        append(out, spirv::op_decorate, {variable, spirv::non_writable});
      }
      decorated = true;
    }
    const std::size_t here = out.size();
    const auto copied = all.subspan(i.at, i.operands.size() + 1);
    out.insert(out.end(), copied.begin(), copied.end());
    if (i.op == spirv::op_type_pointer && i[1] == spirv::push_constant) out[here + 2] = spirv::storage_buffer;
    if (i.op == spirv::op_variable && i[2] == spirv::push_constant) out[here + 3] = spirv::storage_buffer;
    if (i.op == spirv::op_capability && i[0] == spirv::capability_storage_push_constant8)
      out[here + 1] = spirv::capability_storage_buffer8;
    if (i.op == spirv::op_capability && i[0] == spirv::capability_storage_push_constant16)
      out[here + 1] = spirv::capability_storage_buffer16;
  });
  return out;
}

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
