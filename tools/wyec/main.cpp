/// wyec: compiles kernels where there is no device, for build systems.
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

/// The source as it is to be compiled.
wye::Result<wye::AnySource> read(const Command& command, std::optional<wye::Glsl>& text) {
  if (command.language == Language::spirv) {
    auto source = wye::SpirV::from_file(command.input);
    if (!source) return source.error();
    source->entry = command.entry;
    return wye::AnySource(std::move(*source));
  }
  auto source = wye::Glsl::from_file(command.input);
  if (!source) return source.error();
  source->entry = command.entry;
  source->macros = command.macros;
  source->include_directories.insert(source->include_directories.end(), command.include_directories.begin(),
                                     command.include_directories.end());
  if (command.embed == Embed::text) {
    auto whole = self_contained(*source);
    if (!whole) return whole.error();
    text = std::move(*whole);
    // What is shown at run time is no path of the machine it was built on.
    text->file = file_name(command.input);
  }
  return wye::AnySource(std::move(*source));
}

std::string content(const Command& command, const wye::Compiled& kernel,
                    const std::optional<wye::Glsl>& text) {
  switch (command.action) {
    case Action::compile:
      return {reinterpret_cast<const char*>(kernel.spirv.words.data()),
              kernel.spirv.words.size() * sizeof(std::uint32_t)};
    case Action::embed: return header(command, kernel, text);
    default: return json(command, kernel);
  }
}

int run(const Command& command) {
  std::optional<wye::Glsl> text;
  const auto source = read(command, text);
  if (!source) return failed(source.error());
  const auto kernel = compile(*source, {.name = command.name, .target = command.target});
  if (!kernel) return failed(kernel.error());
  for (const wye::Diagnostic& said : kernel->warnings) print(said);

  const std::string made = content(command, *kernel, text);
  if (command.output.empty())
    return std::fwrite(made.data(), 1, made.size(), stdout) == made.size() && std::fflush(stdout) == 0
               ? 0
               : failed("Standard output cannot be written.");
  // The list of what it depends on goes first: without it, the output would stay when they change.
  if (!command.depfile.empty()) {
    std::vector<std::string> files{command.input};
    files.insert(files.end(), kernel->files.begin(), kernel->files.end());
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
    return wyec::run(command);
  } catch (const std::exception& thrown) {
    return wyec::failed(thrown.what());
  }
}
