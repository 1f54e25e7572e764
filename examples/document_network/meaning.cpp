#include "meaning.hpp"

#include "analysis.hpp"
#include "command_line.hpp"
#include "text.hpp"

#if DOCUMENT_NETWORK_HAS_MODELS
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <unordered_map>
#include <utility>
#include <wye/models/encoder.hpp>

namespace document_network {
namespace {

namespace models = wye::models;

/// Compares backends: the cosines of the beginnings of some texts. A Vulkan driver on the CPU needs
/// a third of a second for a token.
wye::Result<void> compare_backends(const std::vector<std::string>& texts, const std::string& folder,
                                   Runner& runner) {
  constexpr std::size_t compared = 4, bytes = 40;
  std::vector<std::string> some;
  for (const std::string& text : texts) {
    if (some.size() == compared) break;
    some.push_back(text.substr(0, bytes));
  }
  std::vector<double> reference;
  for (const std::string& backend : runner.backends()) {
    const auto encoder = models::Encoder::open(runner.runtime(), folder, {.on = backend});
    if (!encoder) return encoder.error();
    const auto rows = encoder->embed(some);
    if (!rows) return rows.error().with_context("while embedding on '" + backend + "' to compare");
    std::vector<double> cosines;
    for (std::size_t a = 0; a < some.size(); ++a)
      for (std::size_t b = 0; b < some.size(); ++b) {
        double sum = 0;
        for (std::size_t c = 0; c < rows->columns(); ++c) sum += double{(*rows)[a][c]} * (*rows)[b][c];
        cosines.push_back(sum);
      }
    if (reference.empty())
      reference = std::move(cosines);
    else
      runner.note_agreement("embedding", backend, max_relative_error(cosines, reference));
  }
  return {};
}

/// Divides texts into passages. Licences and copyright files have many in common.
Meaning split(const std::vector<std::string>& texts) {
  constexpr std::size_t words = 64, most = 4;
  Meaning meaning;
  std::unordered_map<std::string, std::uint32_t> places;
  for (const std::string& text : texts) {
    meaning.passages_of.emplace_back();
    for (std::string& passage : passages(text, words, most)) {
      const auto [place, is_new] =
          places.emplace(passage, static_cast<std::uint32_t>(meaning.passages.size()));
      if (is_new) meaning.passages.push_back(std::move(passage));
      meaning.passages_of.back().push_back(place->second);
    }
  }
  return meaning;
}

}  // namespace

bool has_models() { return true; }

wye::Result<Meaning> embed(const std::vector<std::string>& texts, const std::string& question,
                           const std::string& folder, Runner& runner, Progress& progress) {
  progress.show("opening the model", 0, 1);
  const auto encoder = models::Encoder::open(runner.runtime(), folder, {.on = runner.on()});
  if (!encoder) return encoder.error();
  Meaning meaning = split(texts);
  const auto begin = std::chrono::steady_clock::now();
  const auto rows = encoder->embed(meaning.passages,
                                   {.tag = "documents", .progress = [&](const models::EmbedProgress& now) {
                                      progress.show("embedding", now.tokens, now.all_tokens);
                                    }});
  if (!rows) return rows.error();
  meaning.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  meaning.tokens = rows->tokens();
  meaning.vectors.rows = texts.size();
  meaning.vectors.columns = rows->columns();
  meaning.vectors.values.resize(texts.size() * rows->columns());
  for (std::size_t text = 0; text < texts.size(); ++text)
    for (const std::uint32_t passage : meaning.passages_of[text])
      for (std::size_t c = 0; c < rows->columns(); ++c)
        meaning.vectors.values[text * rows->columns() + c] += (*rows)[passage][c];
  runner.note("embedding", rows->device(), rows->reason(), meaning.seconds);
  // The folder has the name of the model, or is the folder "model" in it.
  std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  while (path.has_parent_path() && (path.filename().empty() || path.filename() == "model"))
    path = path.parent_path();
  meaning.model = path.filename().string();
  if (!question.empty()) {
    auto row = encoder->embed(std::vector{question}, {.tag = "question"});
    if (!row) return std::move(row).error();
    if (auto done = compare_with((*row)[0], rows->values(), meaning.similarities, runner); !done)
      return std::move(done).error();
  }
  if (auto done = compare_backends(meaning.passages, folder, runner); !done) return std::move(done).error();
  return meaning;
}

}  // namespace document_network
#else
namespace document_network {

bool has_models() { return false; }

wye::Result<Meaning> embed(const std::vector<std::string>&, const std::string&, const std::string&, Runner&,
                           Progress&) {
  return wye::Error(wye::Errc::unsupported, "This build has no models.");
}

}  // namespace document_network
#endif
