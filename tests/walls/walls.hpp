#pragma once
/// Checks a source tree against the table of rooms: who may include whom, and whose words are whose.
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

/// Returns every violation in the tree at `root`, sorted by path. Headers below a folder "detail" do not count as public.
std::vector<Violation> check(const std::filesystem::path& root, std::size_t most_public_headers = 45);

/// The rules `check` knows.
std::vector<std::string> rules();

}  // namespace walls
