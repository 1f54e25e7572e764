#pragma once
/// The report: JSON for scripts, text for people.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "documents.hpp"

namespace document_network {

/// A step that the program ran itself.
struct HostStep {
  std::string name;
  double seconds = 0;
};

/// A step that the runtime ran.
struct Step {
  std::string name;
  std::string backend;
  std::string device;
  std::string reason;  ///< why on this device
  double seconds = 0;
  std::string cache;  ///< source of its kernel: memory, disk, built or none
};

/// A device that the runtime considered for the steps.
struct ConsideredDevice {
  std::string id;                  ///< "vulkan:0"
  std::string name;                ///< as its driver reports it; empty if there is none
  std::vector<std::string> steps;  ///< that it ran
  std::string reason;              ///< why it did not run the first of the other steps
};

struct Ranked {
  std::string path;
  std::string label;
  double rank = 0;
};

/// The difference between a backend's result and the CPU's.
struct Agreement {
  std::string backend;
  std::string step;
  double max_relative_error = 0;
};

/// Two nearly equal documents.
struct Pair {
  std::string a, b;
  double similarity = 0;
};

/// The nearest document of one document, by the words that they share and by their meaning.
struct NearestOfBoth {
  std::string document;
  std::string by_words, by_meaning;
  double words_similarity = 0, meaning_similarity = 0;
};

/// A document as the answer to a question.
struct Answer {
  std::string path;
  std::string label;
  double similarity = 0;  ///< of the question and the sentence
  std::string sentence;
  std::string passage;  ///< that contains the sentence
};

/// The part of the report about a model's vectors.
struct MeaningReport {
  std::string model;
  std::size_t tokens = 0;
  double seconds = 0;  ///< to embed the documents
  std::vector<NearestOfBoth> nearest;
  std::string question;         ///< empty: none
  std::vector<Answer> answers;  ///< best first
};

struct Report {
  std::size_t documents = 0;
  std::size_t synthetic = 0;  ///< of these, not read but made of passages of the others
  std::size_t repaired = 0;   ///< of these, not UTF-8
  Skipped skipped;
  std::vector<HostStep> host_steps;
  std::vector<Step> steps;
  std::vector<ConsideredDevice> devices;
  std::vector<Ranked> top;         ///< highest rank first
  std::vector<Pair> alike;         ///< most similar first
  std::size_t copies = 0;          ///< documents that equal an earlier one
  std::vector<Agreement> compare;  ///< empty unless requested
  bool compared = false;
  std::optional<MeaningReport> meaning = std::nullopt;  ///< unset: the vectors count words
  std::vector<std::string> files;
};

/// Bytes that are not UTF-8 become U+FFFD. Infinity and NaN become the largest finite number.
std::string to_json(const Report& report);
std::string to_text(const Report& report);

/// "400 documents; 3 skipped: 2 empty, 1 binary."
std::string describe_input(std::size_t documents, std::size_t repaired, const Skipped& skipped,
                           std::size_t synthetic = 0);

/// The error above which two backends disagree.
inline constexpr double agreement_bound = 1e-3;

}  // namespace document_network
