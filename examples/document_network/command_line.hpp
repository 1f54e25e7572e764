#pragma once
/// The options of the program.
#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace document_network {

struct Options {
  std::string backend = "auto";
  bool compare = false;
  std::string out = "document_network_report";
  std::optional<std::string> json = std::nullopt;
  std::optional<std::string> documents = std::nullopt;
  std::optional<std::size_t> documents_limit = std::nullopt;
  std::optional<std::string> neighbours = std::nullopt;
  bool by_meaning = false;  ///< the vectors are those of a model; otherwise they count words
  std::optional<std::string> model = std::nullopt;  ///< its folder
  std::optional<std::string> ask = std::nullopt;
};

/// The largest --documents-limit: comparing so many takes minutes and 1 GB of memory.
inline constexpr std::size_t most_documents = 100'000;

struct Help {};

/// Why the arguments are wrong, one sentence.
struct Mistake {
  std::string sentence;
};

/// Returns whether this build can run models.
bool has_models();

/// Reads "--flag value" and "--flag=value". The last value of a repeated flag is used.
std::variant<Options, Help, Mistake> read_command_line(std::vector<std::string> arguments);

std::string help_text();

}  // namespace document_network
