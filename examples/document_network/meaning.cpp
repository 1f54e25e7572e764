#include "meaning.hpp"

#include "analysis.hpp"
#include "command_line.hpp"
#include "text.hpp"

#if DOCUMENT_NETWORK_HAS_MODELS
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <span>
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

constexpr std::size_t first_passages = 4;

/// Divides texts into passages: the first, or all of well-known documents, if they have to answer a
/// question. Licences and copyright files have many in common.
Meaning divide(const std::vector<Document>& documents, const std::vector<std::string>& texts,
               bool has_question) {
  constexpr std::size_t words = 80;
  Meaning meaning;
  std::unordered_map<std::string, std::uint32_t> places;
  for (std::size_t text = 0; text < texts.size(); ++text) {
    meaning.passages_of.emplace_back();
    const std::size_t most = has_question && documents[text].known ? texts[text].size() : first_passages;
    for (std::string& passage : passages(texts[text], words, most)) {
      const auto [place, is_new] =
          places.emplace(passage, static_cast<std::uint32_t>(meaning.passages.size()));
      if (is_new) meaning.passages.push_back(std::move(passage));
      meaning.passages_of.back().push_back(place->second);
    }
  }
  return meaning;
}

/// Returns the passages nearest to a question that are not nearly equal, without their sentences.
std::vector<NearPassage> nearest_passages(const models::Embeddings& rows,
                                          const std::vector<float>& similarities) {
  constexpr std::size_t most = 24;
  std::vector<std::uint32_t> order(rows.rows());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return similarities[a] > similarities[b]; });
  std::vector<NearPassage> near;
  for (const std::uint32_t passage : order) {
    if (near.size() == most) break;
    if (std::none_of(near.begin(), near.end(), [&](const NearPassage& other) {
          return cosine(rows[passage], rows[other.passage]) >= nearly_equal;
        }))
      near.push_back({.passage = passage});
  }
  return near;
}

/// Adds the sentence that is nearest to the question to each passage, and sorts by its similarity.
wye::Result<void> find_sentences(const models::Encoder& encoder, std::span<const float> question,
                                 const std::vector<std::string>& passages, std::vector<NearPassage>& near) {
  std::vector<std::string> all;
  std::vector<std::size_t> counts;
  for (const NearPassage& one : near) {
    const auto some = sentences(passages[one.passage]);
    all.insert(all.end(), some.begin(), some.end());
    counts.push_back(some.size());
  }
  const auto rows = encoder.embed(all, {.tag = "sentences"});
  if (!rows) return rows.error();
  std::size_t row = 0;
  for (std::size_t i = 0; i < near.size(); ++i)
    for (const std::size_t end = row + counts[i]; row < end; ++row) {
      const float similarity = cosine((*rows)[row], question);
      if (!near[i].sentence.empty() && similarity <= near[i].similarity) continue;
      near[i].sentence = all[row];
      near[i].similarity = similarity;
      near[i].vector.assign((*rows)[row].begin(), (*rows)[row].end());
    }
  std::stable_sort(near.begin(), near.end(),
                   [](const NearPassage& a, const NearPassage& b) { return a.similarity > b.similarity; });
  return {};
}

}  // namespace

bool has_models() { return true; }

wye::Result<Meaning> embed(const std::vector<Document>& documents, const std::vector<std::string>& texts,
                           const std::string& question, const std::string& folder, Runner& runner,
                           wye::ProgressBars& progress) {
  progress.draw({.name = "opening the model", .done = 0, .total = 1});
  const auto encoder = models::Encoder::open(runner.runtime(), folder, {.on = runner.on()});
  if (!encoder) return encoder.error();
  Meaning meaning = divide(documents, texts, !question.empty());
  const auto begin = std::chrono::steady_clock::now();
  const auto rows = encoder->embed(
      meaning.passages, {.tag = "documents", .progress = [&](const models::EmbedProgress& now) {
                           progress.draw({.name = "embedding", .done = now.tokens, .total = now.all_tokens});
                         }});
  if (!rows) return rows.error();
  meaning.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  meaning.tokens = rows->tokens();
  meaning.vectors.rows = texts.size();
  meaning.vectors.columns = rows->columns();
  meaning.vectors.values.resize(texts.size() * rows->columns());
  for (std::size_t text = 0; text < texts.size(); ++text)
    for (const std::uint32_t passage : std::span(meaning.passages_of[text])
                                           .first(std::min(meaning.passages_of[text].size(), first_passages)))
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
    std::vector<float> similarities;
    if (auto done = compare_with((*row)[0], rows->values(), similarities, runner); !done)
      return std::move(done).error();
    meaning.near = nearest_passages(*rows, similarities);
    if (auto done = find_sentences(*encoder, (*row)[0], meaning.passages, meaning.near); !done)
      return std::move(done).error();
  }
  if (auto done = compare_backends(meaning.passages, folder, runner); !done) return std::move(done).error();
  return meaning;
}

}  // namespace document_network
#else
namespace document_network {

bool has_models() { return false; }

wye::Result<Meaning> embed(const std::vector<Document>&, const std::vector<std::string>&, const std::string&,
                           const std::string&, Runner&, wye::ProgressBars&) {
  return wye::Error(wye::Errc::unsupported, "This build has no models.");
}

}  // namespace document_network
#endif
