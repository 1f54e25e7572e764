#include "documents.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <variant>

#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

using namespace document_network;
namespace fs = std::filesystem;

namespace {

std::string reason(const std::string& path) {
  const auto read = read_document(path);
  const auto* unusable = std::get_if<Unusable>(&read);
  return unusable ? unusable->reason : "";
}

std::vector<std::string> labels(const Listing& listing) {
  std::vector<std::string> names;
  for (const Document& document : listing.documents) names.push_back(document.label);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a folder's documents are listed in one order, whatever the disk's", "[document_network]") {
  const TemporaryFolder folder;
  for (const char* name : {"z", "b/second", "a/third", "b/a/fourth", "first"})
    folder.put(name, "text of " + std::string(name));
  const Listing listing = find_documents(folder.path().string());
  CHECK(labels(listing) == Names{"third", "fourth", "second", "first", "z"});
  CHECK(listing.skipped.empty());
}

TEST_CASE("a file that is reached by several names is one document, under its own", "[document_network]") {
  const TemporaryFolder folder;
  folder.put("text/GPL-3", "a licence");
  fs::create_symlink("text/GPL-3", folder / "GPL");
  fs::create_hard_link(folder / "text/GPL-3", folder / "text/hard");
  const Listing listing = find_documents(folder.path().string());
  CHECK(labels(listing) == Names{"GPL-3"});
  CHECK(listing.skipped == Skipped{{"same file", 2}});
}

TEST_CASE("links that loop or lead nowhere are counted and not followed", "[document_network]") {
  const TemporaryFolder folder;
  folder.put("sub/text", "words");
  fs::create_symlink("loop", folder / "loop");
  fs::create_symlink("there", folder / "here");
  fs::create_symlink("here", folder / "there");
  fs::create_symlink("nowhere", folder / "dangling");
  fs::create_directory_symlink("..", folder / "sub/up");
  fs::create_directory_symlink("/", folder / "root");
  const Listing listing = find_documents(folder.path().string());
  CHECK(labels(listing) == Names{"text"});
  CHECK(listing.skipped == Skipped{{"broken link", 4}, {"link to a folder", 2}});
}

TEST_CASE("what is not a file is neither opened nor waited for", "[document_network]") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  fs::create_symlink("/dev/zero", folder / "zero");
  const Listing listing = find_documents(folder.path().string());
  CHECK(listing.documents.empty());
  CHECK(listing.skipped == Skipped{{"not a file", 2}});
  CHECK(reason(folder / "pipe") == "not a file");
}

TEST_CASE("each unusable file says why", "[document_network]") {
  const TemporaryFolder folder;
  CHECK(reason(folder.put("empty", "")) == "empty");
  CHECK(reason(folder.put("program", std::string("\x7f"
                                                 "ELF\0\0",
                                                 6))) == "binary");
  CHECK(reason(folder / "gone") == "unreadable");
  CHECK(reason(folder.path().string()) == "not a file");
  fs::resize_file(folder.put("huge", "text"), (8u << 20) + 1);
  CHECK(reason(folder / "huge") == "too large");
  CHECK(reason(folder.put("fine", "text")).empty());
  // A read that fails, also for root.
  if (fs::exists("/proc/self/mem")) CHECK(reason("/proc/self/mem") == "unreadable");
  if (::geteuid() != 0) {
    fs::permissions(folder.put("secret", "text"), fs::perms::none);
    CHECK(reason(folder / "secret") == "unreadable");
  }
}

TEST_CASE("a folder that cannot be read is counted", "[document_network]") {
  const TemporaryFolder folder;
  const Listing listing = find_documents(folder / "gone");
  CHECK(listing.documents.empty());
  CHECK(listing.skipped == Skipped{{"unreadable", 1}});
}

TEST_CASE("a file in no known encoding is read as Latin-1, and said to be", "[document_network]") {
  const TemporaryFolder folder;
  const auto latin = read_document(folder.put("latin", "caf\xe9 libre"));
  REQUIRE(std::holds_alternative<Text>(latin));
  CHECK(std::get<Text>(latin).utf8 == "café libre");
  CHECK(std::get<Text>(latin).repaired);
  const auto utf8 = read_document(folder.put("utf8", "café libre"));
  REQUIRE(std::holds_alternative<Text>(utf8));
  CHECK_FALSE(std::get<Text>(utf8).repaired);
}

TEST_CASE("any name is a name", "[document_network]") {
  const TemporaryFolder folder;
  const Names names{"\n", "\"quoted\"", "-rf", ".hidden", " ", "\xff\xfe", std::string(255, 'n')};
  for (const std::string& name : names) folder.put(name, "text");
  const Listing listing = find_documents(folder.path().string());
  Names found = labels(listing), expected = names;
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  CHECK(found == expected);
  for (const Document& document : listing.documents) CHECK(reason(document.path).empty());
}

TEST_CASE("labels are short where that is clear, and paths where not", "[document_network]") {
  const TemporaryFolder folder;
  for (const char* name : {"doc/bash/copyright", "doc/tar/copyright", "a/README", "b/README", "b/NEWS"})
    folder.put(name, "text of " + std::string(name));
  CHECK(labels(find_documents(folder.path().string())) ==
        Names{"a/README", "NEWS", "b/README", "bash", "tar"});
}

TEST_CASE("of too many files an even sample is read", "[document_network]") {
  const TemporaryFolder folder;
  for (char c = 'a'; c <= 'j'; ++c) folder.put(std::string(1, c), "text");
  const Listing listing = find_documents(folder.path().string(), 5);
  CHECK(labels(listing) == Names{"a", "c", "e", "g", "i"});
  CHECK(listing.skipped == Skipped{{"over the limit", 5}});
}

TEST_CASE("folders may be nested five hundred deep", "[document_network]") {
  const TemporaryFolder folder;
  std::string deep;
  for (int depth = 0; depth < 500; ++depth) deep += "d/";
  folder.put(deep + "text", "words");
  CHECK(labels(find_documents(folder.path().string())) == Names{"text"});
}

TEST_CASE("the system's documents are its licences and some of its packages'", "[document_network]") {
  const Listing listing = find_system_documents(60);
  if (!fs::exists("/usr/share/common-licenses")) {
    return wye::test::skip("this machine has no /usr/share/common-licenses");
  }
  CHECK(listing.documents.size() <= 60);
  std::size_t known = 0;
  for (const Document& document : listing.documents) known += document.known;
  CHECK(known >= 5);
  CHECK(find_system_documents(3).documents.size() == 3);
}
