/// wyec: compiles kernels without a device, for build systems.
#include <cstdio>
#include <exception>
#include <wye/kernel/compile.hpp>

#include "command_line.hpp"
#include "write.hpp"

namespace wyec {
namespace {

int failed(const std::string& sentence) {
  std::fprintf(stderr, "wyec: %s\n", sentence.c_str());
  return 1;
}

void print(const wye::Diagnostic& said) {
  wye::Diagnostic line = said;
  line.text = (said.severity == wye::Diagnostic::Severity::error ? "error: " : "warning: ") + said.text;
  std::fprintf(stderr, "%s\n", to_string(line).c_str());
}

int failed(const wye::Error& error) {
  if (error.diagnostics().empty()) return failed(error.describe());
  for (const wye::Diagnostic& said : error.diagnostics()) print(said);
  return 1;
}

template <class Source>
wye::Result<Source> read_file(const Command& command, const Input& input) {
  auto source = Source::from_file(input.path);
  if (source && !command.entry.empty()) source->entry = command.entry;
  return source;
}

/// The source as it is to be compiled; `part` gets its text where that is to be embedded.
template <class Source>
wye::Result<wye::AnySource> read_text(const Command& command, const Input& input, bool embedded, Part& part) {
  auto source = read_file<Source>(command, input);
  if (!source) return source.error();
  source->macros = command.macros;
  source->include_directories.insert(source->include_directories.end(), command.include_directories.begin(),
                                     command.include_directories.end());
  if (embedded) {
    auto whole = self_contained(*source);
    if (!whole) return whole.error();
    // The name that is shown at run time is no path of the build machine.
    whole->file = file_name(input.path);
    part.text = std::move(*whole);
  }
  return wye::AnySource(std::move(*source));
}

template <class Source>
wye::Result<wye::AnySource> read_code(const Command& command, const Input& input) {
  auto source = read_file<Source>(command, input);
  if (!source) return source.error();
  return wye::AnySource(std::move(*source));
}

wye::Result<wye::AnySource> read(const Command& command, const Input& input, Part& part) {
  const bool text = command.action == Action::embed && command.embed == Embed::text;
  const bool cuda_text = command.action == Action::embed && part.target.empty();
  switch (input.language) {
    case Language::glsl: return read_text<wye::Glsl>(command, input, text, part);
    case Language::slang: return read_text<wye::Slang>(command, input, text, part);
    case Language::cuda: return read_text<wye::CudaCpp>(command, input, text || cuda_text, part);
    case Language::spirv: return read_code<wye::SpirV>(command, input);
    case Language::ptx: return read_code<wye::Ptx>(command, input);
    case Language::cubin: return read_code<wye::Cubin>(command, input);
  }
  return wye::Error(wye::Errc::internal, "A language is not known.");
}

/// One file for one target, or its text.
wye::Result<Part> make(const Command& command, const Input& input, std::string target,
                       std::vector<std::string>& files) {
  Part part{.language = input.language, .target = std::move(target)};
  const auto source = read(command, input, part);
  if (!source) return source.error();
  auto compiled = compile(*source, {.name = command.name, .target = part.target, .nvrtc = command.nvrtc});
  if (compiled) {
    for (const wye::Diagnostic& said : compiled->warnings) print(said);
    files.insert(files.end(), compiled->files.begin(), compiled->files.end());
    part.compiled = std::move(*compiled);
    return part;
  }
  // Without a compiler, a text that is compiled at run time is embedded unchecked.
  const bool is_cuda = std::holds_alternative<wye::CudaCpp>(part.text);
  if (!is_cuda || compiled.error() == wye::Errc::compile_failed ||
      compiled.error() == wye::Errc::invalid_argument)
    return compiled.error();
  std::fprintf(stderr, "wyec: %s is not checked: %s\n", input.path.c_str(),
               compiled.error().sentence().c_str());
  return part;
}

/// Every source of the kernel, for every target it is to be compiled for.
wye::Result<std::vector<Part>> make_all(const Command& command, std::vector<std::string>& files) {
  std::vector<Part> parts;
  for (const Input& input : command.inputs) {
    files.push_back(input.path);
    const bool shader = input.language == Language::glsl || input.language == Language::spirv;
    std::vector<std::string> targets;
    for (const std::string& target : command.targets)
      if (command.inputs.size() == 1 || input.language == Language::slang || (target == "spirv") == shader)
        targets.push_back(target);
    if (command.embed == Embed::text || targets.empty()) targets = {std::string()};
    for (std::string& target : targets) {
      auto part = make(command, input, std::move(target), files);
      if (!part) return part.error();
      parts.push_back(std::move(*part));
    }
  }
  return parts;
}

std::string content(const Command& command, const std::vector<Part>& parts) {
  if (command.action == Action::embed) return header(command, parts);
  if (command.action == Action::reflect) return json(command, parts[0]);
  const wye::Compiled& kernel = *parts[0].compiled;
  if (kernel.ptx) return kernel.ptx->text;
  if (kernel.cubin)
    return {reinterpret_cast<const char*>(kernel.cubin->bytes.data()), kernel.cubin->bytes.size()};
  return {reinterpret_cast<const char*>(kernel.spirv.words.data()),
          kernel.spirv.words.size() * sizeof(std::uint32_t)};
}

int run(const Command& command) {
  std::vector<std::string> files;
  const auto parts = make_all(command, files);
  if (!parts) return failed(parts.error());
  const std::string made = content(command, *parts);
  if (command.output.empty())
    return std::fwrite(made.data(), 1, made.size(), stdout) == made.size() && std::fflush(stdout) == 0
               ? 0
               : failed("Standard output cannot be written.");
  // The list of dependencies is written first: without it, the output would stay when they change.
  if (!command.depfile.empty()) {
    if (auto why = write_file(command.depfile, dependencies(command.output, files))) return failed(*why);
  }
  if (auto why = write_file(command.output, made)) return failed(*why);
  return 0;
}

}  // namespace
}  // namespace wyec

int main(int count, char** arguments) {
  try {
    const auto parsed = wyec::parse(count > 0 ? std::vector<std::string>(arguments + 1, arguments + count)
                                              : std::vector<std::string>());
    if (const auto* misuse = std::get_if<wyec::Misuse>(&parsed)) {
      std::fprintf(stderr, "wyec: %s\nwyec --help says what there is.\n", misuse->sentence.c_str());
      return 2;
    }
    const auto& command = std::get<wyec::Command>(parsed);
    if (command.action == wyec::Action::help) return std::fputs(wyec::usage, stdout) < 0;
    if (command.action == wyec::Action::version)
      return std::printf("wyec %s\n", to_string(wye::library_version()).c_str()) < 0;
    if (command.action < wyec::Action::bundle) return wyec::run(command);
    const auto status = wyec::run_on_directory(command);
    if (!status) return wyec::failed(status.error());
    return std::fflush(stdout) == 0 ? *status : wyec::failed("Standard output cannot be written.");
  } catch (const std::exception& thrown) {
    return wyec::failed(thrown.what());
  }
}
