#pragma once
/// A directory for the tests of this room.
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace wye::test {

/// A directory that is removed at the end of the test.
class Directory {
 public:
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "wye_cache_XXXXXX").string();
    if (mkdtemp(name.data())) path_ = name;
  }
  Directory(const Directory&) = delete;  // one owner removes it
  ~Directory() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::string cache() const { return (path_ / "cache").string(); }
  /// Returns all files below `cache` except the files of locks and marks.
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache()))
      if (entry.is_regular_file() && entry.path().filename() != "locks" &&
          entry.path().filename() != "builds")
        found.push_back(entry.path());
    return found;
  }
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& file : files()) sum += std::filesystem::file_size(file);
    return sum;
  }

 private:
  std::filesystem::path path_;
};

/// Sets the time of a file's last write.
inline void make_older(const std::filesystem::path& file, std::chrono::nanoseconds by) {
  std::filesystem::last_write_time(
      file, std::filesystem::file_time_type::clock::now() -
                std::chrono::duration_cast<std::filesystem::file_time_type::duration>(by));
}

inline std::vector<char> read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void write(const std::filesystem::path& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace wye::test
