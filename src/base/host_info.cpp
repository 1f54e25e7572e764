#include "base/host_info.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <fstream>
#include <limits>
#include <locale>
#include <sstream>
#include <string_view>
#include <thread>

#include "base/digest.hpp"

namespace wye::inline v0::base {
namespace {

/// Returns the text after the colon of the first line of `path` that begins with `key`. Empty if
/// there is none.
std::string value_in(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == line.npos ? std::string() : line.substr(begin);
  }
  return {};
}

/// Returns the number after `key` and a space at the beginning of a line of `path`; 0 if there is
/// none.
std::uint64_t number_after(const char* path, std::string_view key) {
  std::ifstream file(path);
  std::string word;
  for (std::uint64_t number = 0; file >> word >> number;)
    if (word == key) return number;
  return 0;
}

/// Returns the number at the beginning of a file, or the largest number if there is none ("max").
std::uint64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? number : std::numeric_limits<std::uint64_t>::max();
}

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

/// Memory of a control group, in bytes.
struct GroupMemory {
  std::uint64_t limit = unlimited;
  std::uint64_t left = unlimited;  ///< of the limit
};

/// Returns the smallest numbers of the memory control groups of this process, versions 1 and 2.
/// `reads_use`: also reads `GroupMemory::left`.
GroupMemory control_group_memory(bool reads_use) {
  GroupMemory least;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:memory:/some/group", "0::/some/group"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && controllers != "memory") continue;
    const std::string root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    // The limits of the group and of all groups that contain it.
    for (std::string group = line.substr(second + 1);; group.resize(group.rfind('/'))) {
      if (group == "/") group.clear();
      const std::string folder = root + group;
      const std::uint64_t limit = number_in(folder + (unified ? "/memory.max" : "/memory.limit_in_bytes"));
      least.limit = std::min(least.limit, limit);
      if (reads_use && limit != unlimited) {
        const std::uint64_t use =
            number_in(folder + (unified ? "/memory.current" : "/memory.usage_in_bytes"));
        // The system frees cached files before the group runs out of memory.
        const std::uint64_t cached = number_after((folder + "/memory.stat").c_str(),
                                                  unified ? "inactive_file" : "total_inactive_file");
        const std::uint64_t used = use == unlimited ? 0 : use - std::min(use, cached);
        least.left = std::min(least.left, limit - std::min(limit, used));
      }
      if (group.find('/') == group.npos) break;
    }
  }
  return least;
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
  return Bytes{std::min(physical, control_group_memory(false).limit)};
}

Bytes available_memory() {
  std::istringstream text(value_in("/proc/meminfo", "MemAvailable"));  // "23949828 kB"
  std::uint64_t kilobytes = 0;
  text >> kilobytes;
  return Bytes{std::min(kilobytes * 1024, control_group_memory(true).left)};
}

void prefer_huge_pages(void* memory, Bytes size) noexcept {
  constexpr std::uintptr_t page = std::uintptr_t{1} << 21;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory), first = (begin + page - 1) / page * page;
  const std::uintptr_t last = (begin + size.count) / page * page;
  // Less memory may be part of a heap that others use. A system without huge pages refuses: nothing
  // changes.
  if (last < first + 2 * page) return;
  (void)::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

void offer_pages(void* memory, Bytes size) noexcept {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(memory), first = (begin + page - 1) / page * page;
  const std::uintptr_t last = (begin + size.count) / page * page;
  if (last > first) (void)::madvise(reinterpret_cast<void*>(first), last - first, MADV_FREE);
}

double memory_stall() {
  std::ifstream file("/proc/pressure/memory");  // "some avg10=0.00 avg60=0.00 avg300=0.00 total=0"
  std::string some, average;
  if (!(file >> some >> average) || average.compare(0, 6, "avg10=") != 0) return 0;
  std::istringstream text(average.substr(6));
  text.imbue(std::locale::classic());
  double percent = 0;
  text >> percent;
  return percent / 100;
}

unsigned usable_processors() noexcept {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<unsigned>(CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace wye::base
