#include <wye/kernel/compile.hpp>

#include <new>
#include <set>
#include <type_traits>
#include <utility>

#include "base/text.hpp"
#include "kernel/compilers/glsl.hpp"
#include "kernel/compilers/nvrtc.hpp"
#include "kernel/compilers/slang.hpp"
#include "kernel/reflect/cuda_code.hpp"
#include "kernel/reflect/match.hpp"
#include "kernel/reflect/spirv.hpp"
#include "kernel/source.hpp"
#include "spirv/rewrite.hpp"

namespace wye::inline v0 {

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

Result<void> compile_slang(const Slang& source, const std::string& name, Compiled& out) {
  if (auto done = kernel::check(source, name); !done) return done;
  const auto texts = kernel::read_imports(source, kernel::SlangCompiler::shown_name(source, name));
  auto words = kernel::SlangCompiler::share()->spirv(source, texts, name, &out.warnings);
  if (!words) return std::move(words).error();
  out.spirv.words = std::move(*words);
  out.spirv.tile = source.tile;
  for (const SourceText& text : texts)
    if (!text.path.empty()) out.files.push_back(text.path);
  return {};
}

/// Returns the slot that a kernel declares for a parameter of a shader. `writeonly` says that the
/// shader does not read the memory, and not that it writes every element: elements that it does not
/// write keep their values with `read_write` alone.
Slot slot_of(std::string name, SlotKind kind, const kernel::Memory& memory) {
  Slot slot{std::move(name), kind, Access::read_write, memory.component, memory.stride};
  if (memory.written == kernel::Written::no) slot.access = Access::read;
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
    if (member.kind == Kind::bytes) {
      const bool scalar = member.element != ElementType::opaque;
      parameter.slot = {member.name, scalar ? SlotKind::scalar : SlotKind::structure, Access::read,
                        member.element, member.size};
    } else if (member.kind == Kind::pointer || member.kind == Kind::span) {
      // If the shader has bound buffers, they are its buffer parameters; a pointer is then an
      // address.
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

/// Reads the interface of CUDA code with the launch options of `source`.
template <class Source>
Result<void> describe(const Result<kernel::CudaCode>& code, const Source& source, const std::string& name,
                      Compiled& out) {
  const auto here = [&](const Error& error) {
    return error.with_context(
        base::text("in the {} source of kernel '{}'", AnySource(source).language(), name));
  };
  if (!code) return here(code.error());
  auto block = kernel::block_of(source.workgroup, *code, name);
  if (!block) return here(block.error());
  out.parameters = parameters_of(code->interface);
  out.push_bytes = code->interface.push_bytes;
  out.workgroup = *block;
  return {};
}

Result<Compiled> compiled_cuda(const CudaCpp& source, std::optional<kernel::CudaTarget> target,
                               const CompileOptions& options) {
  const std::string& name = options.name;
  if (auto done = kernel::check(source, name); !done) return std::move(done).error();
  if (auto done = kernel::check_launch(source, name); !done) return std::move(done).error();
  auto compiler =
      options.nvrtc.empty() ? kernel::CudaCompiler::share() : kernel::CudaCompiler::open(options.nvrtc);
  if (!compiler) return std::move(compiler).error();
  const auto texts =
      kernel::read_includes(kernel::IncludePlaces(source), kernel::CudaCompiler::shown_name(source, name));
  const auto headers = (*compiler)->headers(texts);
  if (!target) target = kernel::CudaTarget{{(*compiler)->architectures().front(), 0}, true};
  Compiled out;
  auto code = (*compiler)->compile(source, texts, headers, name, *target, &out.warnings);
  if (!code) return std::move(code).error();
  std::set<std::string> files;
  for (const SourceText& text : texts) files.insert(text.path);
  for (const auto& [included, header] : headers)
    for (const SourceText& text : header->texts) files.insert(text.path);
  files.erase("");
  out.files.assign(files.begin(), files.end());
  const std::string& entry = kernel::kernel_entry(source, name);
  Result<void> done;
  if (target->ptx) {
    out.ptx = Ptx{.text = std::string(reinterpret_cast<const char*>(code->data()), code->size() - 1),
                  .entry = entry,
                  .workgroup = source.workgroup,
                  .tile = source.tile,
                  .dynamic_shared = source.dynamic_shared,
                  .launch = source.launch};
    done = describe(kernel::reflect_ptx(out.ptx->text, entry), source, name, out);
  } else {
    out.cubin = Cubin{.bytes = std::move(*code),
                      .entry = entry,
                      .workgroup = source.workgroup,
                      .tile = source.tile,
                      .dynamic_shared = source.dynamic_shared,
                      .launch = source.launch};
    done = describe(kernel::reflect_cubin(out.cubin->bytes, entry), source, name, out);
  }
  if (!done) return std::move(done).error();
  return out;
}

/// Compiles Slang to CUDA C++, and that to PTX or machine code.
Result<Compiled> compiled_cuda(const Slang& source, const kernel::CudaTarget& target,
                               const CompileOptions& options) {
  const std::string& name = options.name;
  if (auto done = kernel::check(source, name); !done) return std::move(done).error();
  const auto texts = kernel::read_imports(source, kernel::SlangCompiler::shown_name(source, name));
  std::vector<Diagnostic> warnings;
  const auto text = kernel::SlangCompiler::share()->cuda(source, texts, name, &warnings);
  if (!text) return text.error();
  auto out = compiled_cuda(*text, target, options);
  if (!out) return out;
  out->warnings = std::move(warnings);
  for (const SourceText& one : texts)
    if (!one.path.empty()) out->files.push_back(one.path);
  return out;
}

/// Reads PTX and cubins, which are not compiled.
template <class Source>
Result<Compiled> read_cuda(const Source& source, const std::optional<kernel::CudaTarget>& target,
                           const std::string& name) {
  const std::string& entry = kernel::kernel_entry(source, name);
  if (auto done = kernel::check_launch(source, name); !done) return std::move(done).error();
  Compiled out;
  Result<kernel::CudaCode> code = [&] {
    if constexpr (std::is_same_v<Source, Ptx>)
      return out.ptx = source, kernel::reflect_ptx(source.text, entry);
    else
      return out.cubin = source, kernel::reflect_cubin(source.bytes, entry);
  }();
  if (auto done = describe(code, source, name, out); !done) return std::move(done).error();
  const kernel::CudaTarget is{code->architecture, std::is_same_v<Source, Ptx>};
  if (target && *target != is)
    return unsupported(base::text("The {} source of kernel '{}' is for '{}' and cannot be compiled for '{}'.",
                                  AnySource(source).language(), name, to_string(is), to_string(*target)));
  return out;
}

Result<Compiled> compiled(const AnySource& source, const CompileOptions& options) {
  Compiled out;
  const auto& any = source.data()->source;
  const auto target = kernel::parse_target(options.target);
  if (!options.target.empty() && options.target != "spirv" && !target)
    return unsupported(base::text(
        "Target '{}' is unknown; valid targets are like 'spirv', 'sm_90' and 'compute_90'.", options.target));
  if (source.language() == "host" || source.language() == "native")
    return unsupported(
        base::text("Kernel '{}' is a {} function, which is not compiled.", options.name, source.language()));
  const bool shader = source.language() == "Glsl" || source.language() == "SpirV";
  const auto* const slang = std::get_if<Slang>(&any);
  if (!slang && !options.target.empty() && shader == target.has_value())
    return unsupported(base::text("The {} source of kernel '{}' cannot be compiled for '{}'.",
                                  source.language(), options.name, options.target));
  if (const auto* cuda = std::get_if<CudaCpp>(&any)) return compiled_cuda(*cuda, target, options);
  if (slang && target) return compiled_cuda(*slang, *target, options);
  if (const auto* ptx = std::get_if<Ptx>(&any)) return read_cuda(*ptx, target, options.name);
  if (const auto* cubin = std::get_if<Cubin>(&any)) return read_cuda(*cubin, target, options.name);
  if (const auto* glsl = std::get_if<Glsl>(&any)) {
    if (auto done = compile_glsl(*glsl, options.name, out); !done) return std::move(done).error();
  } else if (slang) {
    if (auto done = compile_slang(*slang, options.name, out); !done) return std::move(done).error();
  } else {
    out.spirv = std::get<SpirV>(any);
  }
  auto constants = kernel::canonical(out.spirv.constants, options.name);
  if (!constants) return std::move(constants).error();
  std::vector<std::uint32_t> words = out.spirv.words;
  spirv::make_portable(words);
  const auto here = [&](const Error& error) {
    return error.with_context(base::text("in the {} source of kernel '{}'", source.language(), options.name));
  };
  const auto valid = kernel::validate(words);
  if (!valid) return here(valid.error());
  auto interface = kernel::reflect(words, out.spirv.entry, *constants);
  if (!interface) return here(interface.error());
  out.parameters = parameters_of(*interface);
  out.push_bytes = interface->push_bytes;
  out.workgroup = interface->workgroup;
  out.needs = interface->needs.with(*valid);
  return out;
}

/// Returns whether two sources have the same texts with the same includes.
bool same(const std::vector<SourceText>& a, const std::vector<SourceText>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].text != b[i].text || a[i].uses.size() != b[i].uses.size()) return false;
    for (std::size_t u = 0; u < a[i].uses.size(); ++u)
      if (a[i].uses[u].text != b[i].uses[u].text) return false;
  }
  return true;
}

template <class Source>
Result<Source> put_together(const Source& source) {
  constexpr bool imports = std::is_same_v<Source, Slang>;
  try {
    const auto texts = kernel::read_includes(kernel::IncludePlaces(source, imports), "");
    Source all = source;
    all.includes.clear();
    all.include_directories.clear();
    all.find_include = {};
    for (std::size_t i = 1; i < texts.size(); ++i) all.includes.push_back({texts[i].name, texts[i].text});
    if (!same(texts, kernel::read_includes(kernel::IncludePlaces(all, imports), "")))
      return unsupported(
          "Different texts are included under one name, so the source cannot become self-contained.");
    return all;
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory left to read a source.");
  }
}

}  // namespace

Result<Compiled> compile(const AnySource& source, const CompileOptions& options) {
  try {
    return compiled(source, options);
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, "The host has no memory left to compile a kernel.");
  }
}

Result<Glsl> self_contained(const Glsl& source) { return put_together(source); }
Result<CudaCpp> self_contained(const CudaCpp& source) { return put_together(source); }
Result<Slang> self_contained(const Slang& source) { return put_together(source); }

}  // namespace wye
