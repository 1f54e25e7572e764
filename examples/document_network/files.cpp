#include "files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "text.hpp"

namespace document_network {
namespace {

namespace fs = std::filesystem;

/// A complete file under a temporary name.
struct Waiting {
  std::string part;
  std::string place;
};

/// Returns whether `path` is something that a file must not replace: a terminal, a pipe, /dev/null.
bool is_stream(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

bool write(const std::string& path, const std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return false;
  const bool complete =
      std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() && std::fflush(file) == 0;
  const int error = errno;
  const bool closed = std::fclose(file) == 0;
  if (!complete) errno = error;
  return complete && closed;
}

std::string failure(const std::string& path) {
  return "File '" + printable(path) + "' cannot be written: " + std::strerror(errno) + ".";
}

}  // namespace

std::optional<std::string> write_all(const std::vector<File>& files) {
  std::vector<Waiting> waiting;
  std::optional<std::string> wrong;
  for (const File& file : files) {
    if (is_stream(file.path)) continue;
    std::error_code error;
    // A link stays a link: its target is written.
    const fs::path place =
        fs::is_symlink(file.path, error) ? fs::weakly_canonical(file.path, error) : fs::path(file.path);
    const fs::path folder = place.parent_path();
    const std::string part =
        "." + place.filename().string().substr(0, 100) + "." + std::to_string(::getpid()) + ".part";
    if (!folder.empty()) fs::create_directories(folder, error);
    waiting.push_back({(folder / part).string(), place.string()});
    const bool is_folder = fs::is_directory(place, error);
    if (is_folder) errno = EISDIR;
    if (is_folder || !write(waiting.back().part, file.bytes)) {
      wrong = failure(file.path);
      break;
    }
  }
  for (const Waiting& file : waiting)
    if (!wrong && ::rename(file.part.c_str(), file.place.c_str()) != 0) wrong = failure(file.place);
  for (const File& file : files)
    if (!wrong && is_stream(file.path) && !write(file.path, file.bytes)) wrong = failure(file.path);
  if (wrong)
    for (const Waiting& file : waiting) ::unlink(file.part.c_str());
  return wrong;
}

}  // namespace document_network
