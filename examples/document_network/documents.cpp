#include "documents.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "text.hpp"

namespace document_network {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_document = std::size_t{8} << 20;

struct Found {
  std::string path;
  bool link = false;
  dev_t device = 0;
  ino_t inode = 0;
  std::int64_t modified = 0;
};

/// Records `path` as a file to read, or the reason why it is not used.
void note_file(const std::string& path, bool link, std::vector<Found>& found, Skipped& skipped) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0)
    ++skipped[link && (errno == ENOENT || errno == ELOOP || errno == ENOTDIR) ? "broken link" : "unreadable"];
  else if (S_ISDIR(about.st_mode))
    ++skipped["link to a folder"];
  else if (!S_ISREG(about.st_mode))
    ++skipped["not a file"];
  else
    found.push_back({path, link, about.st_dev, about.st_ino, static_cast<std::int64_t>(about.st_mtime)});
}

/// Records the files of `top` and its subfolders. Folders are in a list, not on the stack: any
/// depth works.
void note_folder(const std::string& top, std::vector<Found>& found, Skipped& skipped) {
  std::vector<fs::path> folders{top};
  while (!folders.empty()) {
    const fs::path folder = std::move(folders.back());
    folders.pop_back();
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      std::error_code unknown;
      const fs::file_status status = entry->symlink_status(unknown);
      if (fs::is_directory(status))
        folders.push_back(entry->path());
      else
        note_file(entry->path().string(), fs::is_symlink(status), found, skipped);
    }
    if (error) ++skipped["unreadable"];
  }
}

/// Keeps each file once: under its own name rather than a link's, then under the first name.
void drop_same_files(std::vector<Found>& found, Skipped& skipped) {
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::tie(a.link, a.path) < std::tie(b.link, b.path);
  });
  std::set<std::pair<dev_t, ino_t>> seen;
  std::vector<Found> once;
  for (Found& file : found) {
    if (seen.emplace(file.device, file.inode).second)
      once.push_back(std::move(file));
    else
      ++skipped["same file"];
  }
  std::sort(once.begin(), once.end(), [](const Found& a, const Found& b) { return a.path < b.path; });
  found = std::move(once);
}

/// Keeps `limit` files, evenly chosen.
void drop_over_limit(std::vector<Found>& found, std::size_t limit, Skipped& skipped) {
  if (found.size() <= limit) return;
  skipped["over the limit"] += found.size() - limit;
  for (std::size_t i = 0; i < limit; ++i) {
    const std::size_t from = i * found.size() / limit;
    if (from != i) found[i] = std::move(found[from]);
  }
  found.resize(limit);
}

/// Returns a short name: the file's, or the package's if the file is its "copyright".
std::string short_name(const std::string& path) {
  const fs::path file(path);
  const fs::path name = file.filename();
  return name == "copyright" ? file.parent_path().filename().string() : name.string();
}

Listing listing(std::vector<Found> found, const std::string& folder, Skipped skipped) {
  Listing list;
  std::map<std::string, std::size_t> uses;
  for (const Found& file : found) ++uses[short_name(file.path)];
  for (Found& file : found) {
    std::string label = short_name(file.path);
    if (uses[label] > 1) label = fs::path(file.path).lexically_relative(folder).string();
    list.documents.push_back({std::move(file.path), std::move(label), file.modified, false});
  }
  list.skipped = std::move(skipped);
  return list;
}

}  // namespace

Listing find_system_documents(std::size_t limit) {
  const std::string licences = "/usr/share/common-licenses", packages = "/usr/share/doc";
  std::vector<Found> found, copyrights;
  Skipped skipped;
  std::error_code missing;
  if (fs::is_directory(licences, missing)) note_folder(licences, found, skipped);
  for (fs::directory_iterator package(packages, missing), end; !missing && package != end;
       package.increment(missing)) {
    const std::string path = (package->path() / "copyright").string();
    std::error_code error;
    const fs::file_status status = fs::symlink_status(path, error);
    if (fs::exists(status)) note_file(path, fs::is_symlink(status), copyrights, skipped);
  }
  drop_same_files(found, skipped);
  drop_same_files(copyrights, skipped);
  drop_over_limit(found, limit, skipped);
  drop_over_limit(copyrights, limit - found.size(), skipped);
  found.insert(found.end(), std::make_move_iterator(copyrights.begin()),
               std::make_move_iterator(copyrights.end()));
  Listing list = listing(std::move(found), "/usr/share", std::move(skipped));
  for (Document& document : list.documents) document.known = document.path.rfind(licences, 0) == 0;
  return list;
}

Listing find_documents(const std::string& folder, std::size_t limit) {
  std::vector<Found> found;
  Skipped skipped;
  note_folder(folder, found, skipped);
  drop_same_files(found, skipped);
  drop_over_limit(found, limit, skipped);
  return listing(std::move(found), folder, std::move(skipped));
}

std::variant<Text, Unusable> read_document(const std::string& path) {
  struct stat about {};
  // Checked again: the file may have become a pipe, and opening that would wait for its writer.
  if (::stat(path.c_str(), &about) != 0) return Unusable{"unreadable"};
  if (!S_ISREG(about.st_mode)) return Unusable{"not a file"};
  if (static_cast<std::uint64_t>(about.st_size) > largest_document) return Unusable{"too large"};
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) return Unusable{"unreadable"};

  Text text;
  char block[65536];
  for (std::size_t n = 0; (n = std::fread(block, 1, sizeof block, file.get())) > 0;) {
    text.utf8.append(block, n);
    if (text.utf8.size() > largest_document) return Unusable{"too large"};  // it grew, or its size is wrong
  }
  if (std::ferror(file.get())) return Unusable{"unreadable"};
  if (text.utf8.empty()) return Unusable{"empty"};
  if (is_binary(text.utf8)) return Unusable{"binary"};
  text.repaired = repair_utf8(text.utf8);
  return text;
}

}  // namespace document_network
