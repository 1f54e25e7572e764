#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "text.hpp"

namespace document_network {
namespace {

/// Returns `text` padded or shortened to `width` characters.
std::string column(const std::string& text, std::size_t width, bool to_the_right = false) {
  const std::string shown = printable(text, width);
  const std::string blanks(width - length(shown), ' ');
  return to_the_right ? blanks + shown : shown + blanks;
}

std::string time(double seconds) {
  char text[32];
  if (seconds < 1e-3)
    std::snprintf(text, sizeof text, "%.0f us", seconds * 1e6);
  else if (seconds < 1)
    std::snprintf(text, sizeof text, "%.1f ms", seconds * 1e3);
  else
    std::snprintf(text, sizeof text, "%.2f s", seconds);
  return text;
}

std::string number(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// Returns `value`, or the largest number of its sign if it is infinite or NaN: JSON has neither.
double finite(double value) {
  return std::isfinite(value) ? value : std::copysign(std::numeric_limits<double>::max(), value);
}

/// "Radeon: ran 5 of 6 steps. The others: 'cpu' comes first for graph work of 2 KiB."
std::string describe_device(const ConsideredDevice& device, std::size_t steps) {
  const std::size_t ran = device.steps.size();
  std::string text = printable(device.name);
  if (ran == steps) return text + ": ran every step.";
  if (ran > 0)
    text += ": ran " + std::to_string(ran) + " of " + std::to_string(steps) + " steps. The others: ";
  else if (!text.empty())
    text += ": ";
  return text + printable(device.reason);
}

/// Describes the model, the answers to the question, and the neighbours by words and by meaning.
std::string describe_meaning(const MeaningReport& meaning) {
  std::string text = "\nModel '" + printable(meaning.model, 60) + "': " + std::to_string(meaning.tokens) +
                     " tokens, " + number("%.0f", static_cast<double>(meaning.tokens) / meaning.seconds) +
                     " a second\n";
  if (!meaning.answers.empty()) text += "\n" + printable(meaning.question, 100) + "\n";
  for (const Answer& answer : meaning.answers) {
    std::string before = "  " + number("%.2f", answer.similarity) + "  " + column(answer.label, 24) + "  ";
    for (const std::string& line : wrapped(answer.sentence, 84, 3)) {
      text += before + line + "\n";
      before = std::string(length(before), ' ');
    }
  }
  if (meaning.nearest.empty()) return text;
  text += "\n  " + column("Nearest to", 26) + "   " + column("by words", 31) + "   by meaning\n";
  for (const NearestOfBoth& one : meaning.nearest)
    text += "  " + column(one.document, 26) + "   " + number("%.2f", one.words_similarity) + " " +
            column(one.by_words, 26) + "   " + number("%.2f", one.meaning_similarity) + " " +
            printable(one.by_meaning, 40) + "\n";
  return text;
}

}  // namespace

std::string to_json(const Report& report) {
  using Json = nlohmann::ordered_json;
  Json host_steps = Json::array(), steps = Json::array(), top = Json::array(), compare = Json::array();
  for (const HostStep& step : report.host_steps)
    host_steps.push_back({{"name", step.name}, {"seconds", step.seconds}});
  for (const Step& step : report.steps)
    steps.push_back({{"name", step.name},
                     {"backend", step.backend},
                     {"device", step.device},
                     {"reason", step.reason},
                     {"seconds", step.seconds},
                     {"cache", step.cache}});
  for (const Ranked& document : report.top)
    top.push_back({{"path", document.path}, {"rank", finite(document.rank)}});
  for (const Agreement& agreement : report.compare)
    compare.push_back({{"backend", agreement.backend},
                       {"step", agreement.step},
                       {"max_relative_error", finite(agreement.max_relative_error)}});
  Json json{{"documents", report.documents},
            {"synthetic", report.synthetic},
            {"skipped", report.skipped},
            {"host_steps", host_steps},
            {"steps", steps},
            {"top", top},
            {"files", report.files},
            {"compare", compare}};
  if (report.meaning) {
    const MeaningReport& meaning = *report.meaning;
    Json nearest = Json::array(), answers = Json::array();
    for (const NearestOfBoth& one : meaning.nearest)
      nearest.push_back({{"document", one.document},
                         {"by_words", one.by_words},
                         {"words_similarity", finite(one.words_similarity)},
                         {"by_meaning", one.by_meaning},
                         {"meaning_similarity", finite(one.meaning_similarity)}});
    for (const Answer& answer : meaning.answers)
      answers.push_back({{"path", answer.path},
                         {"similarity", finite(answer.similarity)},
                         {"sentence", answer.sentence},
                         {"passage", answer.passage}});
    json["meaning"] = {{"model", meaning.model}, {"tokens", meaning.tokens},     {"seconds", meaning.seconds},
                       {"nearest", nearest},     {"question", meaning.question}, {"answers", answers}};
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string describe_input(std::size_t documents, std::size_t repaired, const Skipped& skipped,
                           std::size_t synthetic) {
  std::size_t total = 0;
  std::string reasons;
  for (const auto& [reason, count] : skipped) {
    total += count;
    reasons += (reasons.empty() ? ": " : ", ") + std::to_string(count) + " " + reason;
  }
  return std::to_string(documents) + (documents == 1 ? " document" : " documents") +
         (synthetic > 0 ? " (" + std::to_string(synthetic) + " synthetic)" : "") +
         (repaired > 0 ? " (" + std::to_string(repaired) + " not UTF-8, read as Latin-1)" : "") +
         (total > 0 ? "; " + std::to_string(total) + (total == 1 ? " file" : " files") + " left out" + reasons
                    : "") +
         ".";
}

std::string to_text(const Report& report) {
  std::string text =
      describe_input(report.documents, report.repaired, report.skipped, report.synthetic) + "\n\n";

  std::size_t device = std::string_view("this program").size();
  for (const Step& step : report.steps) device = std::max(device, length(printable(step.device, 44)));
  const auto line = [&](const std::string& name, const std::string& backend, const std::string& where,
                        const std::string& seconds, const std::string& kernel, const std::string& why) {
    text += column(name, 11) + " " + column(backend, 8) + " " + column(where, device) + " " +
            column(seconds, 9, true) + "  " + (why.empty() ? kernel : column(kernel, 7) + " " + why) + "\n";
  };
  line("step", "backend", "device", "time", "kernel", "why there");
  for (const Step& step : report.steps)
    line(step.name, step.backend, step.device, time(step.seconds), step.cache == "none" ? "-" : step.cache,
         printable(step.reason));
  for (const HostStep& step : report.host_steps)
    line(step.name, "-", "this program", time(step.seconds), "-", "");

  if (report.meaning) text += describe_meaning(*report.meaning);
  text += "\nHighest ranked:\n";
  for (const Ranked& document : report.top)
    text += "  " + number("%.4f", document.rank) + "  " + printable(document.label, 60) + "\n";
  if (!report.alike.empty() || report.copies > 0) text += "\nMost alike:\n";
  for (const Pair& pair : report.alike)
    text += "  " + number("%.2f", pair.similarity) + "  " + printable(pair.a, 40) + " ~ " +
            printable(pair.b, 40) + "\n";
  if (report.copies > 0)
    text += "  1.00  " + std::to_string(report.copies) +
            (report.copies == 1 ? " document equals" : " documents equal") + " an earlier one\n";

  if (report.compared) {
    text += "\nLargest relative difference from the CPU:\n";
    if (report.compare.empty()) text += "  no other backend on this machine\n";
    for (const Agreement& agreement : report.compare)
      text += "  " + column(agreement.backend, 8) + " " + column(agreement.step, 12) +
              number("%.1e", agreement.max_relative_error) +
              (agreement.max_relative_error <= agreement_bound ? "" : "  DIFFERS") + "\n";
  }
  text += "\nDevices considered:\n";
  for (const ConsideredDevice& considered : report.devices)
    text += "  " + column(considered.id, 9) + describe_device(considered, report.steps.size()) + "\n";
  text += "\nPictures:\n";
  for (const std::string& file : report.files) text += "  " + printable(file) + "\n";
  text += "\nNext: ";
  text += report.compared
              ? "'examples/run.sh --documents DIR' does the same for the texts of a folder.\n"
              : "'examples/run.sh --compare' runs every step on each backend and compares the results.\n";
  return text;
}

}  // namespace document_network
