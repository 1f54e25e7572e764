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
  if (options.neighbours && kind_of(*options.neighbours) == Kind::folder)
    return Mistake{"'" + printable(*options.neighbours) + "' (--neighbours) is a folder, not a file."};
  if (options.ask && !options.by_meaning)
    return Mistake{"--ask needs --vectors model: a question and its answer may share no word."};
  if (options.by_meaning && !has_models())
    return Mistake{"This build has no models; 'examples/run.sh --vectors model' builds them."};
  if (options.by_meaning && !options.model)
    return Mistake{
        "--vectors model needs --model DIR, a folder with config.json, model.safetensors and vocab.txt."};
  if (options.by_meaning && kind_of(*options.model) != Kind::folder)
    return Mistake{"Folder '" + printable(*options.model) +
                   "' (--model) does not exist; 'cmake/wheels.sh models' fetches all-MiniLM-L6-v2."};
  return std::nullopt;
}

/// Sets `by_meaning` if `text` is "model". Returns the error if it is neither that nor "words".
std::optional<Mistake> read_vectors(const std::string& text, bool& by_meaning) {
  if (text != "model" && text != "words")
    return Mistake{"--vectors ('" + printable(text, 40) + "') is neither 'words' nor 'model'."};
  by_meaning = text == "model";
  return std::nullopt;
}

/// Sets `limit` to the number that `text` is. Returns the error if it is none, or out of range.
std::optional<Mistake> read_limit(const std::string& text, std::optional<std::size_t>& limit) {
  std::size_t number = 0;
  if (!read_number(text, number) || number < 1 || number > most_documents)
    return Mistake{"--documents-limit ('" + printable(text, 40) + "') is not a number from 1 to " +
                   std::to_string(most_documents) + "."};
  limit = number;
  return std::nullopt;
}

/// The texts of options that are read after parsing.
struct Texts {
  std::string limit;
  std::string vectors = "words";
};

/// Declares the options and their help. Parsing writes to `options` and `texts`, which must outlive
/// it.
void declare(CLI::App& app, Options& options, Texts& texts) {
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
  add("--documents-limit", "N", texts.limit,
      "read at most N documents (default: 400, with --documents 20000). If this machine has\n"
      "fewer and there is no --documents, the others are synthetic: passages of those read");
  add("--vectors", "KIND", texts.vectors,
      "words: compare documents by the words they share (default)\n"
      "model: by their meaning, as a model of language sees their beginnings");
  add("--model", "DIR", options.model, "the model's folder (examples/run.sh names one)");
  add("--ask", "TEXT", options.ask, "with --vectors model: rank the documents as answers to TEXT");
  add("--backend", "NAME", options.backend,
      "auto, cpu, vulkan, cuda, or a device such as vulkan:0\n(default: " + options.backend + ")");
  app.add_flag("--compare", options.compare,
               "run every step on all backends, and show how far they agree with the CPU")
      ->disable_flag_override();
  add("--out", "DIR", options.out, "where the pictures go (default: " + options.out + ")");
  add("--json", "FILE", options.json, "write what was done and found to FILE");
  add("--neighbours", "FILE", options.neighbours, "write the nearest neighbours of every document to FILE");
  app.set_help_flag("-h,--help", "show this");
}

}  // namespace

std::variant<Options, Help, Mistake> read_command_line(std::vector<std::string> arguments) {
  Options options;
  Texts texts;
  CLI::App app;
  declare(app, options, texts);
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
  if (!texts.limit.empty())
    if (auto mistake = read_limit(texts.limit, options.documents_limit)) return std::move(*mistake);
  if (auto mistake = read_vectors(texts.vectors, options.by_meaning)) return std::move(*mistake);
  if (auto mistake = check(options)) return std::move(*mistake);
  return options;
}

std::string help_text() {
  Options defaults;
  Texts texts;
  CLI::App app;
  declare(app, defaults, texts);
  return app.help();
}

}  // namespace document_network
