#include "processes.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string_view>

namespace wye_bench {
namespace {

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (std::string& one : strings) list.push_back(one.data());
  list.push_back(nullptr);
  return list;
}

std::string_view name_of(std::string_view variable) { return variable.substr(0, variable.find('=')); }

}  // namespace

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "wye_bench_XXXXXX").string();
  if (mkdtemp(name.data())) path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Process::Process(const std::filesystem::path& program, std::vector<std::string> arguments,
                 std::vector<std::string> environment, const std::filesystem::path& output) {
  arguments.insert(arguments.begin(), program.string());
  const std::size_t added = environment.size();
  for (char** variable = environ; *variable; ++variable) {
    bool replaced = false;
    for (std::size_t i = 0; i < added; ++i) replaced |= name_of(environment[i]) == name_of(*variable);
    if (!replaced) environment.emplace_back(*variable);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  if (posix_spawn(&id_, program.c_str(), &actions, nullptr, pointers(arguments).data(),
                  pointers(environment).data()) != 0)
    id_ = -1;
  posix_spawn_file_actions_destroy(&actions);
}

int Process::wait() {
  int status = 0;
  const pid_t id = std::exchange(id_, -1);
  if (id < 0 || waitpid(id, &status, 0) != id || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::string bytes(in ? static_cast<std::size_t>(in.tellg()) : 0, '\0');
  in.seekg(0);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

std::filesystem::path this_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

}  // namespace wye_bench
