#include "base/host_info.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <limits>
#include <locale>
#include <new>
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

/// Calls `f` with the folder of each control group of this process that has a controller, and of all
/// groups that contain it, and with whether it is of version 2. `controller`: the folder of its
/// groups in version 1, "/memory".
template <class F>
void each_control_group(const std::string& root, std::string_view controller, F f) {
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:memory:/some/group", "0::/some/group"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find("," + std::string(controller.substr(1)) + ",") == controllers.npos)
      continue;
    const std::string base = root + "/sys/fs/cgroup" + (unified ? "" : std::string(controller));
    for (std::string group = line.substr(second + 1);; group.resize(group.rfind('/'))) {
      if (group == "/") group.clear();
      f(base + group, unified);
      if (group.find('/') == group.npos) break;
    }
  }
}

/// Returns the smallest numbers of the memory control groups of this process. A limit of 0 says
/// nothing: no process can run within it.
/// `reads_use`: also reads `GroupMemory::left`.
GroupMemory control_group_memory(const std::string& root, bool reads_use) {
  GroupMemory least;
  each_control_group(root, "/memory", [&](const std::string& folder, bool unified) {
    const std::uint64_t limit = number_in(folder + (unified ? "/memory.max" : "/memory.limit_in_bytes"));
    if (limit == unlimited || limit == 0) return;
    least.limit = std::min(least.limit, limit);
    if (!reads_use) return;
    const std::uint64_t use = number_in(folder + (unified ? "/memory.current" : "/memory.usage_in_bytes"));
    // The system frees cached files before the group runs out of memory.
    const std::uint64_t cached =
        number_after((folder + "/memory.stat").c_str(), unified ? "inactive_file" : "total_inactive_file");
    const std::uint64_t used = use == unlimited ? 0 : use - std::min(use, cached);
    least.left = std::min(least.left, limit - std::min(limit, used));
  });
  return least;
}

/// Returns the processors that the quotas of the control groups of this process allow, rounded up;
/// `unlimited` if there is no quota.
std::uint64_t control_group_processors(const std::string& root) {
  std::uint64_t least = unlimited;
  each_control_group(root, "/cpu", [&](const std::string& folder, bool unified) {
    std::uint64_t quota = 0, period = 0;
    if (unified) {
      std::ifstream file(folder + "/cpu.max");  // "200000 100000", "max 100000"
      if (!(file >> quota >> period)) return;
    } else {
      quota = number_in(folder + "/cpu.cfs_quota_us");  // "-1": none
      period = number_in(folder + "/cpu.cfs_period_us");
    }
    constexpr std::uint64_t longest = 1'000'000'000;  // absurd beyond this
    if (quota == 0 || period == 0 || period > longest || quota > longest * 4096) return;
    least = std::min(least, (quota + period - 1) / period);
  });
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

Bytes host_memory(const std::string& root) {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  const std::uint64_t physical = pages > 0 && page > 0
                                     ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)
                                     : unlimited;
  const std::uint64_t least = std::min(physical, control_group_memory(root, false).limit);
  return Bytes{least == unlimited ? 0 : least};
}

Bytes available_memory(const std::string& root) {
  const std::string path = root + "/proc/meminfo";
  std::istringstream text(value_in(path.c_str(), "MemAvailable"));  // "23949828 kB"
  std::uint64_t kilobytes = 0;
  const bool is_known = text >> kilobytes && kilobytes != 0 && kilobytes <= unlimited / 1024;
  return Bytes{std::min(is_known ? kilobytes * 1024 : unlimited, control_group_memory(root, true).left)};
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

ProcessUse process_use() {
  ProcessUse use;
  std::ifstream file("/proc/self/statm");  // "2841 991 ...": pages, all and resident
  std::uint64_t all = 0, resident = 0;
  if (file >> all >> resident)
    use.resident = Bytes{resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))};
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0)
    for (const timeval& part : {used.ru_utime, used.ru_stime})
      use.processor_time += std::chrono::seconds(part.tv_sec) + std::chrono::microseconds(part.tv_usec);
  return use;
}

unsigned usable_processors(const std::string& root) noexcept {
  cpu_set_t set;
  unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    processors = std::max(1u, static_cast<unsigned>(CPU_COUNT(&set)));
  try {
    return static_cast<unsigned>(std::min<std::uint64_t>(processors, control_group_processors(root)));
  } catch (const std::bad_alloc&) {
    return processors;
  }
}

}  // namespace wye::base
