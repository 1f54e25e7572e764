#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/worker.hpp"
#include "silicon/memory_account.hpp"
#include "support/catch.hpp"

namespace wye::test {

using namespace silicon;
using namespace literals;

TEST_CASE("an account holds up to its limit, and lists its holders when it refuses", "[silicon]") {
  MemoryAccount account("preview", 1_MiB);
  REQUIRE(account.reserve(1_MiB));
  CHECK(account.held() == account.limit());
  auto more = account.reserve(1_B);
  REQUIRE_FALSE(more);
  CHECK(more.error() == Errc::over_budget);
  CHECK(more.error().sentence() ==
        "Allocation (1 byte) exceeds the rest of the budget of context 'preview' (1.00 MiB held of 1.00 "
        "MiB).");
  CHECK(account.reserve(0_B));
  account.release(1_MiB);
  CHECK(account.held() == 0_B);
  CHECK_FALSE(account.reserve(Bytes{~std::uint64_t{0}}));
  CHECK(account.held() == 0_B);
}

TEST_CASE("threads never hold more than the limit of their account together", "[silicon]") {
  MemoryAccount account("all", 1000_B);
  std::atomic<bool> over{false};
  std::atomic<int> granted{0};
  {
    std::vector<base::Worker> threads;
    for (unsigned i = 0; i < 4; ++i)
      threads.push_back(base::Worker::start("account", [&, i] {
                          std::mt19937_64 random(i);
                          for (int n = 0; n < 5000; ++n) {
                            const Bytes bytes{random() % 600 + 1};
                            if (!account.reserve(bytes)) continue;
                            ++granted;
                            if (account.held() > account.limit()) over = true;
                            account.release(bytes);
                          }
                        }).value());
  }
  CHECK_FALSE(over);
  CHECK(granted > 0);
  CHECK(account.held() == 0_B);
}

namespace {

/// A tree with one account of each level.
struct Tree {
  explicit Tree(std::array<Bytes, 4> limits) {
    constexpr std::array names{"card", "player", "card#0", "decoder"};
    for (std::size_t level = 0; level < 4; ++level)
      accounts[level] =
          std::make_shared<MemoryAccount>(names[level], limits[level], static_cast<AccountLevel>(level),
                                          level == 0 ? nullptr : accounts[level - 1]);
  }
  std::array<std::uint64_t, 4> held() const {
    std::array<std::uint64_t, 4> all{};
    for (std::size_t level = 0; level < 4; ++level) all[level] = accounts[level]->held().count;
    return all;
  }
  std::array<std::shared_ptr<MemoryAccount>, 4> accounts;
};

constexpr std::array<std::uint64_t, 4> nothing{};

}  // namespace

TEST_CASE("an allocation is charged to its account and to every ancestor", "[silicon]") {
  const Tree tree({1_MiB, 1_MiB, 1_MiB, 1_MiB});
  const auto sibling =
      std::make_shared<MemoryAccount>("card#1", 1_MiB, AccountLevel::context, tree.accounts[1]);
  {
    const auto one = MemoryCharge::make(tree.accounts[3], 300_B).value();
    const auto two = MemoryCharge::make(sibling, 70_B).value();
    CHECK(tree.held() == std::array<std::uint64_t, 4>{370, 370, 300, 300});
    CHECK(sibling->held() == 70_B);
  }
  CHECK(tree.held() == nothing);
}

TEST_CASE("a limit on any level refuses, names itself, and leaves no charge", "[silicon]") {
  constexpr std::array levels{"silicon 'card'", "runtime 'player'", "context 'card#0'", "tag 'decoder'"};
  for (std::size_t full = 0; full < levels.size(); ++full) {
    std::array<Bytes, 4> limits{1_MiB, 1_MiB, 1_MiB, 1_MiB};
    limits[full] = 1000_B;
    const Tree tree(limits);
    const auto before = MemoryCharge::make(tree.accounts[3], 600_B).value();
    const auto more = MemoryCharge::make(tree.accounts[3], 401_B);
    REQUIRE_FALSE(more);
    CHECK(more.error() == (full == 0 ? Errc::out_of_memory : Errc::over_budget));
    CHECK(more.error().sentence() ==
          std::string("Allocation (401 bytes) exceeds the rest of the budget of ") + levels[full] +
              " (600 bytes held of 1000 bytes).");
    CHECK(tree.held() == std::array<std::uint64_t, 4>{600, 600, 600, 600});
    CHECK(tree.accounts[3]->find_full(401_B) == tree.accounts[full].get());
    CHECK_FALSE(tree.accounts[3]->find_full(400_B));
  }
}

TEST_CASE("eight threads never hold more than any limit of the tree, and leave nothing behind", "[silicon]") {
  const Tree tree({5000_B, 4000_B, 3000_B, 2500_B});
  const auto sibling =
      std::make_shared<MemoryAccount>("card#1", 3000_B, AccountLevel::context, tree.accounts[1]);
  std::atomic<int> over{0}, granted{0}, refused{0};
  {
    std::vector<base::Worker> threads;
    for (unsigned i = 0; i < 8; ++i)
      threads.push_back(base::Worker::start("account", [&, i] {
                          std::mt19937_64 random(i);
                          std::vector<MemoryCharge> charges;
                          for (int n = 0; n < 5000; ++n) {
                            if (charges.size() > 3) charges.clear();
                            auto charge = MemoryCharge::make(i % 2 == 0 ? tree.accounts[3] : sibling,
                                                             Bytes{random() % 700});
                            ++(charge ? granted : refused);
                            if (charge) charges.push_back(*std::move(charge));
                            for (const auto& account : tree.accounts)
                              over += account->held() > account->limit();
                            over += sibling->held() > sibling->limit();
                          }
                        }).value());
  }
  CHECK(over == 0);
  CHECK(granted > 0);
  CHECK(refused > 0);
  CHECK(tree.held() == nothing);
  CHECK(sibling->held() == 0_B);
}

}  // namespace wye::test
