// The main job: the documents of this machine are turned into vectors, compared, ranked, dated and
// drawn. The report shows which device ran each step, and why.
#include <wye/records/progress_bars.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "analysis.hpp"
#include "command_line.hpp"
#include "corpus.hpp"
#include "files.hpp"
#include "findings.hpp"
#include "meaning.hpp"
#include "pictures.hpp"
#include "report.hpp"
#include "runner.hpp"
#include "text.hpp"
#include "tfidf.hpp"

namespace document_network {
namespace {

constexpr std::size_t vector_columns = 512;

int fail(const std::string& message, int status = 1) {
  std::fprintf(stderr, "document_network: %s\n", message.c_str());
  return status;
}

/// Measures the time that the program spends itself.
class Stopwatch {
 public:
  explicit Stopwatch(std::vector<HostStep>& steps) : steps_(steps) {}
  void lap(const char* name) {
    const auto now = Clock::now();
    steps_.push_back({name, std::chrono::duration<double>(now - start_).count()});
    start_ = now;
  }
  void restart() { start_ = Clock::now(); }

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<HostStep>& steps_;
  Clock::time_point start_ = Clock::now();
};

int run(const Options& options) {
  auto runtime = open_runtime(options.backend);
  if (!runtime) {
    const wye::Errc code = runtime.error().code();
    const bool is_mistake = code == wye::Errc::not_found || code == wye::Errc::invalid_argument;
    return fail(runtime.error().describe(), is_mistake ? 2 : 1);
  }
  Runner runner(*runtime, options.backend, options.compare);

  Report report;
  wye::ProgressBars progress(stderr, std::chrono::seconds(1));
  Stopwatch watch(report.host_steps);
  const std::size_t limit = options.documents_limit.value_or(options.documents ? folder_limit : system_limit);
  // A user's folder gets no synthetic documents.
  const std::size_t wanted = options.documents ? 0 : options.documents_limit.value_or(0);
  Corpus corpus =
      gather(options.documents ? find_documents(*options.documents, limit) : find_system_documents(limit),
             wanted, progress, options.by_meaning);
  report.documents = corpus.documents.size();
  report.synthetic = corpus.synthetic;
  report.repaired = corpus.repaired;
  report.skipped = corpus.skipped;
  watch.lap("read");
  if (corpus.documents.empty()) {
    progress.clear();
    return fail("No document can be read: " + describe_input(0, 0, corpus.skipped));
  }

  Vectors vectors = tf_idf(corpus.bags, corpus.vocabulary.words(), vector_columns);
  watch.lap("tf-idf");
  Vectors words;  // of a report by meaning
  if (options.by_meaning) {
    auto meaning =
        embed(corpus.documents, corpus.texts, options.ask.value_or(""), *options.model, runner, progress);
    if (!meaning) {
      progress.clear();
      return fail(meaning.error().describe());
    }
    words = std::exchange(vectors, std::move(meaning->vectors));
    report.meaning.emplace();
    report.meaning->model = meaning->model;
    report.meaning->tokens = meaning->tokens;
    report.meaning->seconds = meaning->seconds;
    report.meaning->question = options.ask.value_or("");
    if (options.ask) report.meaning->answers = best_answers(corpus.documents, *meaning);
  }

  auto analysis = analyse(corpus.documents, std::move(vectors), runner, progress);
  if (!analysis) {
    progress.clear();
    return fail(analysis.error().describe());
  }
  report.compare = runner.agreements();
  report.compared = options.compare;
  report.host_steps.push_back({"graph", analysis->host_seconds});
  report.top = highest_ranked(corpus.documents, analysis->rank);
  report.alike = most_alike(corpus.documents, analysis->neighbours);
  report.copies = count_copies(analysis->neighbours);
  if (report.meaning)
    report.meaning->nearest = nearest_of_both(corpus.documents, words, analysis->neighbours, analysis->rank);

  watch.restart();
  progress.draw({.name = "drawing", .done = 0, .total = 3});
  const auto place = [&](const char* name) { return (std::filesystem::path(options.out) / name).string(); };
  std::vector<File> files;
  files.push_back({place("similarity.png"), draw_heatmap(corpus.documents, analysis->map, analysis->groups,
                                                         analysis->rank, options.by_meaning)});
  progress.draw({.name = "drawing", .done = 1, .total = 3});
  auto network =
      draw_network(runner, corpus.documents, analysis->neighbours, analysis->groups, analysis->rank);
  if (!network) {
    progress.clear();
    return fail(network.error().describe());
  }
  report.steps = runner.steps();
  report.devices = runner.devices();
  files.push_back({place("network.png"), *std::move(network)});
  progress.draw({.name = "drawing", .done = 2, .total = 3});
  files.push_back({place("timeline.png"), draw_timeline(corpus.documents, analysis->moments, analysis->groups,
                                                        analysis->rank, importance_decay)});
  watch.lap("draw");
  progress.clear();
  for (const File& file : files) {
    if (file.bytes.empty())
      return fail("Picture '" + printable(file.path) + "' cannot be drawn: there is no memory for it.");
    report.files.push_back(file.path);
  }

  if (options.neighbours)
    files.push_back({*options.neighbours, neighbours_json(corpus.documents, analysis->neighbours)});
  if (options.json) files.push_back({*options.json, to_json(report)});
  if (const auto wrong = write_all(files)) return fail(*wrong);
  std::fputs(to_text(report).c_str(), stdout);
  const bool agree = std::all_of(report.compare.begin(), report.compare.end(),
                                 [](const Agreement& a) { return a.max_relative_error <= agreement_bound; });
  return agree ? 0 : fail("The backends do not agree.");
}

}  // namespace
}  // namespace document_network

int main(int argc, char** argv) {
  using namespace document_network;
  const auto told = read_command_line({argv + std::min(argc, 1), argv + argc});
  if (std::holds_alternative<Help>(told)) return std::fputs(help_text().c_str(), stdout) < 0;
  if (const auto* mistake = std::get_if<Mistake>(&told))
    return fail(mistake->sentence + "\n\n" + help_text(), 2);
  return run(std::get<Options>(told));
}
