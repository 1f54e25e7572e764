#include "command_line.hpp"

#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "text.hpp"

namespace document_network {
namespace {

enum class Kind { missing, folder, file, other };

Kind kind_of(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return Kind::missing;
  return S_ISDIR(about.st_mode) ? Kind::folder : S_ISREG(about.st_mode) ? Kind::file : Kind::other;
}

/// Returns the errors in the paths that can be found before any work.
std::optional<Mistake> check(const Options& options) {
  if (options.documents) {
    const Kind kind = kind_of(*options.documents);
    if (kind == Kind::missing)
      return Mistake{"Folder '" + printable(*options.documents) + "' (--documents) does not exist."};
    if (kind != Kind::folder)
      return Mistake{"'" + printable(*options.documents) + "' (--documents) is not a folder."};
  }
  const Kind out = kind_of(options.out);
  if (out != Kind::missing && out != Kind::folder)
    return Mistake{"'" + printable(options.out) + "' (--out) is not a folder."};
  if (options.json && kind_of(*options.json) == Kind::folder)
    return Mistake{"'" + printable(*options.json) + "' (--json) is a folder, not a file."};
  return std::nullopt;
}

/// Declares the options and their help. Parsing writes to `options`, which must outlive it.
void declare(CLI::App& app, Options& options) {
  const auto add = [&](const char* name, const char* type, auto& value, const std::string& help) {
    // Zero values are allowed here and refused after parsing: otherwise an option takes the next
    // one as its value.
    app.add_option(name, value, help)
        ->type_name(type)
        ->expected(0, 1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  };
  app.name("document_network");
  app.description("Compares, ranks, dates and draws documents, on whatever this machine has.");
  app.footer(
      "The exit status is 0 if every step ran (and, with --compare, all backends agree), 2 if an argument\n"
      "is wrong, else 1.");
  app.get_formatter()->column_width(19);
  add("--documents", "DIR", options.documents,
      "read every text in DIR and the folders in it\n"
      "(default: this machine's licence texts and copyright files)");
  add("--backend", "NAME", options.backend,
      "auto, cpu, vulkan, cuda, or a device such as vulkan:0\n(default: " + options.backend + ")");
  app.add_flag("--compare", options.compare,
               "run every step on all backends, and show how far they agree with the CPU")
      ->disable_flag_override();
  add("--out", "DIR", options.out, "where the pictures go (default: " + options.out + ")");
  add("--json", "FILE", options.json, "write what was done and found to FILE");
  app.set_help_flag("-h,--help", "show this");
}

}  // namespace

std::variant<Options, Help, Mistake> read_command_line(std::vector<std::string> arguments) {
  Options options;
  CLI::App app;
  declare(app, options);
  app.allow_extras();
  std::reverse(arguments.begin(), arguments.end());  // CLI11 reads from the back
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return Help{};
  } catch (const CLI::ParseError&) {  // every other option takes any text
    return Mistake{"--compare takes no value."};
  }
  for (const CLI::Option* option : app.get_options())
    for (const std::string& value : option->results())
      if (value.empty()) return Mistake{option->get_name() + " needs a value."};
  if (const auto unknown = app.remaining(); !unknown.empty())
    return Mistake{"Unknown argument '" + printable(unknown.front()) + "'."};
  if (auto mistake = check(options)) return std::move(*mistake);
  return options;
}

std::string help_text() {
  Options defaults;
  CLI::App app;
  declare(app, defaults);
  return app.help();
}

}  // namespace document_network
