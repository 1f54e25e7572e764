#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>
#include <wye/base/extent.hpp>

#include <limits>
#include <vector>

#include "base/version.hpp"
#include "support/catch.hpp"

using namespace std::chrono_literals;
using namespace wye::literals;
using wye::Bytes;
using wye::Deadline;
using wye::Duration;
using wye::Extent3;
using wye::Instant;

TEST_CASE("bytes are shown with three digits in binary units", "[base]") {
  CHECK(to_string(0_B) == "0 bytes");
  CHECK(to_string(1_B) == "1 byte");
  CHECK(to_string(512_B) == "512 bytes");
  CHECK(to_string(1023_B) == "1023 bytes");
  CHECK(to_string(1_KiB) == "1.00 KiB");
  CHECK(to_string(1536_B) == "1.50 KiB");
  CHECK(to_string(10_KiB) == "10.0 KiB");
  CHECK(to_string(100_KiB) == "100 KiB");
  CHECK(to_string(1000_KiB) == "1000 KiB");
  CHECK(to_string(Bytes{(1 << 20) - 1}) == "1.00 MiB");
  CHECK(to_string(Bytes{10235}) == "10.0 KiB");  // not 9.995 shown with three decimals
  CHECK(to_string(12_GiB) == "12.0 GiB");
  CHECK(to_string(Bytes{std::numeric_limits<std::uint64_t>::max()}) == "16.0 EiB");
}

TEST_CASE("bytes add, subtract, multiply and compare", "[base]") {
  Bytes total = 1_KiB + 1_B;
  total += 3_B;
  total -= 4_B;
  CHECK(total == 1024_B);
  CHECK(total * 3 - 1_KiB == 2_KiB);
  CHECK(1_KiB < 1_MiB);
}

TEST_CASE("the count of an extent saturates on overflow", "[base]") {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  CHECK(Extent3().count() == 1);
  CHECK(Extent3(7).count() == 7);
  CHECK(Extent3(3, 5, 7).count() == 105);
  CHECK(Extent3(1ull << 32, 1ull << 31).count() == 1ull << 63);
  CHECK(Extent3(1ull << 32, 1ull << 32).count() == most);
  CHECK(Extent3(1ull << 32, 1ull << 31, 2).count() == most);
  CHECK(Extent3(1ull << 40, 1ull << 40, 0).count() == 0);
  CHECK(Extent3(0).count() == 0);
  CHECK(Extent3(most).count() == most);
}

TEST_CASE("a range visits each of its items once, in order", "[base]") {
  std::vector<std::uint64_t> seen;
  for (std::uint64_t item : wye::Range{3, 7}) seen.push_back(item);
  CHECK(seen == std::vector<std::uint64_t>{3, 4, 5, 6});
  CHECK(wye::Range{3, 7}.size() == 4);
  CHECK(wye::Range{5, 5}.begin() == wye::Range{5, 5}.end());
}

TEST_CASE("a deadline is resolved when the call arrives", "[base]") {
  const Instant now{1000s};
  CHECK(Deadline(20ms).at(now) == now + 20ms);
  CHECK(Deadline(now + 5s).at(now + 4s) == now + 5s);
  CHECK(Deadline::never().at(now) == Instant::max());
  CHECK(Deadline().is_never());
  CHECK_FALSE(Deadline(20ms).is_never());

  wye::ManualClock clock;
  const Deadline deadline = 1s;
  clock.advance(10s);
  CHECK(deadline.at(clock) == clock.now() + 1s);
}

TEST_CASE("a deadline saturates instead of overflowing", "[base]") {
  const Instant now{1000s};
  CHECK(Deadline(std::chrono::hours::max()).at(now) == Instant::max());
  CHECK(Deadline(Duration::max()).at(now) == Instant::max());
  CHECK(Deadline(Duration::max() - 999s).at(now) == Instant::max());
  CHECK(Deadline(std::chrono::duration<double>(1e300)).at(now) == Instant::max());
  CHECK(Deadline(std::chrono::duration<double>(std::numeric_limits<double>::infinity())).at(now) ==
        Instant::max());
  CHECK(Deadline(-1s).at(now) == now);
  CHECK(Deadline(std::chrono::hours::min()).at(now) == now);
  CHECK(Deadline(Duration::max()).at(Instant{-5s}) == Instant{Duration::max() - 5s});
  CHECK(Deadline(std::chrono::duration<double>(0.5)).at(now) == now + 500ms);
}

TEST_CASE("a manual clock moves only in advance", "[base]") {
  wye::ManualClock clock;
  const Instant start = clock.now();
  CHECK(clock.now() == start);
  clock.advance(250ms);
  CHECK(clock.now() - start == 250ms);
}

TEST_CASE("there is one steady clock, and it does not go back", "[base]") {
  const wye::Clock& clock = wye::Clock::steady();
  CHECK(&clock == &wye::Clock::steady());
  const Instant first = clock.now();
  CHECK(clock.now() >= first);
  CHECK(first > Instant{});
}

TEST_CASE("a stop token observes its flag and its time limit", "[base]") {
  CHECK_FALSE(wye::StopToken().stop_requested());
  std::atomic<bool> flag{false};
  wye::ManualClock clock;
  const wye::StopToken token(&flag, clock.now() + 1s, &clock);
  CHECK_FALSE(token.stop_requested());
  clock.advance(1s);
  CHECK(token.stop_requested());
  const wye::StopToken flag_only(&flag);
  CHECK_FALSE(flag_only.stop_requested());
  flag = true;
  CHECK(flag_only.stop_requested());
}

TEST_CASE("the rows of a range have each of its items once", "[base]") {
  for (const wye::Extent3 grid :
       {wye::Extent3(7), wye::Extent3(1, 5), wye::Extent3(7, 3), wye::Extent3(4, 3, 2)})
    for (std::uint64_t first = 0; first <= grid.count(); ++first)
      for (std::uint64_t last = first; last <= grid.count(); ++last) {
        std::uint64_t next = first;
        for (const wye::Range::Row row : wye::Range{first, last, grid}.rows()) {
          REQUIRE(row.first < row.last);
          REQUIRE(row.start == (row.z * grid.y + row.y) * grid.x);
          REQUIRE(row.y < grid.y);
          for (const std::uint64_t x : row.columns()) {
            REQUIRE(x < grid.x);
            REQUIRE(row.start + x == next++);
          }
        }
        REQUIRE(next == last);
      }
  for (const wye::Extent3 grid : {wye::Extent3(0, 4), wye::Extent3(4, 0), wye::Extent3(4, 4, 0)})
    for (const wye::Range::Row row : wye::Range{0, 0, grid}.rows()) FAIL(row.y);
}

TEST_CASE("the library has a version and refuses headers of another minor version or layout", "[base]") {
  const wye::Version version = wye::library_version();
  CHECK(version == wye::header_version);
  CHECK(to_string(wye::Version{1, 20, 3}) == "1.20.3");
  CHECK(wye::Version{0, 2, 0} > wye::Version{0, 1, 9});

  wye::Version other = version;
  ++other.patch;
  CHECK(wye::base::check_headers({other, 100}, 100));
  ++other.minor;
  const auto refused = wye::base::check_headers({other, 100}, 100);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == wye::Errc::unsupported);
  const auto larger = wye::base::check_headers({version, 104}, 100);
  REQUIRE_FALSE(larger);
  CHECK(larger.error() == wye::Errc::unsupported);
  CHECK(larger.error().sentence().find("its options have 104 bytes, those of the library 100") !=
        std::string::npos);
}
