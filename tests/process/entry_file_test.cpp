// Files of entries.
#include "process/entry_file.hpp"

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"
#include "support/random_cases.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using process::EntryFile;

namespace {

std::span<const std::byte> bytes_in(std::string_view text) { return std::as_bytes(std::span(text)); }

struct Opened {
  Result<EntryFile> file;
  std::vector<std::string> entries;
};
Opened open(const std::string& path, const std::string& identity = "a work") {
  std::vector<std::string> entries;
  auto file = EntryFile::open(path, identity, [&](std::span<const std::byte> entry) -> Result<void> {
    entries.emplace_back(reinterpret_cast<const char*>(entry.data()), entry.size());
    return {};
  });
  return {std::move(file), std::move(entries)};
}

/// Writes a file with these entries, and returns its content.
std::string written(const TemporaryFolder& folder, const std::vector<std::string>& entries) {
  {
    auto opened = open(folder.put("file", ""));
    for (const std::string& entry : entries)
      REQUIRE(opened.file->append(bytes_in(std::string_view(entry).substr(0, entry.size() / 2)),
                                  bytes_in(std::string_view(entry).substr(entry.size() / 2))));
  }
  return folder.get("file");
}

const std::vector<std::string> three{"first", "", std::string(3000, 'x')};

}  // namespace

TEST_CASE("entries are read again in their order", "[process][entries]") {
  const TemporaryFolder folder;
  (void)written(folder, three);
  {
    auto again = open(folder / "file");
    CHECK(again.entries == three);
    REQUIRE(again.file->append(bytes_in("four"), {}));
  }
  CHECK(open(folder / "file").entries.back() == "four");
}

TEST_CASE("an interrupted entry is removed, at whichever byte it ends", "[process][entries]") {
  const TemporaryFolder folder;
  const std::string two = written(folder, {three[0], three[1]}), all = written(folder, three);
  REQUIRE(all.starts_with(two));
  for (std::size_t size = two.size(); size < all.size(); size += size < two.size() + 40 ? 1u : 97u) {
    {
      auto opened = open(folder.put("file", all.substr(0, size)));
      REQUIRE(opened.file);
      CHECK(opened.entries == std::vector<std::string>{three[0], three[1]});
      REQUIRE(opened.file->append(bytes_in("new"), {}));
    }
    CHECK(open(folder / "file").entries == std::vector<std::string>{three[0], three[1], "new"});
  }
}

TEST_CASE("a file whose creation was interrupted is begun again", "[process][entries]") {
  const TemporaryFolder folder;
  const std::string empty = written(folder, {});
  for (std::size_t size = 0; size < empty.size(); ++size) {
    auto opened = open(folder.put("file", empty.substr(0, size)));
    REQUIRE(opened.file);
    REQUIRE(opened.file->append(bytes_in("new"), {}));
  }
}

TEST_CASE("damage before the last entry is an error", "[process][entries]") {
  const TemporaryFolder folder;
  const std::string all = written(folder, {"first", "second", "third"});
  const std::size_t last = all.size() - (16 + 5 + 16);
  for (std::size_t at = 0; at < all.size(); ++at) {
    std::string damaged = all;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    const auto opened = open(folder.put("file", damaged));
    CAPTURE(at);
    if (at >= last + 16) {  // the content of the last entry
      REQUIRE(opened.file);
      CHECK(opened.entries.size() == 2);
    } else {
      REQUIRE_FALSE(opened.file);
      CHECK(opened.file.error() == Errc::corrupt);
    }
  }
}

TEST_CASE("the file of another work is refused with both descriptions", "[process][entries]") {
  const TemporaryFolder folder;
  (void)written(folder, three);
  const auto other = open(folder / "file", "another work");
  REQUIRE_FALSE(other.file);
  CHECK(other.file.error().describe() ==
        "invalid_argument: File '" + (folder / "file") +
            "' belongs to another work (a work), not to this one (another work).");
  CHECK(open(folder / "file").entries == three);
}

TEST_CASE("a file that is in use, is none of entries, or cannot be written is refused",
          "[process][entries]") {
  const TemporaryFolder folder;
  const auto first = open(folder / "file");
  REQUIRE(first.file);
  CHECK(open(folder / "file").file.error() == Errc::unavailable);
  CHECK(open(folder.put("other", "some text of an application, which stays as it is")).file.error() ==
        Errc::corrupt);
  CHECK(folder.get("other") == "some text of an application, which stays as it is");
  CHECK(open("/nowhere/file").file.error() == Errc::io);
}

TEST_CASE("random bytes are no file of entries", "[process][entries]") {
  const TemporaryFolder folder;
  const std::string all = written(folder, three);
  for (const unsigned seed : test::RandomCases(300)) {
    std::mt19937 random(seed);
    std::string changed = all;
    for (auto n = random() % 20; n-- != 0;) changed[random() % changed.size()] = static_cast<char>(random());
    changed.resize(random() % (changed.size() + 50), '\1');
    const auto opened = open(folder.put("file", changed));  // an error, or fewer entries
    CHECK((!opened.file || opened.entries.size() <= 3));
  }
}

TEST_CASE("the checksum of bytes has 32 digits", "[process][entries]") {
  CHECK(process::checksum_of(bytes_in("abc")) == process::checksum_of(bytes_in("abc")));
  CHECK(process::checksum_of(bytes_in("abc")) != process::checksum_of(bytes_in("abd")));
  CHECK(process::checksum_of({}).size() == 32);
}
