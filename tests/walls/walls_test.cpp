#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include "support/catch.hpp"
#include "walls.hpp"

namespace {

std::vector<std::string> lines_of(const std::vector<walls::Violation>& violations) {
  std::vector<std::string> lines;
  for (const auto& violation : violations) lines.push_back(violation.path + ": " + violation.sentence);
  std::sort(lines.begin(), lines.end());
  return lines;
}

const std::filesystem::path tree = SOURCE_TREE;
const std::filesystem::path planted = tree / "tests/walls/planted";
constexpr std::size_t planted_headers = 5;

}  // namespace

TEST_CASE("the source tree follows the rules of the walls", "[walls]") {
  for (const auto& line : lines_of(walls::check(tree))) FAIL_CHECK(line);
  CHECK(std::filesystem::exists(tree / "src/base"));
}

TEST_CASE("exactly the planted violations are found", "[walls]") {
  std::vector<std::string> expected;
  std::ifstream file(planted / "expected.txt");
  for (std::string line; std::getline(file, line);) expected.push_back(line);
  std::sort(expected.begin(), expected.end());
  CHECK(lines_of(walls::check(planted, planted_headers - 1)) == expected);
}

TEST_CASE("a violation of every rule is planted", "[walls]") {
  std::set<std::string> caught;
  for (const auto& violation : walls::check(planted, planted_headers - 1)) caught.insert(violation.rule);
  for (const auto& rule : walls::rules()) {
    INFO(rule);
    CHECK(caught.contains(rule));
  }
}
