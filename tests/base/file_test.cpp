#include "base/file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"

using namespace wye::base;
using namespace wye::literals;
using Content = std::vector<std::byte>;
namespace fs = std::filesystem;

namespace {

/// A directory of its own for each test, gone afterwards.
class Scratch {
 public:
  Scratch() : path_((fs::temp_directory_path() / "wye-file-XXXXXX").string()) {
    REQUIRE(::mkdtemp(path_.data()));
  }
  Scratch(const Scratch&) = delete;  // one owner removes it
  ~Scratch() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Content random_content(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Content content(size);
  for (std::byte& byte : content) byte = static_cast<std::byte>(random() & 0xff);
  return content;
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

}  // namespace

TEST_CASE("a file is read as it was written", "[base]") {
  const Scratch scratch;
  for (std::size_t size : {0u, 1u, 4095u, 4096u, 300'001u}) {
    const Content content = random_content(size, 7);
    REQUIRE(write_file(scratch / "a", content));
    const auto read = read_file(scratch / "a");
    REQUIRE(read);
    REQUIRE(read->has_value());
    CHECK(**read == content);
  }
}

TEST_CASE("a file that is not there is nothing, not an error", "[base]") {
  const Scratch scratch;
  const auto read = read_file(scratch / "absent");
  REQUIRE(read);
  CHECK_FALSE(read->has_value());
  CHECK(read_file(scratch / "absent/deeper"));
  CHECK(remove_file(scratch / "absent"));
}

TEST_CASE("a file larger than what may be read of it is refused", "[base]") {
  const Scratch scratch;
  REQUIRE(write_file(scratch / "a", random_content(2000, 1)));
  CHECK(read_file(scratch / "a", 2000_B));
  const auto refused = read_file(scratch / "a", 1999_B);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == wye::Errc::out_of_memory);
  CHECK(refused.error().sentence() ==
        "The size of file '" + scratch / "a" + "' (1.95 KiB) exceeds what may be read of it (1.95 KiB).");
}

TEST_CASE("only regular files are read, and a pipe does not hold the reader up", "[base]") {
  const Scratch scratch;
  REQUIRE(::mkfifo((scratch / "pipe").c_str(), 0600) == 0);
  CHECK(read_file(scratch / "pipe").error().sentence() ==
        "'" + scratch / "pipe" + "' is not a regular file.");
  CHECK(read_file(scratch.path()).error() == wye::Errc::io);
}

TEST_CASE("a written file is the owner's alone and leaves nothing beside it", "[base]") {
  const Scratch scratch;
  const mode_t before = ::umask(0);
  const auto written = write_file(scratch / "a", random_content(10, 2));
  ::umask(before);
  REQUIRE(written);
  CHECK(mode_of(scratch / "a") == 0600);
  REQUIRE(write_file(scratch / "a", random_content(20, 3)));
  CHECK(*list_directory(scratch.path()) == std::vector<std::string>{"a"});
}

TEST_CASE("a write that fails keeps the old file and leaves nothing beside it", "[base]") {
  const Scratch scratch;
  const auto no_folder = write_file(scratch / "absent/a", random_content(10, 4));
  REQUIRE_FALSE(no_folder);
  CHECK(no_folder.error() == wye::Errc::io);
  CHECK(no_folder.error().sentence() ==
        "File '" + scratch / "absent/a" + "' cannot be written: No such file or directory.");
  REQUIRE(no_folder.error().native());
  CHECK(no_folder.error().native()->api == "mkostemps");
  CHECK(no_folder.error().native()->name == "ENOENT");

  fs::create_directory(scratch / "a");  // a file cannot be renamed to a directory
  fs::create_directory(scratch / "a/b");
  const auto taken = write_file(scratch / "a", random_content(10, 5));
  REQUIRE_FALSE(taken);
  CHECK(taken.error().native()->api == "rename");
  CHECK(*list_directory(scratch.path()) == std::vector<std::string>{"a"});
}

TEST_CASE("a reader sees the old file or the new one, never a part", "[base]") {
  const Scratch scratch;
  const Content old_content(50'000, std::byte{1}), new_content(70'000, std::byte{2});
  REQUIRE(write_file(scratch / "a", old_content));
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0};
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i) {
      if (!write_file(scratch / "a", i % 2 ? old_content : new_content)) ++torn;
    }
    stop = true;
  });
  int reads = 0;
  do {
    const auto read = read_file(scratch / "a");
    if (!read || !read->has_value() || (**read != old_content && **read != new_content)) ++torn;
    ++reads;
  } while (!stop);
  writer.join();
  CHECK(torn == 0);
  CHECK(reads > 0);
}

TEST_CASE("a private directory is made with its parents", "[base]") {
  const Scratch scratch;
  const mode_t before = ::umask(0);
  const auto made = make_private_directory(scratch / "a/b//c/");
  ::umask(before);
  REQUIRE(made);
  CHECK(mode_of(scratch / "a") == 0700);
  CHECK(mode_of(scratch / "a/b/c") == 0700);
  CHECK(make_private_directory(scratch / "a/b/c"));
}

TEST_CASE("a directory that others may write to is refused", "[base]") {
  const Scratch scratch;
  REQUIRE(make_private_directory(scratch / "a"));
  REQUIRE(::chmod((scratch / "a").c_str(), 0770) == 0);
  const auto group = make_private_directory(scratch / "a");
  REQUIRE_FALSE(group);
  CHECK(group.error().sentence() ==
        "Directory '" + scratch / "a" + "' has mode 0770: other users may write to it.");
  REQUIRE(::chmod((scratch / "a").c_str(), 0755) == 0);
  CHECK(make_private_directory(scratch / "a"));
}

TEST_CASE("a directory of another user is refused", "[base]") {
  const std::string other = ::geteuid() == 0 ? "" : "/usr";
  if (other.empty()) {
    const Scratch scratch;
    REQUIRE(make_private_directory(scratch / "a"));
    REQUIRE(::chown((scratch / "a").c_str(), 12345, 12345) == 0);
    CHECK(make_private_directory(scratch / "a").error().sentence() ==
          "Directory '" + scratch / "a" + "' belongs to user 12345, not to user 0 who runs this process.");
  } else {
    CHECK(make_private_directory(other).error() == wye::Errc::io);
  }
}

TEST_CASE("what cannot be a directory is an error that names it", "[base]") {
  const Scratch scratch;
  REQUIRE(write_file(scratch / "a", {}));
  CHECK(make_private_directory(scratch / "a").error().sentence() ==
        "'" + scratch / "a" + "' is not a directory.");
  CHECK(make_private_directory(scratch / "a/b").error() == wye::Errc::io);
  CHECK(make_private_directory("").error() == wye::Errc::io);
  CHECK(list_directory(scratch / "absent").error() == wye::Errc::io);
}

TEST_CASE("the entries of a directory are sorted", "[base]") {
  const Scratch scratch;
  for (const char* name : {"c", "a", ".b"}) REQUIRE(write_file(scratch / name, {}));
  CHECK(*list_directory(scratch.path()) == std::vector<std::string>{".b", "a", "c"});
  REQUIRE(remove_file(scratch / "a"));
  CHECK(*list_directory(scratch.path()) == std::vector<std::string>{".b", "c"});
}

TEST_CASE("the library knows the program it is linked into", "[base]") {
  CHECK(fs::path(own_path()).filename() == "wye_base_tests");
}
