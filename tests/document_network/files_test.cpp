#include "files.hpp"

#include <unistd.h>

#include "support/temporary_folder.hpp"

using namespace document_network;
namespace fs = std::filesystem;

namespace {

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

}  // namespace

TEST_CASE("files are written, with the folders they are in", "[document_network]") {
  const TemporaryFolder folder;
  CHECK_FALSE(write_all({{folder / "new/deep/a", "first"}, {folder / "b", std::string("\0\1", 2)}}));
  CHECK(folder.get("new/deep/a") == "first");
  CHECK(folder.get("b") == std::string("\0\1", 2));
  CHECK(entries(folder.path()) == 2);
  CHECK(entries(folder / "new/deep") == 1);
}

TEST_CASE("if one file cannot be written, none is", "[document_network]") {
  const TemporaryFolder folder;
  folder.put("a", "old");
  folder.put("plain", "a file");
  fs::create_directory(folder / "folder");
  const std::string last = GENERATE(std::string("plain/below"), std::string("folder"));
  CAPTURE(last);
  const auto wrong = write_all({{folder / "a", "new"}, {folder / "b", "new"}, {folder / last, "x"}});
  REQUIRE(wrong);
  CHECK(wrong->find("cannot be written") != std::string::npos);
  CHECK(folder.get("a") == "old");
  CHECK_FALSE(fs::exists(folder / "b"));
}

TEST_CASE("nothing is left behind by a failure", "[document_network]") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "folder");
  REQUIRE(write_all({{folder / "a", "new"}, {folder / "folder", "x"}}));
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a link stays a link and a device stays a device", "[document_network]") {
  const TemporaryFolder folder;
  folder.put("real/target", "old");
  fs::create_symlink("real/target", folder / "link");
  CHECK_FALSE(write_all({{folder / "link", "new"}, {"/dev/null", "gone"}}));
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(folder.get("real/target") == "new");
  CHECK(fs::is_character_file("/dev/null"));
}
