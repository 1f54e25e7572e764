#include "spirv/rewrite.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace wye::inline v0::spirv {
namespace {

constexpr std::string_view storage_class_extension = "SPV_KHR_storage_buffer_storage_class";
constexpr std::uint32_t version_1_3 = 0x00010300;
constexpr auto uniform = static_cast<std::uint32_t>(StorageClass::Uniform);
constexpr auto storage_buffer = static_cast<std::uint32_t>(StorageClass::StorageBuffer);

void decorate(Words& words, Id id, spv::Decoration decoration) {
  append(words, Op::OpDecorate, {id, static_cast<std::uint32_t>(decoration)});
}
void decorate(Words& words, Id id, spv::Decoration decoration, std::uint32_t value) {
  append(words, Op::OpDecorate, {id, static_cast<std::uint32_t>(decoration), value});
}

bool annotates(Op op) { return op == Op::OpDecorate || op == Op::OpMemberDecorate; }

void replace(std::uint32_t& capability, spv::Capability from, spv::Capability to) {
  if (capability == static_cast<std::uint32_t>(from)) capability = static_cast<std::uint32_t>(to);
}

/// Appends the extension of the storage class, which SPIR-V before 1.3 needs.
void append_extension(Words& words) {
  std::uint32_t text[storage_class_extension.size() / 4 + 1] = {};  // little endian, as SPIR-V's strings
  std::memcpy(text, storage_class_extension.data(), storage_class_extension.size());
  append(words, Op::OpExtension, {});
  words.back() += static_cast<std::uint32_t>(std::size(text)) << 16;
  words.insert(words.end(), std::begin(text), std::end(text));
}

}  // namespace

void make_portable(Words& words) {
  constexpr std::uint32_t newest_language = 7;  // SYCL; Slang is 11
  bool keeps_uniforms = words.size() < header_words || words[1] < version_1_3;
  std::vector<std::uint32_t*> storage_classes;  // of uniform buffers
  std::vector<Id> variables;
  std::uint32_t* annotations = nullptr;
  const std::size_t end = each_instruction(std::span(words), [&](Op op, std::span<std::uint32_t> in) {
    if (annotates(op) && !annotations) annotations = in.data();
    if (in.size() < 2) return;
    if (op == Op::OpSource && in[1] > newest_language) in[1] = 0;
    if (op == Op::OpCapability) {
      using C = spv::Capability;
      replace(in[1], C::UniformAndStorageBuffer16BitAccess, C::StorageBuffer16BitAccess);
      replace(in[1], C::UniformAndStorageBuffer8BitAccess, C::StorageBuffer8BitAccess);
    }
    if (op == Op::OpDecorate && in.size() > 2 &&
        in[2] == static_cast<std::uint32_t>(spv::Decoration::BufferBlock))
      keeps_uniforms = true;
    if (op == Op::OpTypePointer && in.size() == 4 && in[2] == uniform) storage_classes.push_back(&in[2]);
    if (op == Op::OpVariable && in.size() >= 4 && in[3] == uniform) {
      storage_classes.push_back(&in[3]);
      variables.push_back(in[2]);
    }
  });
  if (keeps_uniforms || end != words.size() || variables.empty() || !annotations) return;
  for (std::uint32_t* storage_class : storage_classes) *storage_class = storage_buffer;
  Words added;
  for (const Id variable : variables) decorate(added, variable, spv::Decoration::NonWritable);
  words.insert(words.begin() + (annotations - words.data()), added.begin(), added.end());
}

Words spill_push_constants(const Module& module, std::uint32_t binding) {
  constexpr auto push_constant = static_cast<std::uint32_t>(StorageClass::PushConstant);
  bool has_extension =
      module.version >= version_1_3 ||
      std::count(module.extensions.begin(), module.extensions.end(), storage_class_extension) != 0;
  bool decorated = false;
  Words out(module.words.begin(), module.words.begin() + header_words);
  for (const Instruction& i : module.instructions) {
    if (i.op != Op::OpCapability && !std::exchange(has_extension, true)) append_extension(out);
    if (annotates(i.op) && !std::exchange(decorated, true))
      for (const Variable& variable : module.variables) {
        if (variable.storage != StorageClass::PushConstant) continue;
        decorate(out, variable.id, spv::Decoration::DescriptorSet, 0);
        decorate(out, variable.id, spv::Decoration::Binding, binding);
        decorate(out, variable.id, spv::Decoration::NonWritable);
      }
    const std::size_t at = out.size();
    out.insert(out.end(), i.words().begin(), i.words().end());
    if (i.op == Op::OpTypePointer && i[1] == push_constant) out[at + 2] = storage_buffer;
    if (i.op == Op::OpVariable && i[2] == push_constant) out[at + 3] = storage_buffer;
    if (i.op == Op::OpCapability && i.size() > 0) {
      using C = spv::Capability;
      replace(out[at + 1], C::StoragePushConstant8, C::StorageBuffer8BitAccess);
      replace(out[at + 1], C::StoragePushConstant16, C::StorageBuffer16BitAccess);
    }
  }
  return out;
}

}  // namespace wye::spirv
