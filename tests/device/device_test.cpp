// Devices, the processors that they share, and the memory that they make free.
#include "device/device.hpp"

#include <filesystem>
#include <memory>
#include <string>

#include "device/doubles.hpp"
#include "device/processor.hpp"
#include "support/device/memory_device.hpp"
#include "support/temporary_folder.hpp"

namespace wye::test {

TEST_CASE("adapters with one UUID share a silicon, and every opened device has its own name", "[device]") {
  const auto a = std::make_shared<MemoryDevice>("cuda:0", 1_GiB, 7);
  const auto b = std::make_shared<MemoryDevice>("vulkan:0", 1_GiB, 7);
  const auto other = std::make_shared<MemoryDevice>("vulkan:1", 1_GiB, 8);
  const auto nameless = std::make_shared<MemoryDevice>("x:0"), again = std::make_shared<MemoryDevice>("x:0");
  CHECK(a->silicon() == b->silicon());
  CHECK(a->ref().silicon == b->ref().silicon);
  CHECK(a->ref() != b->ref());
  CHECK(a->ref() < b->ref());
  CHECK(a->silicon() != other->silicon());
  CHECK(nameless->silicon() != again->silicon());
  const auto buffer = buffer_of(*a, 500_B);
  CHECK(b->memory().in_use == 500_B);
  CHECK(other->memory().in_use == 0_B);
}

TEST_CASE("all adapters of the CPU share its silicon, whose limit is the memory of the machine", "[device]") {
  AdapterInfo host, emulated;
  host.type = emulated.type = AdapterType::cpu;
  emulated.device_uuid.back() = 1;
  const auto silicon = silicon_of(host);
  CHECK(silicon == silicon_of(emulated));
  CHECK(silicon->account()->limit() < MemoryAccount::no_limit);
  CHECK(silicon->account()->level() == silicon::AccountLevel::silicon);
}

TEST_CASE("a silicon ends with its last device", "[device]") {
  std::weak_ptr<silicon::Silicon> silicon;
  {
    const auto device = std::make_shared<MemoryDevice>("cuda:0", 1_GiB, 9);
    silicon = device->silicon();
  }
  CHECK(silicon.expired());
  CHECK(std::make_shared<MemoryDevice>("cuda:0", 1_GiB, 9)->memory().in_use == 0_B);
}

TEST_CASE("a processor is shared once, in one folder, until its last device closes", "[device][share]") {
  const TemporaryFolder folder, other;
  const std::string path = folder.path().string();
  {
    const auto card = std::make_shared<MemoryDevice>("cuda:0", 1_GiB, 231),
               same = std::make_shared<MemoryDevice>("vulkan:0", 1_GiB, 231);
    CHECK(card->silicon()->processes().empty());
    CHECK(card->silicon()->share(path));
    CHECK(same->silicon()->share(path + "/"));
    CHECK(card->silicon()->processes().size() == 1);
    CHECK(std::filesystem::exists(folder / "silicon-000000000000000000000000000000e7"));
    const auto refused = same->silicon()->share(other.path().string());
    CHECK(refused.error() == Errc::invalid_argument);
    CHECK(refused.error().sentence() == "Processor 'scripted cuda:0' is shared in folder '" + path +
                                            "', and cannot be shared in '" + other.path().string() +
                                            "', too.");
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  const auto nameless = std::make_shared<MemoryDevice>("x:0");
  CHECK(nameless->silicon()->share(path));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("an allocation that the device refuses is tried once more after a reclaim", "[device]") {
  const auto device = std::make_shared<MemoryDevice>("scripted:0");
  const auto first = std::make_shared<ScriptedReclaimable>(),
             second = std::make_shared<ScriptedReclaimable>();
  device->add_reclaimable(first);
  device->add_reclaimable(second);
  device->refuse_buffers = 1;
  SECTION("in the order in which reclaimables were added, until there is enough") {
    first->gives = 100_B;
    CHECK(device->allocate({.bytes = 100_B, .account = nullptr}));
    CHECK(first->asked == 100_B);
    CHECK(second->calls == 0);
    CHECK(device->attempts == 2);
  }
  SECTION("and the next one gives the rest") {
    first->gives = 40_B;
    second->gives = 60_B;
    CHECK(device->allocate({.bytes = 100_B, .account = nullptr}));
    CHECK(second->asked == 60_B);
  }
  SECTION("but once only") {
    device->refuse_buffers = 2;
    first->gives = 100_B;
    CHECK(device->allocate({.bytes = 100_B, .account = nullptr}).error() == Errc::out_of_memory);
    CHECK(device->attempts == 2);
  }
  SECTION("and not at all if nothing was freed") {
    CHECK(device->allocate({.bytes = 100_B, .account = nullptr}).error() == Errc::out_of_memory);
    CHECK(second->calls == 1);
    CHECK(device->attempts == 1);
  }
  SECTION("nor if it can never fit") {
    CHECK(device->allocate({.bytes = 2_GiB, .account = nullptr}).error() == Errc::out_of_memory);
    CHECK(first->calls == 0);
  }
  CHECK(device->memory().in_use == 0_B);
}

TEST_CASE("a full runtime reclaims, and a full context does not", "[device]") {
  const auto device = std::make_shared<MemoryDevice>("scripted:0");
  const auto runtime = std::make_shared<MemoryAccount>("player", 1000_B, silicon::AccountLevel::runtime,
                                                       device->silicon()->account());
  const auto context =
      std::make_shared<MemoryAccount>("scripted:0#0", 700_B, silicon::AccountLevel::context, runtime);
  const auto spare = std::make_shared<ScriptedReclaimable>();
  device->add_reclaimable(spare);
  spare->held.push_back(device->create_buffer({.bytes = 600_B, .account = runtime}).value());
  CHECK(device->allocate({.bytes = 701_B, .account = context}).error() == Errc::over_budget);
  CHECK(spare->calls == 0);
  spare->gives = 600_B;
  CHECK(device->allocate({.bytes = 500_B, .account = context}));
  CHECK(spare->calls == 1);
  CHECK(device->allocate({.bytes = 1001_B, .account = runtime}).error() == Errc::over_budget);
  CHECK(spare->calls == 1);
}

TEST_CASE("reclaimables that ended are forgotten", "[device]") {
  const auto device = std::make_shared<MemoryDevice>("scripted:0");
  for (int i = 0; i < 1000; ++i) device->add_reclaimable(std::make_shared<ScriptedReclaimable>());
  const auto last = std::make_shared<ScriptedReclaimable>();
  device->add_reclaimable(last);
  device->refuse_buffers = 1;
  CHECK_FALSE(device->allocate({.bytes = 1_B, .account = nullptr}));
  CHECK(last->calls == 1);
}

}  // namespace wye::test
