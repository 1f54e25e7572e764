#pragma once
/// Checks a source tree against the table of rooms: includes, and words that belong to a room.
#include <filesystem>
#include <string>
#include <vector>

namespace walls {

struct Violation {
  std::string rule;
  std::string path;
  std::string sentence;
};

/// Returns every violation in the tree at `root`, ordered by path.
std::vector<Violation> check(const std::filesystem::path& root);

/// Returns the rules that `check` knows.
std::vector<std::string> rules();

}  // namespace walls
