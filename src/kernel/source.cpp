#include "kernel/source.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/file.hpp"
#include "base/text.hpp"
#include "kernel/glsl.hpp"
#include "kernel/includes.hpp"

namespace wye {
inline namespace v0 {

using kernel::is_identifier;
using kernel::most_source;
using kernel::SourceData;

namespace {

Error no_memory() { return Error(Errc::out_of_memory, "The host has no memory left to read a source."); }

}  // namespace

Result<Glsl> Glsl::from_file(const std::string& path) {
  try {
    auto text = kernel::read_text(path, most_source);
    if (!text) return std::move(text).error();
    if (!*text) return Error(Errc::not_found, base::text("File '{}' does not exist.", path));
    if ((*text)->empty()) return base::invalid(base::text("File '{}' is empty.", path));
    const std::size_t slash = path.rfind('/');
    std::string folder = slash == path.npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
    return Glsl{.text = std::move(**text), .file = path, .include_directories = {std::move(folder)}};
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Result<SpirV> SpirV::from_file(const std::string& path) {
  try {
    auto content = base::read_file(path, kernel::most_module);
    if (!content) {
      return content.error() == Errc::out_of_memory
                 ? Error(Errc::invalid_argument, content.error().sentence())
                 : content.error();
    }
    if (!*content) return Error(Errc::not_found, base::text("File '{}' does not exist.", path));
    SpirV source;
    source.words.resize((*content)->size() / sizeof(std::uint32_t));
    if (!source.words.empty())
      std::memcpy(source.words.data(), (*content)->data(), source.words.size() * sizeof(std::uint32_t));
    if ((*content)->size() % sizeof(std::uint32_t) != 0 || source.words.size() < 5 ||
        source.words[0] != 0x07230203)
      return Error(Errc::invalid_argument,
                   base::text("File '{}' is not SPIR-V in this machine's byte order.", path));
    return source;
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

std::uint32_t kernel::size_of(ElementType type) {
  switch (type) {
    case ElementType::opaque: return 0;
    case ElementType::int8:
    case ElementType::uint8: return 1;
    case ElementType::float16:
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
          base::text("Kernel '{}' gives specialization constant {} twice.", kernel, result[i].id));
  return result;
}

Result<void> kernel::check(const Glsl& source, const std::string& kernel) {
  if (source.text.find_first_not_of(" \t\r\n") == std::string::npos)
    return base::invalid(base::text("The Glsl source of kernel '{}' is empty.", kernel));
  if (const Bytes size{source.text.size()}; size > most_source)
    return base::invalid(
        base::text("The size of the Glsl source of kernel '{}' ({}) exceeds what a source may have ({}).",
                   kernel, to_string(size), to_string(most_source)));
  if (!is_identifier(source.entry))
    return base::invalid(
        base::text("The entry point '{}' of kernel '{}' is not an identifier.", source.entry, kernel));
  std::vector<std::string_view> names;
  for (const Macro& macro : source.macros) {
    if (!is_identifier(macro.name))
      return base::invalid(base::text("Macro '{}' of kernel '{}' is not an identifier.", macro.name, kernel));
    if (macro.name == source.entry)
      return base::invalid(
          base::text("Macro '{}' of kernel '{}' has the name of its entry point.", macro.name, kernel));
    if (macro.value.find_first_of("\r\n") != std::string::npos)
      return base::invalid(
          base::text("The value of macro '{}' of kernel '{}' has more than one line.", macro.name, kernel));
    names.push_back(macro.name);
  }
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return base::invalid(base::text("Kernel '{}' gives macro '{}' twice.", kernel, *twice));
  return check_includes(source, kernel);
}

AnySource::AnySource(Glsl source)
    : data_(std::make_shared<const SourceData>(SourceData{std::move(source)})) {}

AnySource::AnySource(SpirV source)
    : data_(std::make_shared<const SourceData>(SourceData{std::move(source)})) {}

AnySource::AnySource(std::shared_ptr<const device::HostCode> code, HostOptions options)
    : data_(std::make_shared<const SourceData>(SourceData{kernel::HostSource{std::move(code), options}})) {}

std::string_view AnySource::language() const noexcept {
  struct Name {
    std::string_view operator()(const Glsl&) const { return "Glsl"; }
    std::string_view operator()(const SpirV&) const { return "SpirV"; }
    std::string_view operator()(const kernel::HostSource&) const { return "host"; }
  };
  return std::visit(Name{}, data_->source);
}

}  // namespace v0
}  // namespace wye
