#include "base/host_info.hpp"

#include <unistd.h>

#include "support/catch.hpp"

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
