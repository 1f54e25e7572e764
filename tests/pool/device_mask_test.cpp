// The devices that PoolOptions::devices selects.
#include "pool/device_mask.hpp"

#include <wye/pool/context_pool.hpp>

#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/skip.hpp"

using namespace wye;
using pool::DeviceMask;

namespace {

device::Discovered adapter(std::string id, std::uint8_t uuid = 0) {
  device::Discovered one;
  one.info.backend = id.substr(0, id.find(':'));
  one.info.id = std::move(id);
  one.info.name = one.info.id;
  one.info.device_uuid[0] = uuid;
  return one;
}

std::vector<device::Discovered> machine() {
  std::vector<device::Discovered> found;
  for (auto [id, uuid] : {std::pair{"cuda:0", 1},
                          {"cuda:1", 2},
                          {"vulkan:0", 2},
                          {"vulkan:1", 1},
                          {"vulkan:2", 3},
                          {"cpu:0", 0}})
    found.push_back(adapter(id, static_cast<std::uint8_t>(uuid)));
  return found;
}

struct Selected {
  std::string list;  // "vulkan:2 as vulkan:0"
  std::vector<std::string> missing;
};
Selected select(std::vector<std::string> names) {
  auto found = machine();
  Selected selected{.list = {}, .missing = DeviceMask(std::move(names)).apply(found)};
  for (const device::Discovered& one : found)
    selected.list += (selected.list.empty() ? "" : ", ") + one.info.name + " as " + one.info.id;
  return selected;
}

std::string uuid(std::uint8_t first) { return to_string(Uuid{first}); }

}  // namespace

TEST_CASE("a mask without a name selects every adapter", "[pool][devices]") {
  CHECK(
      select({}).list ==
      "cuda:0 as cuda:0, cuda:1 as cuda:1, vulkan:0 as vulkan:0, vulkan:1 as vulkan:1, vulkan:2 as vulkan:2, "
      "cpu:0 as cpu:0");
}

TEST_CASE("selected adapters are numbered in the order of their names", "[pool][devices]") {
  CHECK(select({"vulkan:2", "vulkan:0"}).list == "vulkan:2 as vulkan:0, vulkan:0 as vulkan:1");
  CHECK(select({"cpu:0", "cuda:1"}).list == "cuda:1 as cuda:0, cpu:0 as cpu:0");
}

TEST_CASE("a UUID selects the adapters of all backends", "[pool][devices]") {
  CHECK(select({uuid(1)}).list == "cuda:0 as cuda:0, vulkan:1 as vulkan:0");
  CHECK(select({"GPU-" + uuid(3)}).list == "vulkan:2 as vulkan:0");
  CHECK(select({"MIG-02000000-0000-0000-0000-000000000000"}).list ==
        "cuda:1 as cuda:0, vulkan:0 as vulkan:0");
  // Once, even if two names mean it.
  CHECK(select({uuid(3), "vulkan:2"}).list == "vulkan:2 as vulkan:0");
}

TEST_CASE("an adapter without a UUID has no name but its id", "[pool][devices]") {
  const Selected selected = select({uuid(0), "cpu:0"});
  CHECK(selected.list == "cpu:0 as cpu:0");
  CHECK(selected.missing == std::vector<std::string>{uuid(0)});
}

TEST_CASE("names without an adapter are reported", "[pool][devices]") {
  CHECK(select({"vulkan:3", "vulkan:1", "GPU-9"}).missing == std::vector<std::string>{"vulkan:3", "GPU-9"});
}

TEST_CASE("only backends that a name can mean are looked for", "[pool][devices]") {
  CHECK(DeviceMask({}).may_name("vulkan"));
  CHECK(DeviceMask({"vulkan:1"}).may_name("vulkan"));
  CHECK_FALSE(DeviceMask({"vulkan:1", "cpu:0"}).may_name("cuda"));
  CHECK(DeviceMask({uuid(1)}).may_name("cuda"));
}

TEST_CASE("a pool opens the named devices only", "[pool][devices]") {
  const auto pool = ContextPool::open({.backends = {"null", "cpu"}, .devices = {"cpu:0"}}).value();
  REQUIRE(pool.devices().size() == 1);
  CHECK(pool.devices()[0].id() == "cpu:0");
  REQUIRE(pool.adapters().size() == 1);
}

TEST_CASE("a pool finds no further devices than the named ones", "[pool][devices]") {
  auto pool = ContextPool::open({.backends = {"null", "cpu"}, .devices = {"null:0"}}).value();
  CHECK(pool.rescan().value().empty());
  CHECK(pool.devices().size() == 1);
}

TEST_CASE("the UUID of a Vulkan device selects it", "[pool][devices]") {
  const auto all = ContextPool::open({.backends = {"vulkan"}});
  if (!all) return test::skip(all.error().sentence());
  for (const Device& device : all->devices()) {
    const auto one =
        ContextPool::open({.backends = {"vulkan", "cpu"}, .devices = {to_string(device.info().device_uuid)}});
    REQUIRE(one);
    REQUIRE(one->devices().size() == 1);
    CHECK(one->devices()[0].id() == "vulkan:0");
    CHECK(one->devices()[0].info().device_uuid == device.info().device_uuid);
  }
}

TEST_CASE("names of devices are checked", "[pool][devices]") {
  const auto refusal = [](std::vector<std::string> names) {
    return ContextPool::open({.backends = {"null", "cpu"}, .devices = std::move(names)}).error().describe();
  };
  CHECK(refusal({"cpu:0", ""}) == "invalid_argument: PoolOptions::devices has an empty name (entry 1).");
  CHECK(refusal({"cpu:0", "cpu:0"}) == "invalid_argument: PoolOptions::devices names 'cpu:0' twice.");
  CHECK(refusal({"cpu:1"}).starts_with(
      "not_found: There is no device 'cpu:1' (PoolOptions::devices); there are: null:0 ("));
}
