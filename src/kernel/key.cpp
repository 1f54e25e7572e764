#include "kernel/key.hpp"

#include <algorithm>
#include <vector>

namespace wye::inline v0::kernel {

namespace {

void add_texts(Hasher& hasher, std::span<const SourceText> texts) {
  hasher.add("includes").add(std::uint64_t{texts.size()});
  for (const SourceText& text : texts) {
    hasher.add(std::string_view(text.text)).add(std::uint64_t{text.uses.size()});
    for (const IncludeUse& use : text.uses) hasher.add(std::uint64_t{use.text});
  }
}

void add_schema(Hasher& hasher, const ParamSchema& schema) {
  hasher.add(std::uint64_t{schema.slots.size()});
  for (const Slot& slot : schema.slots)
    hasher.add(std::string_view(slot.name))
        .add(static_cast<std::uint64_t>(slot.kind))
        .add(static_cast<std::uint64_t>(slot.access))
        .add(static_cast<std::uint64_t>(slot.element))
        .add(std::uint64_t{slot.size});
  // The schema is part of the key: artefacts of different structs of one size must not be confused.
  for (const Slot& slot : schema.slots) {
    if (slot.members.empty()) continue;
    hasher.add("members").add(std::uint64_t{slot.members.size()});
    for (const SlotMember& member : slot.members)
      hasher.add(static_cast<std::uint64_t>(member.element)).add(std::uint64_t{member.offset});
  }
}

}  // namespace

Digest shader_key(const Ingredients& in) {
  Hasher hasher;
  hasher.add("wye shader").add(std::uint64_t{abi_version});
  hasher.add(in.kernel).add(in.language).add(in.source).add(in.entry).add(in.compiler);

  std::vector<Macro> macros(in.macros.begin(), in.macros.end());
  std::sort(macros.begin(), macros.end(), [](const Macro& a, const Macro& b) { return a.name < b.name; });
  hasher.add(std::uint64_t{macros.size()});
  for (const Macro& macro : macros)
    hasher.add(std::string_view(macro.name)).add(std::string_view(macro.value));

  std::vector<device::Specialization> constants(in.constants.begin(), in.constants.end());
  std::sort(constants.begin(), constants.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  hasher.add(std::uint64_t{constants.size()});
  for (const device::Specialization& c : constants)
    hasher.add(std::uint64_t{c.id}).add(std::uint64_t{c.size}).add(c.bits);

  hasher.add(std::uint64_t{in.tile.has_value()});
  if (in.tile) hasher.add(in.tile->x).add(in.tile->y).add(in.tile->z);

  add_schema(hasher, *in.schema);

  // A source without includes keeps the key that it had before wye supported includes.
  if (in.texts.size() > 1) add_texts(hasher, in.texts);
  if (!in.options.empty()) hasher.add("options").add(in.options);
  if (in.named_texts)
    for (const SourceText& text : in.texts.subspan(std::min<std::size_t>(1, in.texts.size())))
      hasher.add(std::uint64_t{text.place}).add(std::string_view(text.name));
  if (!in.link_constants.empty()) {
    std::vector<LinkConstant> sorted(in.link_constants.begin(), in.link_constants.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    hasher.add("link constants").add(std::uint64_t{sorted.size()});
    for (const LinkConstant& c : sorted) hasher.add(std::string_view(c.name)).add(c.type).add(c.bits);
  }
  return hasher.finish();
}

Digest texts_digest(std::span<const SourceText> texts) {
  Hasher hasher;
  add_texts(hasher, texts);
  return hasher.finish();
}

Digest target_key(const Digest& source, std::string_view compiler, std::string_view target) {
  return Hasher().add("wye target").add(source.bytes).add(compiler).add(target).finish();
}

Digest kernel_digest(std::string_view name, const ParamSchema& schema, std::span<const Digest> sources) {
  Hasher hasher;
  hasher.add("wye kernel").add(name);
  add_schema(hasher, schema);
  for (const Digest& source : sources) hasher.add(source.bytes);
  return hasher.finish();
}

Digest function_digest(std::string_view language, std::uint64_t type, Extent3 tile) {
  return Hasher().add("wye function").add(language).add(type).add(tile.x).add(tile.y).add(tile.z).finish();
}

Digest host_key(std::uint64_t program_id) { return Hasher().add("wye host").add(program_id).finish(); }
Digest native_key(std::uint64_t program_id, std::string_view backend) {
  return Hasher().add("wye native").add(program_id).add(backend).finish();
}

}  // namespace wye::kernel
