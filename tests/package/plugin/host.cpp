// host PLUGIN: loads, uses and unloads it 50 times; then no thread, no file and no mapping of it may be left.
#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace {

long entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

std::set<std::string> mapped_files() {
  std::set<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (const auto at = line.find('/'); at != std::string::npos) files.insert(line.substr(at));
  }
  return files;
}

}  // namespace

int main(int, char** argv) {
  const std::string plugin = std::filesystem::canonical(argv[1]);
  const auto threads = entries("/proc/self/task");
  long files = 0;
  std::set<std::string> mapped;
  for (int round = 0; round < 50; ++round) {
    void* library = dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return std::printf("%s\n", dlerror()), 1;
    const auto use = reinterpret_cast<int (*)()>(dlsym(library, "use_wye"));
    if (const int failed = use(); failed != 0) return std::printf("Use failed: %d\n", failed), 1;
    if (dlclose(library) != 0) return std::printf("%s\n", dlerror()), 1;

    // What drivers keep to themselves they keep after the first round; it may not grow.
    if (round == 0) {
      files = entries("/proc/self/fd");
      mapped = mapped_files();
    }
    if (mapped_files().contains(plugin))
      return std::printf("Round %d leaves the plug-in mapped.\n", round), 1;
    if (mapped_files() != mapped) return std::printf("Round %d leaves more files mapped.\n", round), 1;
    if (const auto now = entries("/proc/self/task"); now != threads) {
      return std::printf("Round %d leaves %ld threads, not %ld.\n", round, now, threads), 1;
    }
    if (const auto now = entries("/proc/self/fd"); now != files) {
      return std::printf("Round %d leaves %ld open files, not %ld.\n", round, now, files), 1;
    }
  }
  return 0;
}
