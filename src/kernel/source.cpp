#include "kernel/source.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/file.hpp"
#include "base/text.hpp"
#include "kernel/compilers/glsl.hpp"
#include "kernel/compilers/includes.hpp"
#include "kernel/reflect/cuda_code.hpp"

namespace wye::inline v0 {

using kernel::is_identifier;
using kernel::most_source;
using kernel::SourceData;

namespace {

Error no_memory() { return Error(Errc::out_of_memory, "The host has no memory left to read a source."); }

Error no_file(const std::string& path) {
  return Error(Errc::not_found, base::text("File '{}' does not exist.", path));
}

/// Errors: those of `from_file`.
Result<std::string> text_of(const std::string& path, Bytes at_most) {
  auto text = kernel::read_text(path, at_most);
  if (!text) return std::move(text).error();
  if (!*text) return no_file(path);
  if ((*text)->empty()) return base::invalid(base::text("File '{}' is empty.", path));
  return std::move(**text);
}

Result<std::vector<std::byte>> module_of(const std::string& path) {
  auto content = base::read_file(path, kernel::most_module);
  if (!content) {
    return content.error() == Errc::out_of_memory ? Error(Errc::invalid_argument, content.error().sentence())
                                                  : content.error();
  }
  if (!*content) return no_file(path);
  return std::move(**content);
}

template <class Source>
Result<Source> including_source(const std::string& path) {
  try {
    auto text = text_of(path, most_source);
    if (!text) return std::move(text).error();
    const std::size_t slash = path.rfind('/');
    Source source;
    source.text = std::move(*text);
    source.file = source.path = path;
    source.include_directories = {slash == path.npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1))};
    return source;
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

}  // namespace

Result<Glsl> Glsl::from_file(const std::string& path) { return including_source<Glsl>(path); }
Result<Slang> Slang::from_file(const std::string& path) { return including_source<Slang>(path); }
Result<CudaCpp> CudaCpp::from_file(const std::string& path) { return including_source<CudaCpp>(path); }

Result<Ptx> Ptx::from_file(const std::string& path) {
  try {
    auto text = text_of(path, kernel::most_module);
    if (!text) return std::move(text).error();
    Ptx source;
    source.text = std::move(*text);
    source.path = path;
    return source;
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Result<Cubin> Cubin::from_file(const std::string& path) {
  try {
    auto bytes = module_of(path);
    if (!bytes) return std::move(bytes).error();
    if (auto made_for = kernel::cubin_architecture(*bytes); !made_for)
      return made_for.error().with_context(base::text("in file '{}'", path));
    Cubin source;
    source.bytes = std::move(*bytes);
    source.path = path;
    return source;
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Result<SpirV> SpirV::from_file(const std::string& path) {
  try {
    auto bytes = module_of(path);
    if (!bytes) return std::move(bytes).error();
    SpirV source;
    source.words.resize(bytes->size() / sizeof(std::uint32_t));
    if (!source.words.empty())
      std::memcpy(source.words.data(), bytes->data(), source.words.size() * sizeof(std::uint32_t));
    constexpr std::size_t header = 5 * sizeof(std::uint32_t);
    const std::uint32_t first = source.words.empty() ? 0 : source.words[0];
    if (first == 0x03022307)
      return base::invalid(base::text("File '{}' is SPIR-V in the byte order of another machine.", path));
    if (first != 0x07230203)
      return base::invalid(base::text("File '{}' is not SPIR-V: it lacks the magic number.", path));
    if (bytes->size() % sizeof(std::uint32_t) != 0 || bytes->size() < header)
      return base::invalid(base::text(
          "The size of file '{}' ({} bytes) is not that of SPIR-V: a multiple of 4 of at least {}.", path,
          bytes->size(), header));
    source.path = path;
    return source;
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

namespace {

template <class Source>
auto& content_of(Source& source) {
  if constexpr (std::is_same_v<Source, SpirV>)
    return source.words;
  else if constexpr (std::is_same_v<Source, Cubin>)
    return source.bytes;
  else
    return source.text;
}

constexpr const std::string* origin_of(const kernel::HostSource&) { return nullptr; }
constexpr const std::string* origin_of(const kernel::NativeSource&) { return nullptr; }
template <class Source>
const std::string* origin_of(const Source& source) {
  return source.path.empty() ? nullptr : &source.path;
}

}  // namespace

bool kernel::is_from_file(const AnySource& source) {
  return std::visit([](const auto& one) { return origin_of(one) != nullptr; }, source.data()->source);
}

Result<AnySource> kernel::read_again(const AnySource& source) {
  return std::visit(
      [&](const auto& before) -> Result<AnySource> {
        using Source = std::decay_t<decltype(before)>;
        const std::string* const path = origin_of(before);
        if (!path) return source;
        if constexpr (requires { Source::from_file(*path); }) {
          auto now = Source::from_file(*path);
          if (!now) return std::move(now).error();
          Source again = before;
          content_of(again) = std::move(content_of(*now));
          return AnySource(std::move(again));
        }
        return source;
      },
      source.data()->source);
}

std::vector<std::string> kernel::files_of(const AnySource& source) {
  std::vector<std::string> files;
  std::visit(
      [&](const auto& one) {
        const std::string* const path = origin_of(one);
        if (!path) return;
        files.push_back(*path);
        if constexpr (requires { one.include_directories; }) {
          constexpr bool imports = std::is_same_v<std::decay_t<decltype(one)>, Slang>;
          read_includes(IncludePlaces(one, imports), *path, &files);
        }
      },
      source.data()->source);
  return files;
}

std::uint32_t kernel::size_of(ElementType type) {
  switch (type) {
    case ElementType::opaque: return 0;
    case ElementType::boolean:
    case ElementType::int8:
    case ElementType::uint8: return 1;
    case ElementType::float16:
    case ElementType::bfloat16:
    case ElementType::int16:
    case ElementType::uint16: return 2;
    case ElementType::float32:
    case ElementType::int32:
    case ElementType::uint32: return 4;
    case ElementType::float64:
    case ElementType::int64:
    case ElementType::uint64: return 8;
  }
  return 0;
}

Result<std::vector<device::Specialization>> kernel::canonical(
    const std::vector<SpecializationConstant>& constants, const std::string& kernel) {
  std::vector<device::Specialization> result;
  for (const SpecializationConstant& c : constants) result.push_back({c.id, c.size, c.bits});
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  for (std::size_t i = 1; i < result.size(); ++i)
    if (result[i - 1].id == result[i].id)
      return base::invalid(
          base::text("Kernel '{}' sets specialization constant {} twice.", kernel, result[i].id));
  return result;
}

namespace {

template <class Source>
Result<void> check_size(const Source& source, std::string_view language, const std::string& name) {
  if (source.text.find_first_not_of(" \t\r\n") == std::string::npos)
    return base::invalid(base::text("The {} source of kernel '{}' is empty.", language, name));
  if (const Bytes size{source.text.size()}; size > most_source)
    return base::invalid(
        base::text("The size of the {} source of kernel '{}' ({}) exceeds the limit of a source ({}).",
                   language, name, to_string(size), to_string(most_source)));
  return {};
}

template <class Source>
Result<void> check_macros(const Source& source, std::string_view entry, const std::string& name) {
  std::vector<std::string_view> names;
  for (const Macro& macro : source.macros) {
    const std::string_view identifier = kernel::macro_identifier(macro.name);
    if (identifier.empty())
      return base::invalid(base::text(
          "Macro '{}' of kernel '{}' is not an identifier, with or without parameters.", macro.name, name));
    if (identifier == entry)
      return base::invalid(
          base::text("Macro '{}' of kernel '{}' has the name of its entry point.", identifier, name));
    if (macro.value.find_first_of("\r\n") != std::string::npos)
      return base::invalid(
          base::text("The value of macro '{}' of kernel '{}' has more than one line.", macro.name, name));
    names.push_back(identifier);
  }
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return base::invalid(base::text("Kernel '{}' defines macro '{}' twice.", name, *twice));
  return kernel::check_includes(source.includes, name);
}

template <class Source>
Result<void> check_text(const Source& source, std::string_view language, std::string_view entry,
                        const std::string& name) {
  if (auto done = check_size(source, language, name); !done) return done;
  if (!is_identifier(entry))
    return base::invalid(
        base::text("The entry point '{}' of kernel '{}' is not an identifier.", entry, name));
  return check_macros(source, entry, name);
}

}  // namespace

Result<void> kernel::check(const Glsl& source, const std::string& kernel) {
  return check_text(source, "Glsl", source.entry, kernel);
}

Result<void> kernel::check(const CudaCpp& source, const std::string& kernel) {
  if (source.text.find('\0') != std::string::npos)
    return base::invalid(base::text("The CudaCpp source of kernel '{}' has a zero byte.", kernel));
  constexpr std::uint32_t most_registers = 255;
  if (source.max_registers > most_registers)
    return base::invalid(base::text("The registers of one thread of kernel '{}' ({}) exceed the limit ({}).",
                                    kernel, source.max_registers, most_registers));
  constexpr std::uint32_t oldest_standard = 11, newest_standard = 98;
  if (source.standard < oldest_standard || source.standard > newest_standard)
    return base::invalid(
        base::text("The C++ standard of kernel '{}' ({}) is unknown; valid standards begin at 11.", kernel,
                   source.standard));
  return check_text(source, "CudaCpp", kernel_entry(source, kernel), kernel);
}

Result<void> kernel::check(const Slang& source, const std::string& kernel) {
  if (source.module.empty()) {
    if (auto done = check_size(source, "Slang", kernel); !done) return done;
    if (source.text.find('\0') != source.text.npos)
      return base::invalid(base::text("The Slang source of kernel '{}' has a zero byte.", kernel));
  } else if (!source.text.empty()) {
    return base::invalid(base::text("The Slang source of kernel '{}' has both a text and a module.", kernel));
  } else if (const Bytes size{source.module.size()}; size > most_module) {
    return base::invalid(
        base::text("The size of the Slang module of kernel '{}' ({}) exceeds the limit ({}).", kernel,
                   to_string(size), to_string(most_module)));
  }
  if (source.entry.find_first_of(std::string_view("\r\n\0", 3)) != source.entry.npos)
    return base::invalid(
        base::text("The entry point of kernel '{}' has a line break or a zero byte.", kernel));
  if (auto done = check_macros(source, source.entry, kernel); !done) return done;
  std::vector<std::string_view> names;
  for (const LinkConstant& constant : source.constants) {
    if (!is_identifier(constant.name))
      return base::invalid(
          base::text("Link-time constant '{}' of kernel '{}' is not an identifier.", constant.name, kernel));
    names.push_back(constant.name);
  }
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return base::invalid(base::text("Kernel '{}' sets link-time constant '{}' twice.", kernel, *twice));
  return {};
}

AnySource::AnySource(Glsl source) : data_(std::make_shared<const SourceData>(std::move(source))) {}
AnySource::AnySource(Slang source) : data_(std::make_shared<const SourceData>(std::move(source))) {}
AnySource::AnySource(SpirV source) : data_(std::make_shared<const SourceData>(std::move(source))) {}
AnySource::AnySource(CudaCpp source) : data_(std::make_shared<const SourceData>(std::move(source))) {}
AnySource::AnySource(Ptx source) : data_(std::make_shared<const SourceData>(std::move(source))) {}
AnySource::AnySource(Cubin source) : data_(std::make_shared<const SourceData>(std::move(source))) {}

AnySource::AnySource(std::shared_ptr<const device::NativeCode> code, std::string backend)
    : data_(std::make_shared<const SourceData>(kernel::NativeSource{std::move(code), std::move(backend)})) {}

AnySource::AnySource(std::shared_ptr<const device::HostCode> code, HostOptions options)
    : data_(std::make_shared<const SourceData>(kernel::HostSource{std::move(code), options})) {}

std::string_view AnySource::language() const noexcept {
  struct Name {
    std::string_view operator()(const Glsl&) const { return "Glsl"; }
    std::string_view operator()(const Slang&) const { return "Slang"; }
    std::string_view operator()(const SpirV&) const { return "SpirV"; }
    std::string_view operator()(const CudaCpp&) const { return "CudaCpp"; }
    std::string_view operator()(const Ptx&) const { return "Ptx"; }
    std::string_view operator()(const Cubin&) const { return "Cubin"; }
    std::string_view operator()(const kernel::HostSource&) const { return "host"; }
    std::string_view operator()(const kernel::NativeSource&) const { return "native"; }
  };
  return std::visit(Name{}, data_->source);
}

}  // namespace wye
