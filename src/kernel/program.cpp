#include "kernel/program.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <variant>

#include "base/text.hpp"
#include "kernel/key.hpp"
#include "kernel/match.hpp"
#include "kernel/source.hpp"
#include "kernel/spirv.hpp"

namespace wye {
inline namespace v0 {
namespace kernel {

namespace {

std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

Result<void> check(const std::string& kernel, const ParamSchema& schema) {
  for (std::size_t i = 0; i < schema.slots.size(); ++i) {
    const Slot& slot = schema.slots[i];
    const auto refuse = [&](std::string_view why) {
      return base::invalid(base::text("Parameter {}{} of kernel '{}' {}.", i + 1,
                                      slot.name.empty() ? "" : base::text(" '{}'", slot.name), kernel, why));
    };
    const bool memory = slot.kind == SlotKind::buffer || slot.kind == SlotKind::address;
    if (memory && slot.access == Access::none) return refuse("is neither read nor written");
    if (slot.kind != SlotKind::address && slot.size == 0) return refuse("has no size");
    if (slot.kind == SlotKind::scalar && slot.element == ElementType::opaque)
      return refuse("is a scalar of no type");
    if (slot.element != ElementType::opaque && slot.kind != SlotKind::address &&
        slot.size != size_of(slot.element))
      return refuse(base::text("has {} bytes, but is declared as {}", slot.size, wye::name(slot.element)));
  }
  return {};
}

}  // namespace

KernelProgram::KernelProgram(std::string name, ParamSchema schema)
    : name_(std::move(name)), schema_(std::move(schema)), id_(next_id()) {}

Result<std::shared_ptr<const KernelProgram>> KernelProgram::make(std::string name, ParamSchema schema,
                                                                 const std::vector<AnySource>& sources) {
  if (name.empty()) return base::invalid("A kernel needs a name.");
  if (sources.empty()) return base::invalid(base::text("Kernel '{}' has no source.", name));
  if (auto done = check(name, schema); !done) return std::move(done).error();
  std::shared_ptr<KernelProgram> program(new KernelProgram(std::move(name), std::move(schema)));
  for (const AnySource& source : sources)
    if (auto done = program->add(source); !done) return std::move(done).error();
  program->take_names();
  return std::shared_ptr<const KernelProgram>(std::move(program));
}

Result<void> KernelProgram::add(const AnySource& source) {
  if (find(source.language()))
    return base::invalid(base::text("Kernel '{}' has two {} sources.", name_, source.language()));
  const auto& data = source.data();
  if (const auto* glsl = std::get_if<Glsl>(&data->source)) return add_glsl(data, *glsl);
  if (const auto* spirv = std::get_if<SpirV>(&data->source)) return add_spirv(*spirv);
  return add_host(std::get<HostSource>(data->source));
}

Result<void> KernelProgram::add_glsl(const std::shared_ptr<const SourceData>& data, const Glsl& source) {
  if (auto done = check(source, name_); !done) return done;
  auto constants = canonical(source.constants, name_);
  if (!constants) return std::move(constants).error();
  compiler_ = GlslCompiler::share();
  auto texts = std::make_shared<const std::vector<SourceText>>(
      compiler_ ? read_includes(source, GlslCompiler::shown_name(source, name_)) : std::vector<SourceText>());
  const Digest key = shader_key({.kernel = name_,
                                 .language = "Glsl",
                                 .source = std::as_bytes(std::span(source.text)),
                                 .entry = source.entry,
                                 .compiler = GlslCompiler::build_id(),
                                 .macros = source.macros,
                                 .constants = *constants,
                                 .tile = source.tile,
                                 .schema = &schema_,
                                 .texts = *texts});
  sources_.push_back({"Glsl", key, data, std::move(texts), std::move(*constants), nullptr});
  return {};
}

Result<void> KernelProgram::add_spirv(const SpirV& source) {
  if (source.words.empty())
    return base::invalid(base::text("The SpirV source of kernel '{}' is empty.", name_));
  auto constants = canonical(source.constants, name_);
  if (!constants) return std::move(constants).error();
  const Digest key = shader_key({.kernel = name_,
                                 .language = "SpirV",
                                 .source = std::as_bytes(std::span(source.words)),
                                 .entry = source.entry,
                                 .compiler = {},
                                 .macros = {},
                                 .constants = *constants,
                                 .tile = source.tile,
                                 .schema = &schema_});
  auto artefact = shader(source.words, source.entry, *constants, source.tile, key);
  if (!artefact)
    return artefact.error().with_context(base::text("in the SpirV source of kernel '{}'", name_));
  sources_.push_back(
      {"SpirV", key, nullptr, nullptr, {}, std::make_shared<device::Artefact>(std::move(*artefact))});
  return {};
}

Result<void> KernelProgram::add_host(const HostSource& source) {
  if (!source.code) return base::invalid(base::text("The host function of kernel '{}' is null.", name_));
  device::Artefact artefact;
  artefact.kernel = name_;
  artefact.language = "host";
  artefact.host = source.code;
  artefact.schema = schema_;
  artefact.passing.resize(schema_.slots.size());
  artefact.tile = source.options.tile.value_or(Extent3(1));
  artefact.key = host_key(id_);
  sources_.push_back(
      {"host", artefact.key, nullptr, nullptr, {}, std::make_shared<device::Artefact>(std::move(artefact))});
  return {};
}

/// Parameters without a name take that of the SPIR-V source. Keys hold the schema as it was declared, so this
/// is last.
void KernelProgram::take_names() {
  const Prepared* spirv = find("SpirV");
  if (!spirv) return;
  schema_ = spirv->ready->schema;
  if (const Prepared* host = find("host")) host->ready->schema = schema_;
}

Result<device::Artefact> KernelProgram::shader(std::vector<std::uint32_t> words, const std::string& entry,
                                               const std::vector<device::Specialization>& constants,
                                               std::optional<Extent3> tile, const Digest& key) const {
  forget_new_languages(words);
  if (auto valid = validate(words); !valid) return std::move(valid).error();
  auto interface = reflect(words, entry, constants);
  if (!interface) return std::move(interface).error();
  auto matched = match(schema_, *interface, name_);
  if (!matched) return std::move(matched).error();

  device::Artefact artefact;
  artefact.kernel = name_;
  artefact.language = "spirv";
  artefact.entry = entry;
  artefact.code.resize(words.size() * sizeof(std::uint32_t));
  std::memcpy(artefact.code.data(), words.data(), artefact.code.size());
  artefact.specialization = constants;
  artefact.schema = std::move(matched->schema);
  artefact.passing = std::move(matched->passing);
  artefact.parameter_bytes = matched->parameter_bytes;
  artefact.workgroup = interface->workgroup;
  artefact.tile = tile.value_or(interface->workgroup);
  artefact.needs = interface->needs;
  artefact.key = key;
  return artefact;
}

const KernelProgram::Prepared* KernelProgram::find(std::string_view language) const noexcept {
  for (const Prepared& source : sources_)
    if (source.language == language) return &source;
  return nullptr;
}

const KernelProgram::Prepared* KernelProgram::choose(const device::DeviceBase& device) const noexcept {
  for (const std::string_view language : device.languages()) {
    if (language == "host")
      if (const Prepared* source = find("host")) return source;
    if (language == "spirv") {
      if (const Prepared* source = find("SpirV")) return source;
      if (compiler_)
        if (const Prepared* source = find("Glsl")) return source;
    }
  }
  return nullptr;
}

std::optional<Error> KernelProgram::refusal(const device::DeviceBase& device) const {
  const std::string& id = device.info().id;
  const Prepared* source = choose(device);
  if (!source) {
    std::string takes;
    for (const std::string_view language : device.languages()) {
      if (!takes.empty()) takes += ", ";
      takes += language == "spirv" ? std::string_view("Glsl or SpirV") : language;
    }
    const bool lacks_compiler = takes.find("Glsl") != std::string::npos && find("Glsl");
    return Error(
        Errc::unsupported,
        base::text("Kernel '{}' has no source for '{}' (has {}; it takes {}){}.", name_, id, languages(),
                   takes, lacks_compiler ? ", because this build of wye has no GLSL compiler" : ""));
  }
  if (source->ready)
    if (const Features missing = source->ready->needs.without(device.info().features); !missing.empty())
      return Error(Errc::unsupported, base::text("Kernel '{}' needs {}, which '{}' does not have.", name_,
                                                 to_string(missing), id));
  return std::nullopt;
}

Result<Digest> KernelProgram::key(const device::DeviceBase& device) const {
  if (const Prepared* source = choose(device)) return source->key;
  return *refusal(device);
}

bool KernelProgram::storable(const device::DeviceBase& device) const noexcept {
  const Prepared* source = choose(device);
  return source && source->language != "host";
}

Result<device::Artefact> KernelProgram::build(const device::DeviceBase& device) const {
  if (auto refused = refusal(device)) return *std::move(refused);
  const Prepared& source = *choose(device);
  if (source.ready) return *source.ready;
  const Glsl& glsl = std::get<Glsl>(source.glsl->source);
  auto words = compiler_->compile(glsl, *source.texts, name_);
  if (!words) return std::move(words).error();
  auto artefact = shader(std::move(*words), "main", source.constants, glsl.tile, source.key);
  if (!artefact) return artefact.error().with_context(base::text("in the Glsl source of kernel '{}'", name_));
  return artefact;
}

std::string KernelProgram::languages() const {
  std::string text;
  for (const Prepared& source : sources_) text.append(text.empty() ? "" : ", ").append(source.language);
  return text;
}

std::shared_ptr<const void> keep_compilers() { return GlslCompiler::share(); }

}  // namespace kernel
}  // namespace v0
}  // namespace wye
