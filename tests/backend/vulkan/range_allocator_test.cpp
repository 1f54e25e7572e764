// The sub-allocator's arithmetic against a model.
#include "backend/vulkan/range_allocator.hpp"

#include <map>
#include <random>

#include "support/catch.hpp"

namespace wye::test {
namespace {

using vulkan::RangeAllocator;

TEST_CASE("ranges that are taken never overlap, are aligned, and all of it comes back", "[vulkan][no_tsan]") {
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u}) {
    std::mt19937_64 random(seed);
    constexpr std::uint64_t size = 1u << 20;
    RangeAllocator ranges(size);
    struct Taken {
      std::uint64_t size;
      std::uint32_t id;
    };
    std::map<std::uint64_t, Taken> taken;  // by offset
    std::uint64_t used = 0, refused = 0;
    for (int step = 0; step < 20000; ++step) {
      if (random() % 100 < 55 || taken.empty()) {
        const std::uint64_t wanted = 1 + random() % (random() % 8 == 0 ? 60000 : 700);
        const std::uint64_t alignment = std::uint64_t{1} << random() % 13;
        const auto range = ranges.allocate(wanted, alignment);
        if (!range) {
          ++refused;
          // A refused range really has no place: no free run between allocated ones is large
          // enough.
          std::uint64_t at = 0;
          auto fits = [&](std::uint64_t first, std::uint64_t last) {
            const std::uint64_t aligned = (first + alignment - 1) / alignment * alignment;
            return aligned + wanted <= last;
          };
          for (const auto& [first, other] : taken) {
            REQUIRE_FALSE(fits(at, first));
            at = first + other.size;
          }
          REQUIRE_FALSE(fits(at, size));
          continue;
        }
        const std::uint64_t offset = range->offset;
        REQUIRE(offset % alignment == 0);
        REQUIRE(offset + wanted <= size);
        const auto next = taken.lower_bound(offset);
        if (next != taken.end()) REQUIRE(offset + wanted <= next->first);
        if (next != taken.begin()) REQUIRE(std::prev(next)->first + std::prev(next)->second.size <= offset);
        taken[offset] = {wanted, range->id};
        used += wanted;
      } else {
        const auto victim = std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
        ranges.free(victim->second.id);
        used -= victim->second.size;
        taken.erase(victim);
      }
      REQUIRE(ranges.used() == used);
    }
    CHECK(refused > 0);
    for (const auto& [offset, one] : taken) ranges.free(one.id);
    CHECK(ranges.used() == 0);
    const auto all = ranges.allocate(size, 4096);
    REQUIRE(all);
    CHECK(all->offset == 0);
  }
}

TEST_CASE("a range of about the size is taken before larger ones", "[vulkan]") {
  RangeAllocator ranges(1000);
  const auto a = ranges.allocate(300, 1), gap = ranges.allocate(1, 1), b = ranges.allocate(100, 1),
             wall = ranges.allocate(1, 1);
  REQUIRE((a && gap && b && wall));
  ranges.free(a->id);
  ranges.free(b->id);
  CHECK(ranges.allocate(90, 1).value().offset == b->offset);  // not from the 300, nor from the 598 at the end
  CHECK(ranges.allocate(270, 1).value().offset == a->offset);
  CHECK_FALSE(ranges.allocate(599, 1));
  CHECK(ranges.allocate(598, 1));
}

TEST_CASE("a range that fits exactly is found, also if larger ones of its list do not fit", "[vulkan]") {
  // 1000 and 1010 bytes are in one list; so are the sizes between them.
  RangeAllocator ranges(1000 + 1 + 1010 + 1);
  const auto a = ranges.allocate(1000, 1), gap = ranges.allocate(1, 1), b = ranges.allocate(1010, 1),
             wall = ranges.allocate(1, 1);
  REQUIRE((a && gap && b && wall));
  ranges.free(b->id);
  ranges.free(a->id);
  CHECK(ranges.allocate(1005, 1).value().offset == b->offset);
  CHECK(ranges.allocate(1000, 1).value().offset == a->offset);
  CHECK_FALSE(ranges.allocate(6, 1));
  CHECK(ranges.allocate(5, 1));
}

TEST_CASE("freeing a range that is not allocated changes nothing", "[vulkan]") {
  RangeAllocator ranges(100);
  const auto a = ranges.allocate(40, 1), b = ranges.allocate(10, 1);
  REQUIRE((a && b));
  ranges.free(b->id);  // it joins the rest
  ranges.free(b->id);
  ranges.free(70);
  CHECK(ranges.used() == 40);
  ranges.free(a->id);
  ranges.free(a->id);
  CHECK(ranges.used() == 0);
  CHECK(ranges.allocate(100, 1));
}

TEST_CASE("offsets beyond 4 GiB are counted in 64 bits", "[vulkan]") {
  constexpr std::uint64_t size = 1ull << 40;
  RangeAllocator ranges(size);
  const auto low = ranges.allocate((1ull << 33) + 5, 256), high = ranges.allocate(1ull << 35, 1u << 16);
  REQUIRE((low && high));
  CHECK(low->offset == 0);
  CHECK(high->offset == (1ull << 33) + (1u << 16));
  ranges.free(low->id);
  ranges.free(high->id);
  CHECK(ranges.allocate(size, 1));
}

TEST_CASE("the largest size has a list", "[vulkan]") {
  RangeAllocator ranges(~std::uint64_t{0});
  const auto all = ranges.allocate(~std::uint64_t{0}, 1);
  REQUIRE(all);
  CHECK_FALSE(ranges.allocate(1, 1));
  ranges.free(all->id);
  CHECK(ranges.allocate(1, 1));
}

}  // namespace
}  // namespace wye::test
