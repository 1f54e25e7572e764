#pragma once
/// What was done and found, as JSON for scripts and as text for people.
#include <cstddef>
#include <string>
#include <vector>

#include "documents.hpp"

namespace document_network {

/// Something the program did itself.
struct HostStep {
  std::string name;
  double seconds = 0;
};

/// Something the runtime did.
struct Step {
  std::string name;
  std::string backend;
  std::string device;
  std::string reason;  ///< why there
  double seconds = 0;
  std::string cache;  ///< where its kernel was found: memory, disk, built or none
};

struct Ranked {
  std::string path;
  std::string label;
  double rank = 0;
};

/// How far a backend's answer is from the CPU's.
struct Agreement {
  std::string backend;
  std::string step;
  double max_relative_error = 0;
};

/// Two documents that say nearly the same.
struct Pair {
  std::string a, b;
  double similarity = 0;
};

struct Report {
  std::size_t documents = 0;
  std::size_t repaired = 0;  ///< of these, not in UTF-8
  Skipped skipped;
  std::vector<HostStep> host_steps;
  std::vector<Step> steps;
  std::vector<Ranked> top;         ///< highest rank first
  std::vector<Pair> alike;         ///< most alike first
  std::size_t copies = 0;          ///< documents that say the same as an earlier one
  std::vector<Agreement> compare;  ///< empty unless asked for
  bool compared = false;
  std::vector<std::string> files;
};

std::string to_json(const Report& report);
std::string to_text(const Report& report);

/// "400 documents; 3 skipped: 2 empty, 1 binary."
std::string describe_input(std::size_t documents, std::size_t repaired, const Skipped& skipped);

/// The error beyond which two backends do not agree.
inline constexpr double agreement_bound = 1e-3;

}  // namespace document_network
