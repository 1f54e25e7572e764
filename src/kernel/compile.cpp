#include <wye/kernel/compile.hpp>

#include <new>
#include <utility>

#include "base/text.hpp"
#include "kernel/glsl.hpp"
#include "kernel/match.hpp"
#include "kernel/source.hpp"
#include "kernel/spirv.hpp"

namespace wye {
inline namespace v0 {

namespace {

using kernel::SourceText;

Error unsupported(std::string sentence) { return Error(Errc::unsupported, std::move(sentence)); }

Result<void> compile_glsl(const Glsl& source, const std::string& name, Compiled& out) {
  if (auto done = kernel::check(source, name); !done) return done;
  const auto compiler = kernel::GlslCompiler::share();
  if (!compiler) return unsupported("This build of wye has no GLSL compiler.");
  const auto texts = kernel::read_includes(source, kernel::GlslCompiler::shown_name(source, name));
  auto words = compiler->compile(source, texts, name, &out.warnings);
  if (!words) return std::move(words).error();
  out.spirv = {.words = std::move(*words), .constants = source.constants, .tile = source.tile};
  for (const SourceText& text : texts)
    if (!text.path.empty()) out.files.push_back(text.path);
  return {};
}

/// The slot a kernel declares to get what a shader has.
Slot slot_of(std::string name, SlotKind kind, const kernel::Memory& memory) {
  Slot slot{std::move(name), kind, Access::read_write, memory.component, memory.stride};
  if (!reads(memory.declared) && writes(memory.declared) && memory.written != kernel::Written::no)
    slot.access = Access::write;
  else if (memory.written == kernel::Written::no)
    slot.access = Access::read;
  if (const std::uint32_t number = kernel::size_of(slot.element)) slot.size = number;
  return slot;
}

std::vector<SourceParameter> parameters_of(const kernel::Interface& source) {
  std::vector<SourceParameter> list;
  for (const kernel::Binding& binding : source.bindings)
    list.push_back({slot_of(binding.name, SlotKind::buffer, binding.memory), binding.binding, 0});
  for (const kernel::PushMember& member : source.members) {
    using Kind = kernel::PushMember::Kind;
    SourceParameter parameter;
    parameter.offset = member.offset;
    if (member.kind == Kind::pointer || member.kind == Kind::span) {
      // Beside bound buffers an address is no buffer: those are the bound ones.
      const bool bare = !source.bindings.empty() && member.kind == Kind::pointer;
      parameter.slot = slot_of(member.name, bare ? SlotKind::address : SlotKind::buffer, member.memory);
    } else {
      const bool scalar = member.kind == Kind::scalar && member.element != ElementType::opaque;
      parameter.slot = {member.name, scalar ? SlotKind::scalar : SlotKind::structure, Access::read,
                        scalar ? member.element : ElementType::opaque,
                        scalar ? member.size : member.packed_size};
    }
    list.push_back(std::move(parameter));
  }
  return list;
}

Result<Compiled> compiled(const AnySource& source, const CompileOptions& options) {
  if (options.target != "spirv")
    return unsupported(base::text("Target '{}' is not known; 'spirv' is.", options.target));
  Compiled out;
  const auto& any = source.data()->source;
  if (const auto* glsl = std::get_if<Glsl>(&any)) {
    if (auto done = compile_glsl(*glsl, options.name, out); !done) return std::move(done).error();
  } else if (const auto* spirv = std::get_if<SpirV>(&any)) {
    out.spirv = *spirv;
  } else {
    return unsupported(
        base::text("Kernel '{}' is a host function: there is nothing to compile.", options.name));
  }
  auto constants = kernel::canonical(out.spirv.constants, options.name);
  if (!constants) return std::move(constants).error();
  std::vector<std::uint32_t> words = out.spirv.words;
  kernel::forget_new_languages(words);
  const auto here = [&](const Error& error) {
    return error.with_context(base::text("in the {} source of kernel '{}'", source.language(), options.name));
  };
  if (auto valid = kernel::validate(words); !valid) return here(valid.error());
  auto interface = kernel::reflect(words, out.spirv.entry, *constants);
  if (!interface) return here(interface.error());
  out.parameters = parameters_of(*interface);
  out.push_bytes = interface->push_bytes;
  out.workgroup = interface->workgroup;
  out.needs = interface->needs;
  return out;
}

/// Whether two sources are the same texts that include each other in the same way.
bool same(const std::vector<SourceText>& a, const std::vector<SourceText>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].text != b[i].text || a[i].uses.size() != b[i].uses.size()) return false;
    for (std::size_t u = 0; u < a[i].uses.size(); ++u)
      if (a[i].uses[u].text != b[i].uses[u].text) return false;
  }
  return true;
}

}  // namespace

Result<Compiled> compile(const AnySource& source, const CompileOptions& options) {
  try {
    return compiled(source, options);
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory left to compile a kernel.");
  }
}

Result<Glsl> self_contained(const Glsl& source) {
  try {
    const auto texts = kernel::read_includes(source, "");
    Glsl whole = source;
    whole.includes.clear();
    whole.include_directories.clear();
    whole.find_include = {};
    for (std::size_t i = 1; i < texts.size(); ++i) whole.includes.push_back({texts[i].name, texts[i].text});
    if (!same(texts, kernel::read_includes(whole, "")))
      return unsupported("Different texts are included by one name, so the source cannot be put together.");
    return whole;
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory left to read a source.");
  }
}

}  // namespace v0
}  // namespace wye
