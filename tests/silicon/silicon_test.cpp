#include "silicon/silicon.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace wye::test {

using namespace silicon;
using namespace literals;

TEST_CASE("a key names one processor, until its last user ends", "[silicon]") {
  auto first = Silicon::of({.name = "first", .key = "silicon_test"}),
       second = Silicon::of({.name = "second", .key = "silicon_test"});
  CHECK(first == second);
  CHECK(second->name() == "first");
  CHECK(Silicon::of({.name = "first", .key = "another"}) != first);
  CHECK(Silicon::of({.name = "first"}) != Silicon::of({.name = "first"}));
  const SiliconId id = first->id();
  first.reset();
  CHECK(Silicon::of({.key = "silicon_test"})->id() == id);
  second.reset();
  const auto next = Silicon::of({.name = "next", .key = "silicon_test"});
  CHECK(next->name() == "next");
  CHECK(next->id() > id);
}

TEST_CASE("a processor has the largest number of slots of its devices", "[silicon][slots]") {
  const auto silicon = Silicon::of({.key = "silicon_test", .slots = 4});
  for (const std::uint32_t slots : {2u, 6u, 5u})
    CHECK(Silicon::of({.key = "silicon_test", .slots = slots}) == silicon);
  CHECK(silicon->slots().limit() == 6);
}

TEST_CASE("the account of a processor has the smallest limit that is known", "[silicon]") {
  const auto limit = [](const Silicon& silicon) { return silicon.account()->limit(); };
  CHECK(limit(*Silicon::of({})) == MemoryAccount::no_limit);
  const auto of_machine = Silicon::of({.memory = std::nullopt});
  CHECK((limit(*of_machine) > 0_B && limit(*of_machine) < MemoryAccount::no_limit));
  const auto silicon = Silicon::of({.memory = 1000_B});
  CHECK(limit(*silicon) == 1000_B);
  silicon->add_budget(700_B);
  silicon->add_budget(800_B);
  CHECK(limit(*silicon) == 700_B);
  REQUIRE(silicon->account()->reserve(100_B));
  silicon->note_available(500_B);
  CHECK(limit(*silicon) == 600_B);
  silicon->note_available(2000_B);
  CHECK(limit(*silicon) == 700_B);
  silicon->remove_budget(700_B);
  CHECK(limit(*silicon) == 800_B);
  silicon->remove_budget(800_B);
  CHECK(limit(*silicon) == 1000_B);
  silicon->account()->release(100_B);
}

TEST_CASE("only a processor with a key is shared with other processes", "[silicon][share]") {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  const auto nameless = Silicon::of({.name = "card"});
  CHECK(nameless->share(path));
  CHECK(nameless->processes().empty());
  CHECK(std::filesystem::is_empty(folder.path()));
  auto silicon = Silicon::of({.name = "card", .key = "0007"});
  CHECK(silicon->share(path));
  CHECK(silicon->processes().size() == 1);
  CHECK(std::filesystem::exists(folder / "silicon-0007"));
  silicon.reset();
  CHECK(std::filesystem::is_empty(folder.path()));
}

}  // namespace wye::test
