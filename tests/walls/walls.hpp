#pragma once
/// Checks a source tree against the table of rooms: who may include whom, and whose words are whose.
#include <filesystem>
#include <string>
#include <vector>

namespace walls {

struct Violation {
  std::string rule;
  std::string path;
  std::string sentence;
};

/// Every violation in the tree at `root`, by path.
std::vector<Violation> check(const std::filesystem::path& root);

/// The rules `check` knows.
std::vector<std::string> rules();

}  // namespace walls
