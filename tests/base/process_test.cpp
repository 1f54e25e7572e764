#include "base/process.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/team.hpp"
#include "base/worker.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"

using namespace wye::base;
using wye::test::in_child;
using wye::test::success;

namespace {

struct Inherited {
  explicit Inherited(int& ends) : ends_(&ends) {}
  Inherited(const Inherited&) = delete;
  ~Inherited() { ++*ends_; }
  int* ends_;
};

struct Registry {
  int value = 0;
};
constinit PerProcess<Registry> registry;

}  // namespace

TEST_CASE("a child of fork has a generation of its own, and so has a grandchild", "[base][fork]") {
  const Generation mine = generation();
  CHECK(mine != 0);
  CHECK(generation() == mine);
  const auto child = [&]() -> int {
    const Generation of_child = generation();
    WYE_CHILD_CHECK(1, of_child > mine && generation() == of_child);
    const auto end = ::fork();
    if (end == 0) ::_exit(generation() > of_child ? 0 : 1);
    int status = -1;
    ::waitpid(end, &status, 0);
    WYE_CHILD_CHECK(2, status == 0);
    return 0;
  };
  CHECK(in_child(child) == success);
  CHECK(generation() == mine);
}

TEST_CASE("threads of a new child agree on its generation", "[base][fork]") {
  for (int round = 0; round < 20; ++round)
    CHECK(in_child([]() -> int {
            std::vector<Generation> seen(4);
            std::vector<Registry*> registries(4);
            std::vector<std::thread> threads;
            for (std::size_t i = 0; i < 4; ++i)
              threads.emplace_back([&, i] {
                seen[i] = generation();
                registries[i] = &registry.get();
              });
            for (std::thread& thread : threads) thread.join();
            for (std::size_t i = 1; i < 4; ++i)
              WYE_CHILD_CHECK(1, seen[i] == seen[0] && registries[i] == registries[0]);
            return 0;
          }) == success);
}

TEST_CASE("an object is destroyed by the process that made it and by no child of that process",
          "[base][fork]") {
  int ends = 0;
  auto first = make_own<Inherited>(ends);
  auto second = own(new Inherited(ends));
  const Origin origin;
  CHECK_FALSE(origin.is_inherited());
  CHECK(origin.error() == nullptr);
  const auto child = [&]() -> int {
    WYE_CHILD_CHECK(1, origin.is_inherited());
    WYE_CHILD_CHECK(2, origin.error() && *origin.error() == wye::Errc::closed);
    first.reset(), second.reset();
    WYE_CHILD_CHECK(3, ends == 0);
    { const auto own_one = make_own<Inherited>(ends); }
    WYE_CHILD_CHECK(4, ends == 1);
    return 0;
  };
  CHECK(in_child(child) == success);
  first.reset(), second.reset();
  CHECK(ends == 2);
}

TEST_CASE("a value per process is new in a child of fork", "[base][fork]") {
  registry.get().value = 7;
  CHECK(in_child([]() -> int {
          WYE_CHILD_CHECK(1, registry.get().value == 0);
          registry.get().value = 8;
          WYE_CHILD_CHECK(2, registry.get().value == 8);
          return 0;
        }) == success);
  CHECK(registry.get().value == 7);
}

TEST_CASE("a child of fork joins no thread of its parent and has a team of its own", "[base][fork]") {
  std::shared_ptr<Team> team = Team::share(3).value();
  auto nothing = [](std::uint64_t, std::uint64_t) {};
  team->each(1'000'000, 1, nothing);
  CHECK(in_child([&]() -> int {
          std::shared_ptr<Team> own = Team::share(3).value();
          WYE_CHILD_CHECK(1, own != team);
          team.reset();
          std::atomic<std::uint64_t> sum{0};
          auto add = [&](std::uint64_t first, std::uint64_t last) { sum += last - first; };
          own->each(1'000'000, 1, add);
          WYE_CHILD_CHECK(2, sum == 1'000'000);
          own.reset();
          WYE_CHILD_CHECK(3, Worker::alive() == 0);
          return 0;
        }) == success);
}
