#include "device/artefact.hpp"

#include "device/doubles.hpp"

namespace wye::test {
namespace {

Artefact tiled(Extent3 tile) {
  Artefact artefact;
  artefact.kernel = "k";
  artefact.tile = tile;
  return artefact;
}

constexpr std::uint64_t huge = ~std::uint64_t{0};

}  // namespace

TEST_CASE("workgroups cover the items, and no more than one tile too many", "[device]") {
  struct Row {
    Extent3 tile, items, groups;
  };
  const Row rows[] = {
      {{1, 1, 1}, {7, 5, 3}, {7, 5, 3}},          {{256, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {{256, 1, 1}, {256, 1, 1}, {1, 1, 1}},      {{256, 1, 1}, {257, 1, 1}, {2, 1, 1}},
      {{16, 16, 4}, {17, 32, 9}, {2, 2, 3}},      {{8, 8, 8}, {0, 5, 5}, {0, 1, 1}},
      {{8, 8, 8}, {5, 0, 5}, {1, 0, 1}},          {{8, 8, 8}, {5, 5, 0}, {1, 1, 0}},
      {{whole, 1, 1}, {5000, 20, 1}, {1, 20, 1}}, {{whole, 16, whole}, {5000, 20, 9}, {1, 2, 1}},
      {{whole, 1, 1}, {0, 20, 1}, {0, 20, 1}},    {{2, 1, 1}, {huge, 1, 1}, {huge / 2 + 1, 1, 1}},
  };
  for (const Row& row : rows) {
    INFO(row.tile.x << "," << row.tile.y << "," << row.tile.z << " over " << row.items.x << "," << row.items.y
                    << "," << row.items.z);
    CHECK(groups_for(tiled(row.tile), row.items) == row.groups);
  }
}

TEST_CASE("a grid over a limit is refused with the dimension, the number, the limit and the device",
          "[device]") {
  Limits limits;
  limits.groups = {100, 10, 5};
  CHECK(check_groups(tiled({2, 2, 2}), {100, 10, 5}, limits, "d"));
  const auto sentence = [&](Extent3 items) {
    const Artefact artefact = tiled({2, 2, 2});
    return check_groups(artefact, groups_for(artefact, items), limits, "vulkan:7").error();
  };
  CHECK(sentence({201, 1, 1}) == Errc::unsupported);
  CHECK(sentence({201, 1, 1}).sentence() ==
        "Grid of kernel 'k' in x (101 workgroups) exceeds the limit of 'vulkan:7' (100).");
  CHECK(sentence({1, 21, 1}).sentence().find("in y (11 workgroups) exceeds the limit of 'vulkan:7' (10)") !=
        std::string::npos);
  CHECK(sentence({1, 1, huge}).sentence().find("in z") != std::string::npos);
}

TEST_CASE("the grain of a host function is the shortest run that covers its tile", "[device]") {
  struct Row {
    Extent3 tile, items;
    std::uint64_t grain;
  };
  const Row rows[] = {
      {{1, 1, 1}, {1000, 1, 1}, 1},
      {{64, 1, 1}, {1000, 1, 1}, 64},
      {{64, 1, 1}, {10, 1, 1}, 10},
      {{64, 1, 1}, {100, 7, 1}, 64},
      {{whole, 1, 1}, {1000, 1, 1}, 1000},
      {{whole, 1, 1}, {1000, 9, 1}, 1000},
      {{whole, 16, 1}, {1000, 99, 1}, 16000},
      {{whole, 16, 1}, {1000, 9, 1}, 9000},
      {{4, 2, 1}, {1000, 9, 1}, 2000},  // rows are whole: runs are in row-major order
      {{whole, whole, 1}, {10, 20, 30}, 200},
      {{whole, whole, whole}, {10, 20, 30}, 6000},
      {{1, 1, 2}, {10, 20, 30}, 400},
      {{1, 1, whole}, {10, 20, 1}, 1},
      {{0, 0, 0}, {0, 0, 0}, 1},
      {{whole, whole, 1}, {huge, huge, 1}, huge},
  };
  for (const Row& row : rows) {
    INFO(row.tile.x << "," << row.tile.y << "," << row.tile.z << " over " << row.items.x << "," << row.items.y
                    << "," << row.items.z);
    CHECK(grain_for(tiled(row.tile), row.items) == row.grain);
  }
}

TEST_CASE("a slot with an impossible layout is refused by name", "[device]") {
  using Kind = Passing::Kind;
  Artefact artefact;
  artefact.kernel = "k";
  artefact.schema = {{buffer_slot("x", Access::read), scalar_slot("s")}};
  artefact.passing = {{.kind = Kind::span, .binding = 0, .offset = 0},
                      {.kind = Kind::bytes, .binding = 0, .offset = 16}};
  artefact.parameter_bytes = 20;
  const auto answer = [&] { return check_passing(artefact, "toy device", {Kind::span, Kind::bytes}); };
  CHECK(answer());
  artefact.parameter_bytes = 19;
  CHECK(answer().error() == Errc::invalid_argument);
  CHECK(answer().error().sentence() ==
        "Parameter 1 ('s') of kernel 'k' ends at byte 20 of a parameter block of 19 bytes.");
  artefact.passing[0].kind = Kind::descriptor;
  CHECK(answer().error() == Errc::unsupported);
  CHECK(answer().error().sentence() ==
        "Parameter 0 ('x') of kernel 'k' is passed as a descriptor, which no toy device supports.");
  CHECK_FALSE(check_passing(artefact, "toy device", {Kind::descriptor, Kind::bytes}));
  for (const std::size_t slot : {std::size_t{0}, std::size_t{1}}) {  // memory as bytes, a value as a span
    Artefact swapped = artefact;
    swapped.passing[slot].kind = slot == 0 ? Kind::bytes : Kind::span;
    auto refused = check_passing(swapped, "toy device", {Kind::descriptor, Kind::span, Kind::bytes});
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == Errc::invalid_argument);
    CHECK(refused.error().sentence().find("cannot be passed as") != std::string::npos);
  }
  artefact.passing.pop_back();
  CHECK(answer().error().sentence() == "Kernel 'k' has 2 parameters and describes the passing of 1.");
}

TEST_CASE("a launch option that a device lacks is refused by name, and a hint is ignored", "[device]") {
  Artefact artefact;
  artefact.kernel = "k";
  artefact.launch.shared_carveout = 50;
  CHECK(check_plain_launch(artefact, "toy device"));
  artefact.dynamic_shared = 4;
  CHECK(check_plain_launch(artefact, "toy device").error() == Errc::unsupported);
  CHECK(check_plain_launch(artefact, "toy device").error().sentence() ==
        "Kernel 'k' needs dynamic shared memory, which no toy device supports.");
  artefact.launch.cooperative = true;
  CHECK(check_plain_launch(artefact, "toy device").error().sentence() ==
        "Kernel 'k' needs a cooperative launch, which no toy device supports.");
  artefact.launch.cluster = Extent3(2);
  CHECK(check_plain_launch(artefact, "toy device").error().sentence() ==
        "Kernel 'k' needs clusters of workgroups, which no toy device supports.");
}

}  // namespace wye::test
