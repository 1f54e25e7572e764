// The sub-allocator's arithmetic against a model.
#include "backend/vulkan/range_allocator.hpp"

#include <map>
#include <random>

#include "support/catch.hpp"

namespace wye::test {
namespace {

using vulkan::RangeAllocator;

TEST_CASE("ranges that are taken never overlap, are aligned, and all of it comes back", "[vulkan]") {
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u}) {
    std::mt19937_64 random(seed);
    constexpr std::uint64_t size = 1u << 20;
    RangeAllocator ranges(size);
    std::map<std::uint64_t, std::uint64_t> taken;  // offset, size
    std::uint64_t used = 0, refused = 0;
    for (int step = 0; step < 20000; ++step) {
      if (random() % 100 < 55 || taken.empty()) {
        const std::uint64_t wanted = 1 + random() % (random() % 8 == 0 ? 60000 : 700);
        const std::uint64_t alignment = std::uint64_t{1} << random() % 13;
        const auto offset = ranges.allocate(wanted, alignment);
        if (!offset) {
          ++refused;
          // A refused range really has no place: no free run between allocated ones is large enough.
          std::uint64_t at = 0;
          auto fits = [&](std::uint64_t first, std::uint64_t last) {
            const std::uint64_t aligned = (first + alignment - 1) / alignment * alignment;
            return aligned + wanted <= last;
          };
          for (const auto& [first, bytes] : taken) {
            REQUIRE_FALSE(fits(at, first));
            at = first + bytes;
          }
          REQUIRE_FALSE(fits(at, size));
          continue;
        }
        REQUIRE(*offset % alignment == 0);
        REQUIRE(*offset + wanted <= size);
        const auto next = taken.lower_bound(*offset);
        if (next != taken.end()) REQUIRE(*offset + wanted <= next->first);
        if (next != taken.begin()) REQUIRE(std::prev(next)->first + std::prev(next)->second <= *offset);
        taken[*offset] = wanted;
        used += wanted;
      } else {
        const auto victim = std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
        ranges.free(victim->first);
        used -= victim->second;
        taken.erase(victim);
      }
      REQUIRE(ranges.used() == used);
    }
    CHECK(refused > 0);
    for (const auto& [offset, bytes] : taken) ranges.free(offset);
    CHECK(ranges.used() == 0);
    CHECK(ranges.largest() == size);
    CHECK(ranges.allocate(size, 4096) == 0);
  }
}

TEST_CASE("the smallest range that fits is taken", "[vulkan]") {
  RangeAllocator ranges(1000);
  const auto a = ranges.allocate(300, 1), gap = ranges.allocate(1, 1), b = ranges.allocate(100, 1),
             wall = ranges.allocate(1, 1);
  REQUIRE((a && gap && b && wall));
  ranges.free(*a);
  ranges.free(*b);
  CHECK(ranges.allocate(90, 1) == b);  // not from the 300, nor from the 598 at the end
  CHECK(ranges.allocate(290, 1) == a);
  CHECK(ranges.largest() == 598);
}

TEST_CASE("freeing a range that is not allocated changes nothing", "[vulkan]") {
  RangeAllocator ranges(100);
  const auto a = ranges.allocate(40, 1);
  REQUIRE(a);
  ranges.free(70);
  ranges.free(*a);
  ranges.free(*a);
  CHECK(ranges.used() == 0);
  CHECK(ranges.largest() == 100);
}

TEST_CASE("offsets beyond 4 GiB are counted in 64 bits", "[vulkan]") {
  constexpr std::uint64_t size = 1ull << 40;
  RangeAllocator ranges(size);
  const auto low = ranges.allocate((1ull << 33) + 5, 256), high = ranges.allocate(1ull << 35, 1u << 16);
  REQUIRE((low && high));
  CHECK(*low == 0);
  CHECK(*high == (1ull << 33) + (1u << 16));
  ranges.free(*low);
  ranges.free(*high);
  CHECK(ranges.largest() == size);
}

}  // namespace
}  // namespace wye::test
