// host PLUGIN: loads, uses and unloads a plug-in many times. With the CPU alone, the process is
// then as before. With every device, nothing of the plug-in remains; drivers may keep libraries,
// whose number must not grow.
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

// The files, threads and mappings of this process.
struct State {
  std::set<std::string> mapped;
  long threads = 0;
  long files = 0;

  static State now() {
    State state;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (const auto at = line.find('/'); at != std::string::npos) state.mapped.insert(line.substr(at));
    }
    maps.close();
    state.threads = entries("/proc/self/task");
    state.files = entries("/proc/self/fd");
    return state;
  }
};

bool differs(const State& now, const State& before, int round) {
  bool differs = false;
  for (const std::string& file : now.mapped) {
    if (before.mapped.contains(file)) continue;
    std::printf("Round %d leaves %s mapped.\n", round, file.c_str());
    differs = true;
  }
  if (now.threads != before.threads) {
    std::printf("Round %d leaves %ld threads, not %ld.\n", round, now.threads, before.threads);
    differs = true;
  }
  if (now.files != before.files) {
    std::printf("Round %d leaves %ld open files, not %ld.\n", round, now.files, before.files);
    differs = true;
  }
  return differs;
}

// Loads the plug-in, uses the backend through it (all: null), and unloads it. Returns whether
// everything succeeded.
bool use(const char* plugin, const char* backend) {
  void* library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::printf("%s\n", dlerror()), false;
  const auto use_wye = reinterpret_cast<int (*)(const char*)>(dlsym(library, "use_wye"));
  if (!use_wye) return std::printf("%s\n", dlerror()), false;
  if (const int failed = use_wye(backend); failed != 0) return std::printf("Use failed: %d\n", failed), false;
  if (dlclose(library) != 0) return std::printf("%s\n", dlerror()), false;
  return true;
}

}  // namespace

int main(int, char** argv) {
  const std::string plugin = std::filesystem::canonical(argv[1]);
  const State before = State::now();
  for (int round = 0; round < 10; ++round) {
    if (!use(plugin.c_str(), "cpu") || differs(State::now(), before, round)) return 1;
  }
  State with_drivers;
  for (int round = 10; round < 30; ++round) {
    if (!use(plugin.c_str(), nullptr)) return 1;
    State now = State::now();
    if (round == 10) with_drivers = now;
    if (now.mapped.contains(plugin)) return std::printf("Round %d leaves the plug-in mapped.\n", round), 1;
    if (differs(now, with_drivers, round)) return 1;
  }
  for (const std::string& file : with_drivers.mapped) {
    if (!before.mapped.contains(file)) std::printf("Drivers keep %s mapped.\n", file.c_str());
  }
  return 0;
}
