#include "base/host_info.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>
#include <thread>

#include "base/digest.hpp"

namespace wye {
inline namespace v0 {
namespace base {
namespace {

/// Returns the text after the colon of the first line of `path` that begins with `key`. Empty if there is none.
std::string value_in(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == line.npos ? std::string() : line.substr(begin);
  }
  return {};
}

/// Returns the number at the beginning of a file, or the largest number if there is none ("max").
std::uint64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? number : std::numeric_limits<std::uint64_t>::max();
}

/// Returns the lowest limit of the memory control groups of this process, versions 1 and 2.
std::uint64_t control_group_limit() {
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:memory:/some/group", "0::/some/group"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && controllers != "memory") continue;
    const std::string root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const std::string file = unified ? "/memory.max" : "/memory.limit_in_bytes";
    // The limits of the group and of all groups that contain it.
    for (std::string group = line.substr(second + 1);; group.resize(group.rfind('/'))) {
      if (group == "/") group.clear();
      limit = std::min(limit, number_in(root + group + file));
      if (group.find('/') == group.npos) break;
    }
  }
  return limit;
}

std::array<std::uint8_t, 16> machine() {
  std::array<std::uint8_t, 16> id{};
  std::ifstream file("/etc/machine-id");
  std::string text;
  if (!(file >> text)) return id;
  // machine-id(5) is confidential, so only a digest of it is shown.
  const Digest digest = Hasher().add(std::string_view("wye cpu")).add(std::string_view(text)).finish();
  std::transform(digest.bytes.begin(), digest.bytes.begin() + id.size(), id.begin(),
                 [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  return id;
}

}  // namespace

HostInfo host_info() {
  HostInfo info;
  info.processor = value_in("/proc/cpuinfo", "model name");
  if (info.processor.empty()) info.processor = "CPU";
  info.memory = host_memory();
  info.machine = machine();
  return info;
}

Bytes host_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  const std::uint64_t physical =
      pages > 0 && page > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) : 0;
  return Bytes{std::min(physical, control_group_limit())};
}

Bytes available_memory() {
  std::istringstream text(value_in("/proc/meminfo", "MemAvailable"));  // "23949828 kB"
  std::uint64_t kilobytes = 0;
  text >> kilobytes;
  return Bytes{kilobytes * 1024};
}

unsigned usable_processors() noexcept {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<unsigned>(CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace base
}  // namespace v0
}  // namespace wye
