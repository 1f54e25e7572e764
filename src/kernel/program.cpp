#include "kernel/program.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/text.hpp"
#include "kernel/declaration.hpp"
#include "kernel/key.hpp"
#include "kernel/reflect/match.hpp"
#include "kernel/reflect/spirv.hpp"
#include "kernel/source.hpp"
#include "spirv/rewrite.hpp"

namespace wye::inline v0::kernel {

namespace {

std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

/// Describes the launch options of CUDA for a key.
template <class Source>
std::string launch_options(const Source& source) {
  const auto text = [](const std::optional<Extent3>& e) {
    return e ? base::text("{} x {} x {}", e->x, e->y, e->z) : std::string("unset");
  };
  std::string options =
      base::text("workgroup {}, dynamic shared {}", text(source.workgroup), source.dynamic_shared.count);
  // Default launch options keep the key that sources had before launch options existed.
  if (const LaunchOptions& launch = source.launch; launch != LaunchOptions())
    options +=
        base::text(", cluster {}, cooperative {}, carveout {}", text(launch.cluster), launch.cooperative,
                   launch.shared_carveout ? std::to_string(*launch.shared_carveout) : "unset");
  return options;
}

/// Returns a number of the type of an object in this process: the address of its virtual functions,
/// with which it begins (Itanium C++ ABI). Its type has no other name if the application is compiled
/// without RTTI.
template <class T>
std::uint64_t type_of(const T& object) noexcept {
  static_assert(std::is_polymorphic_v<T>);
  std::uintptr_t functions = 0;
  std::memcpy(&functions, static_cast<const void*>(&object), sizeof functions);
  return functions;
}

/// Returns the digest of a source with a key, which is the same in later programs of the same source.
/// `counts_type`: of a function, its type in this process is a part of it.
Digest lasting_digest(const Digest& key, const device::Artefact* ready, bool counts_type) {
  const auto of = [&](std::string_view language, const auto& function) {
    return function_digest(language, counts_type ? type_of(function) : 0, ready->tile);
  };
  if (ready && ready->host) return of("host", *ready->host);
  if (ready && ready->native) return of("native", *ready->native);
  return key;
}

/// Removes the members of structs. They are compared when an artefact is made, and not stored in
/// it.
ParamSchema without_members(ParamSchema schema) {
  for (Slot& slot : schema.slots) slot.members.clear();
  return schema;
}

}  // namespace

KernelProgram::KernelProgram(std::string name, ParamSchema schema)
    : name_(std::move(name)), schema_(std::move(schema)), id_(next_id()) {}

KernelProgram::~KernelProgram() {
  // Iterates: if a program outlives many devices, recursion would need a stack frame for each.
  while (routes_) routes_ = std::move(routes_->next);
}

Result<std::shared_ptr<const KernelProgram>> KernelProgram::make(std::string name, ParamSchema schema,
                                                                 const std::vector<AnySource>& sources,
                                                                 const std::vector<std::size_t>& batchable,
                                                                 std::vector<AdapterType> adapters,
                                                                 Features features, bool has_short_loops) {
  if (name.empty()) return base::invalid("A kernel needs a name.");
  if (sources.empty()) return base::invalid(base::text("Kernel '{}' has no source.", name));
  if (auto done = check_schema(name, schema); !done) return std::move(done).error();
  const auto bits = batchable_bits(name, schema, batchable);
  if (!bits) return bits.error();
  std::shared_ptr<KernelProgram> program(new KernelProgram(std::move(name), std::move(schema)));
  program->batchable_ = *bits;
  program->has_short_loops_ = has_short_loops;
  program->adapters_ = std::move(adapters);
  program->features_ = features;
  for (const AnySource& source : sources)
    if (auto done = program->add(source); !done) return std::move(done).error();
  if (std::any_of(sources.begin(), sources.end(), is_from_file)) {
    program->given_ = sources;
    program->declared_ = program->schema_;
  }
  const auto digest = [&](bool counts_types) {
    std::vector<Digest> digests;
    for (const Prepared& source : program->sources_)
      digests.push_back(lasting_digest(source.key, source.ready.get(), counts_types));
    return kernel_digest(program->name_, program->schema_, digests);
  };
  program->digests_ = {.in_process = digest(true), .stored = digest(false)};
  program->take_names();  // last: digests contain the schema as declared
  return std::shared_ptr<const KernelProgram>(std::move(program));
}

Result<std::shared_ptr<const KernelProgram>> KernelProgram::read_again() const {
  std::vector<AnySource> sources;
  for (const AnySource& source : given_) {
    auto again = kernel::read_again(source);
    if (!again) return std::move(again).error();
    sources.push_back(std::move(*again));
  }
  std::vector<std::size_t> batchable;
  for (std::size_t i = 0; i < 32; ++i)
    if ((batchable_ >> i & 1) != 0) batchable.push_back(i);
  return make(name_, declared_, sources, batchable, adapters_, features_, has_short_loops_);
}

std::vector<std::string> KernelProgram::files() const {
  std::vector<std::string> files;
  for (const AnySource& source : given_)
    for (std::string& file : files_of(source)) files.push_back(std::move(file));
  return files;
}

void KernelProgram::replace(std::shared_ptr<const KernelProgram> next) const {
  const std::lock_guard lock(mutex_);
  replaced_with_.push_back(std::move(next));
  current_.store(replaced_with_.back().get(), std::memory_order_release);
}

Result<void> KernelProgram::add(const AnySource& source) {
  const auto& data = source.data();
  if (const auto* cubin = std::get_if<Cubin>(&data->source)) return add_cubin(*cubin);
  if (const auto* ptx = std::get_if<Ptx>(&data->source)) return add_ptx(*ptx);
  if (const auto* native = std::get_if<NativeSource>(&data->source)) return add_native(*native);
  if (find(source.language()))
    return base::invalid(base::text("Kernel '{}' has two {} sources.", name_, source.language()));
  if (const auto* glsl = std::get_if<Glsl>(&data->source)) return add_glsl(data, *glsl);
  if (const auto* slang = std::get_if<Slang>(&data->source)) return add_slang(data, *slang);
  if (const auto* spirv = std::get_if<SpirV>(&data->source)) return add_spirv(*spirv);
  if (const auto* cuda = std::get_if<CudaCpp>(&data->source)) return add_cuda(data, *cuda);
  return add_host(std::get<HostSource>(data->source));
}

Ingredients KernelProgram::ingredients(std::string_view language, std::span<const std::byte> source,
                                       std::string_view entry, std::optional<Extent3> tile) const {
  Ingredients in;
  in.kernel = name_;
  in.language = language;
  in.source = source;
  in.entry = entry;
  in.tile = tile;
  in.schema = &schema_;
  return in;
}

Result<void> KernelProgram::add_glsl(const std::shared_ptr<const SourceData>& data, const Glsl& source) {
  if (auto done = check(source, name_); !done) return done;
  auto constants = canonical(source.constants, name_);
  if (!constants) return std::move(constants).error();
  compiler_ = GlslCompiler::share();
  auto texts = std::make_shared<const std::vector<SourceText>>(
      compiler_ ? read_includes(source, GlslCompiler::shown_name(source, name_)) : std::vector<SourceText>());
  const std::string compiler = GlslCompiler::build_id();
  Ingredients in = ingredients("Glsl", std::as_bytes(std::span(source.text)), source.entry, source.tile);
  in.compiler = compiler;
  in.macros = source.macros;
  in.constants = *constants;
  in.texts = *texts;
  sources_.push_back({.language = "Glsl",
                      .key = shader_key(in),
                      .data = data,
                      .texts = std::move(texts),
                      .constants = std::move(*constants)});
  return {};
}

Result<void> KernelProgram::add_slang(const std::shared_ptr<const SourceData>& data, const Slang& source) {
  if (auto done = check(source, name_); !done) return done;
  slang_ = SlangCompiler::share();
  std::string lacking;
  if (const auto compiler = slang_->build_id(SlangCompiler::Target::spirv); !compiler)
    lacking = compiler.error().sentence();
  auto texts = std::make_shared<const std::vector<SourceText>>(
      lacking.empty() ? read_imports(source, SlangCompiler::shown_name(source, name_))
                      : std::vector<SourceText>());
  const bool module = !source.module.empty();
  Ingredients in = ingredients(module ? "Slang module" : "Slang",
                               module ? std::span(source.module) : std::as_bytes(std::span(source.text)),
                               source.entry, source.tile);
  in.macros = source.macros;
  in.texts = *texts;
  in.link_constants = source.constants;
  in.named_texts = true;
  sources_.push_back({.language = "Slang",
                      .key = shader_key(in),
                      .data = data,
                      .texts = std::move(texts),
                      .lacking = std::move(lacking)});
  return {};
}

Result<void> KernelProgram::add_spirv(const SpirV& source) {
  if (source.words.empty())
    return base::invalid(base::text("The SpirV source of kernel '{}' is empty.", name_));
  auto constants = canonical(source.constants, name_);
  if (!constants) return std::move(constants).error();
  Ingredients in = ingredients("SpirV", std::as_bytes(std::span(source.words)), source.entry, source.tile);
  in.constants = *constants;
  const Digest key = shader_key(in);
  auto artefact = shader(source.words, source.entry, *constants, source.tile, key);
  if (!artefact)
    return artefact.error().with_context(base::text("in the SpirV source of kernel '{}'", name_));
  sources_.push_back(
      {.language = "SpirV", .key = key, .ready = std::make_shared<device::Artefact>(std::move(*artefact))});
  return {};
}

Result<void> KernelProgram::add_cuda(const std::shared_ptr<const SourceData>& data, const CudaCpp& source) {
  if (auto done = check(source, name_); !done) return done;
  if (auto done = check_launch(source, name_); !done) return done;
  auto texts = std::make_shared<const std::vector<SourceText>>(
      read_includes(IncludePlaces(source), CudaCompiler::shown_name(source, name_)));
  std::string options = base::text("{}, registers {}, {}", launch_options(source), source.max_registers,
                                   source.fast_math ? "fast math" : "exact");
  // The default standard keeps the key that sources had before the option existed.
  if (source.standard != CudaCpp().standard) options += base::text(", C++{}", source.standard);
  Ingredients in =
      ingredients("CudaCpp", std::as_bytes(std::span(source.text)), kernel_entry(source, name_), source.tile);
  in.macros = source.macros;
  in.texts = *texts;
  in.options = options;
  sources_.push_back({.language = "CudaCpp", .key = shader_key(in), .data = data, .texts = std::move(texts)});
  return {};
}

template <class Source>
Result<void> KernelProgram::add_cuda_code(std::string_view language, std::span<const std::byte> code,
                                          const Source& source, Architecture architecture,
                                          std::uint64_t driver) {
  for (const Prepared& other : sources_)
    if (other.language == language && other.architecture == architecture)
      return base::invalid(
          base::text("Kernel '{}' has two {} sources for {}.", name_, language, to_string(architecture)));
  if (auto done = check_launch(source, name_); !done) return done;
  const std::string options = launch_options(source);
  Ingredients in = ingredients(language, code, kernel_entry(source, name_), source.tile);
  in.options = options;
  const Digest key = shader_key(in);
  auto artefact = cuda_artefact(code, language == "Ptx", source, key);
  if (!artefact)
    return artefact.error().with_context(base::text("in the {} source of kernel '{}'", language, name_));
  sources_.push_back({.language = language,
                      .key = key,
                      .ready = std::make_shared<device::Artefact>(std::move(*artefact)),
                      .architecture = architecture,
                      .driver = driver});
  return {};
}

Result<void> KernelProgram::add_ptx(const Ptx& source) {
  if (source.text.find_first_not_of(" \t\r\n") == std::string::npos)
    return base::invalid(base::text("The Ptx source of kernel '{}' is empty.", name_));
  if (source.text.find('\0') != std::string::npos)
    return base::invalid(base::text("The Ptx source of kernel '{}' has a zero byte.", name_));
  auto code = reflect_ptx(source.text, kernel_entry(source, name_));
  if (!code) return code.error().with_context(base::text("in the Ptx source of kernel '{}'", name_));
  // The driver reads up to the terminating zero.
  const auto bytes = std::as_bytes(std::span(source.text.c_str(), source.text.size() + 1));
  return add_cuda_code("Ptx", bytes, source, code->architecture, oldest_driver(code->version));
}

Result<void> KernelProgram::add_cubin(const Cubin& source) {
  if (source.bytes.empty())
    return base::invalid(base::text("The Cubin source of kernel '{}' is empty.", name_));
  auto architecture = cubin_architecture(source.bytes);
  if (!architecture)
    return architecture.error().with_context(base::text("in the Cubin source of kernel '{}'", name_));
  return add_cuda_code("Cubin", source.bytes, source, *architecture);
}

Result<void> KernelProgram::add_native(const NativeSource& source) {
  if (!source.code) return base::invalid(base::text("The native function of kernel '{}' is null.", name_));
  if (source.backend.empty())
    return base::invalid(base::text("The native function of kernel '{}' names no backend.", name_));
  for (const Prepared& other : sources_)
    if (other.language == "native" && other.backend == source.backend)
      return base::invalid(base::text("Kernel '{}' has two native sources for '{}'.", name_, source.backend));
  device::Artefact artefact;
  artefact.kernel = name_;
  artefact.language = "native";
  artefact.native = source.code;
  artefact.schema = schema_;
  artefact.passing.resize(schema_.slots.size());
  artefact.key = native_key(id_, source.backend);
  sources_.push_back({.language = "native",
                      .key = artefact.key,
                      .ready = std::make_shared<device::Artefact>(std::move(artefact)),
                      .backend = source.backend});
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
  sources_.push_back({.language = "host",
                      .key = artefact.key,
                      .ready = std::make_shared<device::Artefact>(std::move(artefact))});
  return {};
}

/// Gives unnamed parameters the names in the SPIR-V source. Runs last, because keys contain the
/// schema as declared.
void KernelProgram::take_names() {
  const Prepared* spirv = find("SpirV");
  if (!spirv) return;
  const auto take = [&](ParamSchema& schema) {
    for (std::size_t i = 0; i < schema.slots.size(); ++i)
      schema.slots[i].name = spirv->ready->schema.slots[i].name;
  };
  take(schema_);
  for (const Prepared& source : sources_)
    if (source.ready && source.ready != spirv->ready) take(source.ready->schema);
}

Result<device::Artefact> KernelProgram::shader(std::vector<std::uint32_t> words, const std::string& entry,
                                               const std::vector<device::Specialization>& constants,
                                               std::optional<Extent3> tile, const Digest& key) const {
  spirv::make_portable(words);
  const auto valid = validate(words);
  if (!valid) return valid.error();
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
  artefact.schema = without_members(std::move(matched->schema));
  artefact.passing = std::move(matched->passing);
  artefact.parameter_bytes = matched->parameter_bytes;
  artefact.workgroup = interface->workgroup;
  artefact.tile = tile.value_or(interface->workgroup);
  artefact.needs = interface->needs.with(*valid);
  artefact.key = key;
  return artefact;
}

const KernelProgram::Prepared* KernelProgram::find(std::string_view language) const noexcept {
  for (const Prepared& source : sources_)
    if (source.language == language) return &source;
  return nullptr;
}

const KernelProgram::Cuda& KernelProgram::cuda(const Prepared& source) const {
  if (const Cuda* known = found_cuda_.load(std::memory_order_acquire)) return *known;
  const std::lock_guard lock(mutex_);
  if (!cuda_) {
    auto made = std::make_unique<Cuda>(Cuda{CudaCompiler::share(), {}, {}});
    if (made->compiler) {
      const bool slang = source.language == "Slang";
      made->headers = (*made->compiler)->headers(slang ? SlangCompiler::cuda_texts() : *source.texts);
      Hasher build;
      build.add(std::string_view((*made->compiler)->build_id()));
      if (slang)
        if (const auto front = slang_->build_id(SlangCompiler::Target::cuda))
          build.add(std::string_view(*front));
      for (const auto& [name, header] : made->headers)
        build.add(std::string_view(name)).add(header->digest.bytes);
      made->build_id = build.finish().hex();
    }
    cuda_ = std::move(made);
    found_cuda_.store(cuda_.get(), std::memory_order_release);
  }
  return *cuda_;
}

Result<Digest> KernelProgram::key(const device::DeviceBase& device) const {
  const Route& route = this->route(device);
  if (!route.choice.source) return *route.refusal;
  return key(route.choice);
}

Result<Digest> KernelProgram::key(const Choice& choice) const {
  if (choice.source->language == "Slang" && !choice.target) {
    const auto compiler = slang_->build_id(SlangCompiler::Target::spirv);
    if (!compiler) return compiler.error();
    return target_key(choice.source->key, *compiler, "spirv");
  }
  if (!choice.target) return choice.source->key;
  return target_key(choice.source->key, cuda(*choice.source).build_id, to_string(*choice.target));
}

bool KernelProgram::storable(const device::DeviceBase& device) const noexcept {
  try {
    const Prepared* source = route(device).choice.source;
    return source && source->language != "host" && source->language != "native";
  } catch (const std::bad_alloc&) {
    return false;
  }
}

Result<device::Artefact> KernelProgram::build(const device::DeviceBase& device) const {
  const Route& route = this->route(device);
  if (route.refusal) return *route.refusal;
  const Choice& choice = route.choice;
  const Prepared& source = *choice.source;
  if (source.ready) return *source.ready;
  const auto key = this->key(choice);
  if (!key) return key.error();
  if (choice.target) return build_cuda(source, *choice.target, *key);
  const auto* const glsl = std::get_if<Glsl>(&source.data->source);
  const auto* const slang = std::get_if<Slang>(&source.data->source);
  auto words =
      glsl ? compiler_->compile(*glsl, *source.texts, name_) : slang_->spirv(*slang, *source.texts, name_);
  if (!words) return std::move(words).error();
  auto artefact = shader(std::move(*words), "main", source.constants, glsl ? glsl->tile : slang->tile, *key);
  if (!artefact)
    return artefact.error().with_context(
        base::text("in the {} source of kernel '{}'", source.language, name_));
  return artefact;
}

Result<device::Artefact> KernelProgram::build_cuda(const Prepared& source, const CudaTarget& target,
                                                   const Digest& key) const {
  if (const auto* text = std::get_if<CudaCpp>(&source.data->source))
    return build_cuda(source, *text, *source.texts, target, key);
  const auto text = slang_->cuda(std::get<Slang>(source.data->source), *source.texts, name_);
  if (!text) return text.error();
  return build_cuda(source, *text, read_includes(IncludePlaces(*text), text->file), target, key);
}

Result<device::Artefact> KernelProgram::build_cuda(const Prepared& source, const CudaCpp& text,
                                                   const std::vector<SourceText>& texts,
                                                   const CudaTarget& target, const Digest& key) const {
  const Cuda& compiled_by = cuda(source);
  auto code = (*compiled_by.compiler)->compile(text, texts, compiled_by.headers, name_, target);
  if (!code) return std::move(code).error();
  auto artefact = cuda_artefact(*code, target.ptx, text, key);
  if (!artefact)
    return artefact.error().with_context(
        base::text("in the {} source of kernel '{}'", source.language, name_));
  return artefact;
}

template <class Source>
Result<device::Artefact> KernelProgram::cuda_artefact(std::span<const std::byte> bytes, bool ptx,
                                                      const Source& source, const Digest& key) const {
  const std::string& entry = kernel_entry(source, name_);
  auto code = ptx ? reflect_ptx({reinterpret_cast<const char*>(bytes.data()), bytes.size() - 1}, entry)
                  : reflect_cubin(bytes, entry);
  if (!code) return std::move(code).error();
  auto block = block_of(source.workgroup, *code, name_);
  if (!block) return std::move(block).error();
  auto matched = match(schema_, code->interface, name_, Language::function);
  if (!matched) return std::move(matched).error();

  device::Artefact artefact;
  artefact.kernel = name_;
  artefact.language = ptx ? "ptx" : "cubin";
  artefact.entry = entry;
  artefact.code.assign(bytes.begin(), bytes.end());
  artefact.schema = without_members(std::move(matched->schema));
  artefact.passing = std::move(matched->passing);
  artefact.parameter_bytes = matched->parameter_bytes;
  artefact.workgroup = *block;
  artefact.tile = source.tile.value_or(*block);
  artefact.dynamic_shared = static_cast<std::uint32_t>(source.dynamic_shared.count);
  artefact.launch = source.launch;
  artefact.key = key;
  return artefact;
}

std::shared_ptr<const void> keep_compilers() {
  struct Compilers {
    std::shared_ptr<const GlslCompiler> glsl = GlslCompiler::share();
    std::shared_ptr<const SlangCompiler> slang = SlangCompiler::share();
    std::shared_ptr<const void> cuda = CudaCompiler::keep();
  };
  return std::make_shared<const Compilers>();
}

void warm_compilers() {
  if (const auto glsl = GlslCompiler::share())
    (void)glsl->compile({.text = "#version 450\nvoid main() {}\n"}, "warm").has_value();
}

}  // namespace wye::kernel
