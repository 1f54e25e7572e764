#pragma once
/// Other processes, and the files that they leave.
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace wye_bench {

/// A folder that goes with this.
class Folder {
 public:
  Folder();
  Folder(const Folder&) = delete;  // one owner removes it
  ~Folder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A running program with its output in a file. The destructor waits for its end.
class Process {
 public:
  /// `environment` is added to ours, "NAME=value".
  Process(const std::filesystem::path& program, std::vector<std::string> arguments,
          std::vector<std::string> environment, const std::filesystem::path& output);
  Process(Process&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  ~Process() { wait(); }
  /// Its status; -1 where it did not run or was killed.
  int wait();

 private:
  pid_t id_ = -1;
};

std::string read_file(const std::filesystem::path& path);

/// The running program, and the files beside it.
std::filesystem::path this_program();

/// What wye_bench does when it is one of several processes that start at once: makes 32 kernels
/// ready, and writes how many it built. Returns the status of the process.
int ask_for_kernels(const std::string& cache_directory);

}  // namespace wye_bench
