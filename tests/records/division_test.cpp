// The division of records into parts and batches.
#include "division.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "support/catch.hpp"
#include "support/random_cases.hpp"

using namespace wye;
using records::Batch;
using records::Division;
using records::RecordRange;

namespace {

std::vector<RecordRange> take_all_of(Division& division, std::size_t device) {
  std::vector<RecordRange> taken;
  while (const auto batch = division.take(device)) taken.push_back(batch->range);
  return taken;
}

/// Checks that the ranges are all records, each once.
void check_whole(std::vector<RecordRange> ranges, std::uint64_t records) {
  std::ranges::sort(ranges, {}, &RecordRange::first);
  std::uint64_t next = 0;
  for (const RecordRange& range : ranges) {
    REQUIRE(range.first == next);
    REQUIRE(range.count > 0);
    next = range.end();
  }
  REQUIRE(next == records);
}

}  // namespace

TEST_CASE("records are divided by ceiling division", "[records]") {
  Division division(10, 2, 4);
  CHECK(division.take(0)->range == RecordRange{0, 2});
  CHECK(division.take(1)->range == RecordRange{3, 2});
  CHECK(division.take(3)->range == RecordRange{9, 1});
  CHECK(division.take(0)->range == RecordRange{2, 1});
}

TEST_CASE("devices without records are out", "[records]") {
  const Division division(2, 128, 4);
  CHECK((!division.is_out(0) && !division.is_out(1) && division.is_out(2) && division.is_out(3)));
  CHECK((division.batches(1) == 1 && division.batches(2) == 0));
}

TEST_CASE("a device without a part takes the later half of the largest", "[records]") {
  Division division(100, 10, 2);
  CHECK(take_all_of(division, 0).size() == 10);
  CHECK(division.is_empty());
  Division other(100, 10, 2);
  for (int i = 0; i < 5; ++i) (void)other.take(0);
  CHECK(other.take(0)->range == RecordRange{70, 10});  // of 50 to 99
  CHECK(other.take(1)->range == RecordRange{50, 10});
  CHECK(other.take(1)->range == RecordRange{60, 10});
  CHECK(other.take(1)->range == RecordRange{90, 10});  // of 80 to 99
}

TEST_CASE("the part of a device that is out goes to the others", "[records]") {
  Division division(40, 10, 2);
  (void)division.take(0);
  division.take_out(0);
  CHECK(take_all_of(division, 1) == std::vector<RecordRange>{{20, 10}, {30, 10}, {10, 10}});
  division.take_out(1);
  CHECK(division.are_all_out());
}

TEST_CASE("a batch that failed runs on another device, if there is one", "[records]") {
  Division division(20, 10, 2);
  (void)division.take(0);
  (void)division.take(1);
  division.put_back({.range = {0, 10}, .failures = 1, .failed_on = 0});
  CHECK_FALSE(division.take(0));
  CHECK(division.take(1)->failures == 1);
  division.put_back({.range = {0, 10}, .failures = 1, .failed_on = 0});
  division.take_out(1);
  CHECK(division.take(0));
}

TEST_CASE("suspects come first, or are left", "[records]") {
  Division division(20, 10, 1);
  (void)division.take(0);
  division.put_back({.range = {0, 5}});
  division.put_back({.range = {5, 5}, .is_suspect = true});
  CHECK(division.take(0, false)->range == RecordRange{0, 5});
  CHECK(division.take(0, false)->range == RecordRange{10, 10});
  CHECK_FALSE(division.take(0, false));
  CHECK(division.take(0)->is_suspect);
}

TEST_CASE("whatever devices do, each record is taken once", "[records]") {
  for (const unsigned seed : test::RandomCases(200)) {
    std::mt19937_64 random(seed);
    const auto number = [&](std::uint64_t least, std::uint64_t most) {
      return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
    };
    const std::uint64_t records = number(0, 3000), batch = number(1, 200);
    const std::size_t devices = number(1, 8);
    Division division(records, batch, devices);
    std::vector<RecordRange> ran;
    std::vector<Batch> failed;
    while (!division.is_empty() || !failed.empty()) {
      const auto device = number(0, devices - 1);
      switch (number(0, 5)) {
        case 0:
          if (!failed.empty()) division.put_back(failed.back()), failed.pop_back();
          break;
        case 1:
          if (!division.is_out(device)) {
            division.take_out(device);
            if (division.are_all_out()) {
              for (const Batch& batch_left : division.take_all()) ran.push_back(batch_left.range);
              for (const Batch& one : failed) ran.push_back(one.range);
              failed.clear();
            }
          }
          break;
        default:
          if (division.is_out(device)) break;
          if (auto taken = division.take(device)) {
            REQUIRE(taken->range.count <= batch);
            taken->failed_on = device;
            if (number(0, 3) == 0)
              failed.push_back(*taken);
            else
              ran.push_back(taken->range);
          }
      }
    }
    check_whole(std::move(ran), records);
  }
}
