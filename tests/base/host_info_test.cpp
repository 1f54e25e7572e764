#include "base/host_info.hpp"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <string>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

TEST_CASE("the description of the machine does not change", "[base]") {
  const auto info = wye::base::host_info();
  CHECK_FALSE(info.processor.empty());
  CHECK(info.memory.count >= 1u << 20);
  CHECK(info.memory.count <= static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                                 static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  const auto again = wye::base::host_info();
  CHECK(again.machine == info.machine);
  CHECK(again.memory == info.memory);
}

TEST_CASE("some memory is available", "[base]") { CHECK(wye::base::available_memory().count > 0); }

TEST_CASE("memory that the system does not tell is unknown, and no limit", "[base]") {
  using wye::base::available_memory, wye::base::host_memory;
  constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t physical = host_memory("/nowhere").count;
  CHECK(physical >= 1u << 20);
  CHECK(available_memory("/nowhere").count == none);
  for (const char* text : {"", "MemAvailable:", "MemAvailable: 0 kB", "MemAvailable: many kB",
                           "MemAvailable: 99999999999999999999999 kB",
                           "MemAvailable: 18446744073709551615 kB", "MemTotal: 1000 kB\n"}) {
    INFO(text);
    TemporaryFolder root;
    root.put("proc/meminfo", text);
    CHECK(available_memory(root.path().string()).count == none);
  }
  TemporaryFolder root;
  const std::string path = root.path().string();
  root.put("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 700 kB\n");
  CHECK(available_memory(path).count == 700 * 1024);
  root.put("proc/self/cgroup", "0::/a/b\n");
  CHECK(available_memory(path).count == 700 * 1024);  // the group has no files
  for (const char* text : {"", "max", "0", "-1", "99999999999999999999999", "all of it"}) {
    INFO(text);
    root.put("sys/fs/cgroup/a/b/memory.max", text);
    CHECK(available_memory(path).count == 700 * 1024);
    CHECK(host_memory(path).count == physical);
  }
  root.put("sys/fs/cgroup/a/memory.max", "500000");
  CHECK(available_memory(path).count == 500000);
  CHECK(host_memory(path).count == 500000);
  root.put("sys/fs/cgroup/a/memory.current", "200000");
  CHECK(available_memory(path).count == 300000);
  root.put("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 100000\n");
  CHECK(available_memory(path).count == 400000);
  root.put("sys/fs/cgroup/a/memory.current", "nothing");
  CHECK(available_memory(path).count == 500000);
  root.put("proc/self/cgroup", "9:memory:/\n");
  root.put("sys/fs/cgroup/memory/memory.limit_in_bytes", "400000");
  CHECK(host_memory(path).count == 400000);
}

TEST_CASE("the quota of a control group limits the usable processors, rounded up", "[base]") {
  using wye::base::usable_processors;
  const unsigned all = usable_processors("/nowhere");
  REQUIRE(all >= 1);
  TemporaryFolder root;
  const std::string path = root.path().string();
  root.put("proc/self/cgroup", "4:cpu,cpuacct:/group\n0::/a/b\n");
  for (const char* text : {"", "max 100000", "max", "100000", "0 100000", "100000 0", "-1 100000",
                           "much more", "100000 99999999999999999999", "99999999999999999999 100000"}) {
    INFO(text);
    root.put("sys/fs/cgroup/a/b/cpu.max", text);
    CHECK(usable_processors(path) == all);
  }
  root.put("sys/fs/cgroup/a/cpu.max", "50000 100000");
  CHECK(usable_processors(path) == 1);
  root.put("sys/fs/cgroup/a/cpu.max", "150000 100000");
  CHECK(usable_processors(path) == std::min(2u, all));
  root.put("sys/fs/cgroup/a/cpu.max", "max 100000");
  root.put("sys/fs/cgroup/cpu/group/cpu.cfs_quota_us", "-1");
  root.put("sys/fs/cgroup/cpu/group/cpu.cfs_period_us", "100000");
  CHECK(usable_processors(path) == all);
  root.put("sys/fs/cgroup/cpu/group/cpu.cfs_quota_us", "100000");
  CHECK(usable_processors(path) == 1);
}
