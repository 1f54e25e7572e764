#include "sizes.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "reader.hpp"

namespace walls {

namespace fs = std::filesystem;

const std::vector<Limit>& size_limits() {
  static const std::vector<Limit> limits{
      {"class-functions", "class-functions", "Class", "functions", "divide it by what it knows", 45, 164},
      {"class-members", "class-members", "Class", "data members", "divide it by what it knows", 20, 153},
      {"function-branches", "function-branches", "Function", "branches", "divide it", 20, 1010},
  };
  return limits;
}

std::vector<Violation> check_sizes(const fs::path& root) {
  std::vector<Violation> found;
  Counts counts;
  for (const char* folder : {"include", "src", "examples", "bench", "tools", "tests"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const auto extension = entry.path().extension();
      const auto path = entry.path().lexically_relative(root).generic_string();
      if ((extension != ".hpp" && extension != ".cpp") || path.starts_with("tests/walls/planted/")) continue;
      const Sizes sizes = sizes_of(text_of(entry.path()));
      if (!sizes.is_balanced) found.push_back({"brackets", path, "The brackets of the file do not match."});
      for (const auto& size : sizes.all) counts[{size.kind, path, size.name}] = size.count;
    }
  }
  auto compared = compare(root, "tests/walls/by_size.txt", size_limits(), counts);
  std::move(compared.begin(), compared.end(), std::back_inserter(found));
  return found;
}

}  // namespace walls
