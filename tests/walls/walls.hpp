#pragma once
/// Checks a source tree: the includes and words of each room, and the voice of comments and
/// Markdown.
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace walls {

struct Violation {
  std::string rule;
  std::string path;
  std::string sentence;
};

/// Returns every violation in the tree at `root`, sorted by path. Headers below a folder "detail"
/// do not count as public.
std::vector<Violation> check(const std::filesystem::path& root, std::size_t most_public_headers = 85);

/// Returns the rules of `check`.
std::vector<std::string> rules();

}  // namespace walls
